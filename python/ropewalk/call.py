"""The arguments of one rotation after q and k, in the order of the operators' schema."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from .pairs import Geometry, join_written, split_read, split_written
from .plans import Plan
from .positions import positions_from_cu_seqlens

TOKEN_DIM = {"bhtd": -2, "htd": -2, "bthd": -3, "thd": -3}


class Call(NamedTuple):
    plan: str
    token_dim: int = -2
    start: int = 0
    positions: Tensor | None = None
    starts: Tensor | None = None
    cu_seqlens: Tensor | None = None
    cos: Tensor | None = None
    sin: Tensor | None = None
    padding: int | None = None
    fractional: bool = False
    inverse: bool = False

    @property
    def head_axis(self) -> int:
        return -5 - self.token_dim


@functools.lru_cache(maxsize=64)
def plan_of(text: str) -> Plan:
    """The plan of a text that the core wrote."""
    return Plan._from_core(text)


@torch.compiler.assume_constant_result
def geometry_of(text: str) -> tuple[int, int, int, str, str, bool]:
    """The fields of :class:`Geometry`; a constant where a compiler traces the call."""
    plan = plan_of(text)
    return (
        plan.offset, plan.rotary_dim, plan.block_width, plan.pairing, plan.arithmetic, plan.rotates
    )  # fmt: skip


def token_positions(call: Call, batch: int, tokens: int, device: torch.device) -> Tensor:
    """The positions of a call, spelled out: (token), (batch, token) or (axes, batch, token)."""
    if call.positions is not None:
        return call.positions
    if call.cu_seqlens is not None:
        return positions_from_cu_seqlens(call.cu_seqlens, tokens, call.starts)
    token = torch.arange(tokens, device=device)
    if call.starts is not None:
        return call.starts.long()[:, None] + token
    return token + call.start


def table_gradients(
    pairs_of_x_and_g: list[tuple[Tensor, Tensor]], call: Call
) -> tuple[Tensor, ...]:
    """Gradients to cos and sin, given (x, gradient of y) for each rotated tensor.

    From y0 = x0·c − x1·s and y1 = x1·c + x0·s. A full-width table holds every value twice; its
    gradient is shared equally between the copies, so that a step keeps them equal.
    """
    plan = Geometry(*geometry_of(call.plan))
    dcos = dsin = 0
    for x, g in pairs_of_x_and_g:
        exact = torch.float64 if x.dtype == torch.float64 else torch.float32
        x0, x1 = (t.to(exact) for t in split_read(x, plan, call.inverse))
        g0, g1 = (t.to(exact) for t in split_written(g, plan, call.inverse))
        dcos = dcos + (g0 * x0 + g1 * x1).sum(call.head_axis)
        dsin = dsin + (g1 * x0 - g0 * x1).sum(call.head_axis)
    if call.inverse:
        dsin = -dsin
    if (
        dcos.dim() == 3
        and call.starts is None
        and (call.positions is None or call.positions.dim() == 1)
    ):
        # Batch rows read the same table rows. Summed here, no two of them meet in index_add, which on
        # a GPU would add them in any order.
        dcos, dsin = dcos.sum(0), dsin.sum(0)
    rows, used = _table_rows(call, dcos)
    return tuple(
        _scatter(values.reshape(rows.numel(), -1), rows.reshape(-1), used, table, plan)
        for values, table in ((dcos, call.cos), (dsin, call.sin))
    )


def table_tangent(x: Tensor, tangents: Call, call: Call) -> Tensor:
    """The tangent of y = rotation of x that tangents of cos and sin cause: the adjoint of
    :func:`table_gradients`."""
    plan = Geometry(*geometry_of(call.plan))
    exact = torch.float64 if x.dtype == torch.float64 else torch.float32
    x0, x1 = (t.to(exact) for t in split_read(x, plan, call.inverse))
    rows, used = _table_rows(call, x.select(call.head_axis, 0))
    dcos, dsin = (
        half_width(table, plan).to(exact)[rows].unsqueeze(call.head_axis)
        for table in (tangents.cos, tangents.sin)
    )
    if used is not None:
        dcos, dsin = (torch.where(used[:, :, None].unsqueeze(call.head_axis), t, 0.0)
                      for t in (dcos, dsin))  # fmt: skip
    if x.dim() == 3:
        dcos, dsin = dcos[0], dsin[0]
    if call.inverse:
        dsin = -dsin
    y0, y1 = x0 * dcos - x1 * dsin, x1 * dcos + x0 * dsin
    return join_written(y0, y1, torch.zeros_like(x), plan, call.inverse)


def _table_rows(call: Call, values: Tensor) -> tuple[Tensor, Tensor | None]:
    """(batch, token) rows of the table, and which are used (None: all). ``values`` has the shape
    (batch, token, …) or (token, …)."""
    batch, tokens = (1, *values.shape[:-1])[-2:]
    rows = token_positions(call, batch, tokens, values.device).expand(batch, tokens).long()
    if call.padding is None:
        return rows, None
    used = rows != call.padding
    return torch.where(used, rows, 0), used


def half_width(table: Tensor, plan: Geometry) -> Tensor:
    """The mean of the two copies of every value in a full-width table."""
    if table.size(1) != plan.rotary_dim:
        return table
    if plan.pairing == "interleaved":
        return table.unflatten(1, (-1, 2)).mean(2)
    return table.unflatten(1, (2, -1)).mean(1)


def table_for_kernel(call: Call, dtype: torch.dtype) -> Call:
    """The call with its tables as the CUDA kernels read them: half width, without gaps, in the type
    that the rotation of ``dtype`` computes in. Tables that are so already are not copied."""
    plan = Geometry(*geometry_of(call.plan))
    double = dtype == torch.float64 or plan.arithmetic == "parity_p4"
    exact = torch.float64 if double else torch.float32
    cos, sin = (
        _checked(table, name, plan) for table, name in ((call.cos, "cos"), (call.sin, "sin"))
    )
    cos, sin = (half_width(table, plan).to(exact).contiguous() for table in (cos, sin))
    return call._replace(cos=cos, sin=sin)


def _checked(table: Tensor, name: str, plan: Geometry) -> Tensor:
    if table.dim() != 2 or table.size(1) not in (plan.pairs, plan.rotary_dim):
        raise RuntimeError(
            f"{name}: expected (rows, {plan.pairs}) or (rows, {plan.rotary_dim}), rotary_dim / 2 or "
            f"rotary_dim columns, got {tuple(table.shape)}"
        )
    if not table.is_floating_point():
        raise RuntimeError(f"{name}: expected a floating dtype, got {table.dtype}")
    return table


def _scatter(
    values: Tensor, rows: Tensor, used: Tensor | None, table: Tensor, plan: Geometry
) -> Tensor:
    if used is not None:
        values = torch.where(used.reshape(-1, 1), values, 0.0)
    total = values.new_zeros(table.size(0), plan.pairs).index_add(0, rows, values)
    if table.size(1) == plan.rotary_dim:
        half = total / 2
        doubled = [half.repeat_interleave(2, 1)] if plan.pairing == "interleaved" else [half, half]
        total = torch.cat(doubled, dim=1)
    return total.to(table.dtype)
