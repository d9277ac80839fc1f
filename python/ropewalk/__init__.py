"""Rotary position embeddings: one small error bound at every position, built for the speed of a copy."""

from .errors import PlanError, RopewalkError, UnsupportedError
from .functional import rotate, rotate_
from .hf import patch, unpatch
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
    "make_plan",
    "patch",
    "plan_from_config",
    "positions_from_cu_seqlens",
    "positions_from_mask",
    "rotate",
    "rotate_",
    "unpatch",
]
