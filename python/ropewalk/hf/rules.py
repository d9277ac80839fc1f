"""What a model's apply function does with q, k, cos and sin, and the same by our operator."""

from __future__ import annotations

import functools
import json
from typing import NamedTuple

import torch
from torch import Tensor

from .. import autograd
from ..call import Call
from ..fallback import rotate_reference
from ..functional import uses_reference
from ..plans import Plan, make_plan


class ApplyRule(NamedTuple):
    """How an apply function turns tables into a rotation."""

    #: ``half``, ``interleaved`` or ``interleaved_to_half``.
    pairing: str
    #: Columns of cos and sin: ``copies`` (every value twice, as the pairing lies), ``first_half``
    #: (the second half is not read) or ``pairs`` (one per pair).
    columns: str
    #: ``each``: in the wider dtype of x and cos, which the result keeps. ``promoted``: the same, cast
    #: back. ``once``: in float32, rounded once to x's dtype. ``double``: in float64, rounded once.
    #: ``fused``: as once, each sum with one of its products unrounded, as PyTorch's product of complex
    #: numbers is where it runs element by element.
    rounding: str
    #: Whether the rotated channels are the last ones.
    last: bool = False
    #: Whether the sine is negated.
    negated: bool = False

    def rotary_dim(self, columns: int) -> int:
        return 2 * columns if self.columns == "pairs" else columns


@torch.compiler.assume_constant_result
def plan_text(head_dim: int, rotary_dim: int, offset: int, pairing: str, arithmetic: str) -> str:
    """The geometry of a rotation whose angles come from a table; a constant where a compiler traces."""
    return _plan_text(head_dim, rotary_dim, offset, pairing, arithmetic)


@functools.lru_cache(maxsize=256)
def _plan_text(head_dim: int, rotary_dim: int, offset: int, pairing: str, arithmetic: str) -> str:
    plain = make_plan(head_dim, rotary_dim=rotary_dim, pairing=pairing, offset=offset)
    return Plan(json.dumps(json.loads(plain.text) | {"arithmetic": arithmetic})).text


def _arithmetic(rule: ApplyRule, x: Tensor, cos: Tensor) -> tuple[str, torch.dtype, bool]:
    """The plan's arithmetic, the dtype of the data, and whether the result is cast back."""
    if rule.rounding == "exact":
        return "exact", x.dtype, False
    if rule.rounding == "once":
        return "parity_p2", x.dtype, False
    if rule.rounding == "double":
        return "parity_p4", x.dtype, False
    wide = torch.promote_types(x.dtype, cos.dtype)
    if wide == x.dtype:
        return "parity_p0", x.dtype, False
    if rule.rounding == "promoted" and wide == torch.float32:
        return "parity_p2", x.dtype, False
    return "parity_p0", wide, rule.rounding == "promoted"


def _rows(table: Tensor, x: Tensor, head_axis: int) -> tuple[Tensor, Tensor | None]:
    """(rows, columns) and the row of each token (None: row t for token t) from a table that
    broadcasts against x."""
    table = table.squeeze(head_axis)
    token_axis = x.dim() - 2 if head_axis == x.dim() - 3 else x.dim() - 3
    if x.dim() == 3:
        return table.expand(x.size(token_axis), -1), None
    tokens = x.size(token_axis)
    if table.size(0) == 1:
        return table[0].expand(tokens, -1), None
    table = table.expand(x.size(0), tokens, -1)
    rows = torch.arange(x.size(0) * tokens, device=x.device).view(x.size(0), tokens)
    return table.flatten(0, 1), rows


def head_axis_of(x: Tensor, table: Tensor) -> int:
    """The axis of x along which a table of as many dimensions is the same for all."""
    before, after = x.dim() - 3, x.dim() - 2
    if table.size(before) == 1 and table.size(after) == x.size(after):
        return before
    if table.size(after) == 1 and table.size(before) == x.size(before):
        return after
    if table.size(before) == 1 and table.size(after) == 1:
        return before
    raise ValueError(
        f"cos: expected one row per token for all heads of x {tuple(x.shape)}, "
        f"got a table that broadcasts as {tuple(table.shape)}"
    )


