"""Rotation in models that are spread over processes.

Tensor parallelism splits heads, which rotate alike, so that each rank calls the rotation as ever.
Context parallelism splits tokens: each rank needs the positions of those it holds
(:mod:`.context`). :func:`register_dtensor_rules` teaches DTensor both.
"""

from .attention import TensorParallelAttention
from .context import (
    contiguous_tokens,
    join_tokens,
    packed_tokens,
    split_tensor,
    zigzag_tokens,
)
from .dtensor import register_dtensor_rules

__all__ = [
    "TensorParallelAttention",
    "contiguous_tokens",
    "join_tokens",
    "packed_tokens",
    "register_dtensor_rules",
    "split_tensor",
    "zigzag_tokens",
]
