"""Whether a result is right: every element against the reference in float64.

A peer follows the recipe of model code: float32 frequencies, float32 angles, tables in float32 or in
the dtype of the data, products rounded to that dtype. What those roundings can add up to is the
bound; it and its derivation are in verify/tolerance.h (kRecipe…). The exact arithmetic's own, much
smaller bound is there too and is what ``ropewalk verify`` applies.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..reference import apply_rope_reference, precompute_freqs_cis
from .setting import Setting
from .tolerances import constant


@dataclass(frozen=True)
class Verdict:
    """The largest error of an element, and the largest ratio of an error to its bound."""

    error: float
    error_to_bound: float

    @property
    def right(self) -> bool:
        return self.error_to_bound <= 1.0


def to_pairs(x: Tensor, pairing: str) -> Tensor:
    """Channels reordered so that pair i is (2i, 2i + 1), the order of the reference."""
    return x.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2) if pairing == "half" else x


@functools.lru_cache(maxsize=1)
def _table(head_dim: int, rows: int, base: float, device: torch.device) -> Tensor:
    """The peers of a case share it."""
    return precompute_freqs_cis(head_dim, rows, base).to(device)


def judge(setting: Setting, given: tuple[Tensor, Tensor], got: tuple[Tensor, Tensor]) -> Verdict:
    """Compares ``got`` with the rotation of ``given``, both (q, k) in the layout of the case.

    Raises ValueError where shape or dtype are not those of the input.
    """
    case = setting.case
    table = _table(case.head_dim, setting.cos.size(0), case.base, setting.device)
    if setting.inverse:
        table = table.conj().resolve_conj()
    error = ratio = 0.0
    for name, x, y in zip("qk", given, got, strict=True):
        if y.shape != x.shape or y.dtype != x.dtype:
            raise ValueError(
                f"{name}: expected {tuple(x.shape)} {x.dtype}, got {tuple(y.shape)} {y.dtype}"
            )
        x, y = setting.heads_first(x), setting.heads_first(y)
        # One batch row and head at a time: the reference is eight times as large as bfloat16 data.
        for b in range(case.batch):
            positions = setting.positions[b]
            rows = table[positions]
            for h in range(x.size(1)):
                e, r = _compare(x[b, h], y[b, h], rows, positions, case.pairing, case.base)
                error, ratio = max(error, e), max(ratio, r)
    return Verdict(error, ratio)


def _compare(
    x: Tensor, y: Tensor, rows: Tensor, positions: Tensor, pairing: str, base: float
) -> tuple[float, float]:
    """Largest error, and largest ratio to the bound, of one head (tokens, head_dim)."""
    unit = torch.finfo(x.dtype).eps / 2
    unit32 = torch.finfo(torch.float32).eps / 2 if x.dtype != torch.float64 else unit
    x, y = to_pairs(x.double(), pairing), to_pairs(y.double(), pairing)
    exact = apply_rope_reference(x, rows)
    size = x.abs().unflatten(-1, (-1, 2)).sum(-1).repeat_interleave(2, dim=-1)
    pair = torch.arange(0, x.size(-1), 2, device=x.device, dtype=torch.float64) / x.size(-1)
    angle = torch.outer(positions.double(), base**-pair).repeat_interleave(2, dim=-1)
    of_angle = constant("kRecipeAngleRoundings") + math.log(base)
    table = unit32 * (angle.abs() * of_angle + constant("kRecipeTableRoundings")) + unit
    bound = size * (table + unit) + constant("kRecipeOutputRoundings") * unit * exact.abs()
    difference = (y - exact).abs()
    # An exact zero may stand where the bound is zero; a NaN is never right.
    share = torch.where(difference == 0, 0.0, difference / bound)
    share = torch.where(y.isnan(), torch.inf, share)
    return float(difference.nan_to_num(torch.inf).max()), float(share.max())
