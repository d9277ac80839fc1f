"""Rotary position embeddings: one small error bound at every position, built for the speed of a copy."""

from .cache_shift import CacheShift, move_keys
from .errors import PlanError, RopewalkError, UnsupportedError
from .functional import bad_rows, rotate, rotate_
from .hf import patch, unpatch
from .module import RotaryEmbedding
from .observe import (
    CallCounters,
    call_counters,
    count_calls,
    log_as_environment_says,
    log_calls,
    reset_call_counters,
)
from .plans import Plan, core_version, make_plan, plan_from_config
from .positions import positions_from_cu_seqlens, positions_from_mask
from .stream import StreamError, StreamProgress, StreamResult, stream_rotate

__version__ = core_version()
log_as_environment_says()

__all__ = [
    "CacheShift",
    "CallCounters",
    "Plan",
    "PlanError",
    "RopewalkError",
    "RotaryEmbedding",
    "StreamError",
    "StreamProgress",
    "StreamResult",
    "UnsupportedError",
    "__version__",
    "bad_rows",
    "call_counters",
    "count_calls",
    "log_calls",
    "make_plan",
    "move_keys",
    "patch",
    "plan_from_config",
    "positions_from_cu_seqlens",
    "positions_from_mask",
    "reset_call_counters",
    "rotate",
    "rotate_",
    "stream_rotate",
    "unpatch",
]