def run(call: Call, q: Tensor, k: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The operator where it serves the device, plain PyTorch elsewhere."""
    if uses_reference(q, "reference"):
        return rotate_reference(q, k, call)
    return autograd.rotate(q, k, call)


def broadcast(table: Tensor, x: Tensor) -> Tensor:
    """The table with as many dimensions as x."""
    return table.reshape((1,) * (x.dim() - table.dim()) + table.shape)


def apply(
    rule: ApplyRule, q: Tensor, k: Tensor | None, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor | None]:
    """q and k rotated as ``rule`` says. cos and sin broadcast against q and k, columns apart."""
    if k is not None and (k.dtype != q.dtype or k.dim() != q.dim()):
        return apply(rule, q, None, cos, sin)[0], apply(rule, k, None, cos, sin)[0]
    if q.dim() not in (3, 4):
        raise ValueError(f"q: expected 3 or 4 dimensions, got {q.dim()}")
    cos, sin = broadcast(cos, q), broadcast(sin, q)
    if q.dim() == 4 and cos.size(1) == q.size(1) > 1 and cos.size(2) == q.size(2) > 1:
        return _by_head(rule, q, k, cos, sin)
    if rule.rounding == "fused":
        return _apply_fused(rule, q, k, cos, sin)
    rotary_dim = rule.rotary_dim(cos.size(-1))
    if rule.columns == "first_half":
        cos, sin = cos[..., : rotary_dim // 2], sin[..., : rotary_dim // 2]
    axis = head_axis_of(q, cos)
    token_axis = 2 * q.dim() - 5 - axis
    if k is not None and (k.size(token_axis) != q.size(token_axis) or k.size(0) != q.size(0)):
        return apply(rule, q, None, cos, sin)[0], apply(rule, k, None, cos, sin)[0]

    arithmetic, dtype, back = _arithmetic(rule, q, cos)
    head_dim = q.size(-1)
    offset = head_dim - rotary_dim if rule.last else 0
    text = plan_text(head_dim, rotary_dim, offset, rule.pairing, arithmetic)
    cos_rows, rows = _rows(cos, q, axis)
    sin_rows, _ = _rows(sin, q, axis)
    token_dim = token_axis - q.dim()
    call = Call(text, token_dim, 0, rows, None, None, cos_rows, sin_rows, inverse=rule.negated)
    q_out, k_out = run(call, q.to(dtype), None if k is None else k.to(dtype))
    if back:
        q_out, k_out = q_out.to(q.dtype), None if k is None else k_out.to(k.dtype)
    return q_out, k_out


def _by_head(
    rule: ApplyRule, q: Tensor, k: Tensor | None, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Where heads have rows of their own, as batch rows."""

    def folded(x: Tensor) -> Tensor:
        return x.expand(*q.shape[:3], -1).flatten(0, 1).unsqueeze(1)

    q_out, k_out = apply(
        rule, folded(q), None if k is None else folded(k), folded(cos), folded(sin)
    )
    shape = q.shape[:2]
    return (
        q_out.squeeze(1).unflatten(0, shape),
        None if k_out is None else k_out.squeeze(1).unflatten(0, shape),
    )


def _apply_fused(
    rule: ApplyRule, q: Tensor, k: Tensor | None, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor | None]:
    """y0 = fma(x0, cos, −x1·sin), as the exact rotation has it, and y1 = fma(x0, sin, x1·cos), which
    is the first member of the exact rotation by (sin, −cos)."""
    fused = rule._replace(rounding="exact")
    first = apply(fused, q, k, cos, sin)
    second = apply(fused, q, k, sin, -cos)

    def joined(a: Tensor | None, b: Tensor | None) -> Tensor | None:
        if a is None:
            return None
        return torch.stack([a[..., ::2], b[..., ::2]], -1).flatten(-2)

    return joined(first[0], second[0]), joined(first[1], second[1])
