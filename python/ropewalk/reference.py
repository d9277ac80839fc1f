"""The definition: plain PyTorch, short enough to read in a minute. Slow; check everything with it.

Channels are paired interleaved, (2i, 2i + 1), which is what makes a pair a complex number.
"""

from __future__ import annotations

import torch
from torch import Tensor


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0) -> Tensor:
    """exp(j · position · θ^(−2i/dim)) for positions 0 … end − 1: (end, dim / 2), complex128."""
    frequencies = theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.outer(torch.arange(end, dtype=torch.float64), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def apply_rope_reference(x: Tensor, freqs_cis: Tensor) -> Tensor:
    """Rotates x (…, token, dim) by the first rows of freqs_cis, one per token.

    Multiplying channel pairs, as complex numbers, by exp(j · angle) is the rotation
    (x0·cos − x1·sin, x1·cos + x0·sin). Computed in float64, rounded once to the dtype of x.
    """
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    rotated = pairs * freqs_cis[: x.size(-2)].to(x.device)
    return torch.view_as_real(rotated).flatten(-2).to(x.dtype)
