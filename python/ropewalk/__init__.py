"""Rotary position embeddings: one small error bound at every position, built for the speed of a copy."""

from .errors import PlanError, RopewalkError, UnsupportedError
from .functional import bad_rows, rotate, rotate_
from .module import RotaryEmbedding
from .plans import Plan, core_version, make_plan, plan_from_config
from .positions import positions_from_cu_seqlens, positions_from_mask

__version__ = core_version()

__all__ = [
    "Plan",
    "PlanError",
    "RopewalkError",
    "RotaryEmbedding",
    "UnsupportedError",
    "__version__",
    "bad_rows",
    "make_plan",
    "plan_from_config",
    "positions_from_cu_seqlens",
    "positions_from_mask",
    "rotate",
    "rotate_",
]
