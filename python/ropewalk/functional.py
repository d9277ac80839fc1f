"""``rotate`` and ``rotate_``: a plan applied to q and k."""

from __future__ import annotations

from typing import TypedDict

import torch
from torch import Tensor
from typing_extensions import Unpack

from . import autograd, known
from .call import TOKEN_DIM, Call
from .errors import UnsupportedError
from .fallback import rotate_reference
from .ops import LOAD_PROBLEM, SERVES_CPU, SERVES_CUDA
from .parity import with_parity_table
from .plans import Plan


class RotateOptions(TypedDict, total=False):
    """The arguments of :func:`rotate` that few calls have: each that a function lists by itself
    costs every call of it time."""

    cu_seqlens: Tensor | None
    cos: Tensor | None
    sin: Tensor | None
    inverse: bool
    padding: int | None
    fractional: bool


def make_call(
    plan: Plan,
    q: Tensor,
    positions: Tensor | None,
    offset: int | Tensor,
    cu_seqlens: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    layout: str,
    padding: int | None,
    fractional: bool,
    inverse: bool,
) -> tuple:
    """A Call, or its first fields where the rest are at their defaults."""
    token_dim = TOKEN_DIM.get(layout)
    if token_dim is None:
        raise ValueError(f"layout: expected one of {', '.join(TOKEN_DIM)}, got {layout!r}")
    if (
        cu_seqlens is None
        and cos is None
        and sin is None
        and padding is None
        and not (fractional or inverse)
        and plan.is_exact
        and not isinstance(offset, Tensor)
    ):
        if positions is None and offset.__class__ is int and offset == 0:
            return (plan.text, token_dim)
        return (plan.text, token_dim, offset, positions)
    starts = None
    if isinstance(offset, Tensor):
        starts, offset = offset, 0
        if starts.dim() == 0:
            rows = q.size(0) if q.dim() == 4 and cu_seqlens is None else 1
            starts = starts.expand(rows if cu_seqlens is None else cu_seqlens.size(0) - 1)
    if (cos is None) != (sin is None):
        raise ValueError("cos, sin: expected both or neither")
    if cos is not None and cos.dim() == 3:
        positions, cos, sin = _rows_of_tokens(positions, starts, offset, cu_seqlens, cos, sin)
    call = Call(
        plan.text, token_dim, offset, positions, starts, cu_seqlens, cos, sin, padding, fractional,
        inverse,
    )  # fmt: skip
    return call if plan.is_exact else with_parity_table(q, call)


def _rows_of_tokens(positions, starts, offset, cu_seqlens, cos: Tensor, sin: Tensor):
    """Tables (batch, token, columns) that are already one row per token."""
    if positions is not None or starts is not None or cu_seqlens is not None or offset != 0:
        raise ValueError(
            "cos, sin: tables of 3 dimensions are one row per token and take no positions"
        )
    rows = torch.arange(cos.size(0) * cos.size(1), device=cos.device).view(cos.shape[:2])
    return rows, cos.flatten(0, 1), sin.flatten(0, 1)


def uses_reference(q: Tensor, fallback: str | None) -> bool:
    """Whether the reference serves this tensor; UnsupportedError where nothing does."""
    if (SERVES_CPU and (q.is_cpu or q.is_meta)) or (SERVES_CUDA and q.is_cuda):
        return False
    if fallback not in (None, "reference"):
        raise ValueError(f'fallback: expected None or "reference", got {fallback!r}')
    if fallback == "reference":
        return True
    reason = LOAD_PROBLEM or f"no kernel for tensors on {q.device} in this build"
    raise UnsupportedError(f'ropewalk: {reason}; pass fallback="reference" for plain PyTorch')


def rotate(
    q: Tensor,
    k: Tensor | None = None,
    *,
    plan: Plan,
    positions: Tensor | None = None,
    offset: int | Tensor = 0,
    layout: str = "bhtd",
    out: tuple[Tensor, Tensor] | Tensor | None = None,
    fallback: str | None = None,
    **options: Unpack[RotateOptions],
):
    """Rotates q, and k where given, by ``plan``; returns q, or (q, k).

    Args:
        q, k: float64, float32, float16 or bfloat16, any strides. Head counts may differ.
        positions: int32 or int64, (token), (batch, token) or (axes, batch, token). Default: token t
            stands at ``offset`` + t.
        offset: an int, or a tensor (batch,) with one start per batch row.
        cu_seqlens: int32 or int64 (sequences + 1): tokens are packed sequences, each from 0
            (from ``offset``, a tensor (sequences,)). Batch must be 1.
        cos, sin: angles from a table instead of the plan's frequencies: (rows, rotary_dim / 2), or
            (rows, rotary_dim) with every value twice, indexed by position; or one row per token,
            (batch, token, columns). Amplitude included. They receive gradients.
        layout: ``bhtd``, ``bthd``; a batch of one may be left out (``htd``, ``thd``).
        inverse: rotate back.
        padding: rows at this position are passed through.
        fractional: positions are float32 or float64.
        out: tensors to write, (q, k) or q; no derivative then.
        fallback: ``"reference"`` for plain PyTorch where the operators are not available.

    |position| < 2^36 (2^53 for float64 data), or within the table. Outside: RuntimeError on the CPU
    before anything is written; on CUDA the row becomes NaN and is counted (:func:`bad_rows`).
    """
    if not options and out is None:
        result = known.rotate(q, k, plan, layout, offset, positions)
        if result is not None:
            return result
    return _rotate(q, k, plan, positions, offset, layout, out, fallback, **options)


def _rotate(
    q: Tensor,
    k: Tensor | None,
    plan: Plan,
    positions: Tensor | None,
    offset: int | Tensor,
    layout: str,
    out: tuple[Tensor, Tensor] | Tensor | None,
    fallback: str | None,
    *,
    cu_seqlens: Tensor | None = None,
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    inverse: bool = False,
    padding: int | None = None,
    fractional: bool = False,
):
    call = make_call(
        plan, q, positions, offset, cu_seqlens, cos, sin, layout, padding, fractional, inverse
    )
    if uses_reference(q, fallback):
        result = rotate_reference(q, k, Call(*call))
        if out is not None:
            for target, source in zip(_out_pair(out, k), result, strict=True):
                if target is not None:
                    target.copy_(source)
            return out
    elif out is not None:
        autograd.rotate_out(q, k, call, *_out_pair(out, k))
        return out
    else:
        result = autograd.rotate(q, k, call)
        known.learn(plan, q, layout)
    return result[0] if k is None else result


def _out_pair(out, k: Tensor | None) -> tuple[Tensor, Tensor | None]:
    if k is None:
        if not isinstance(out, Tensor):
            raise ValueError("out: expected one tensor, as there is no k")
        return out, None
    if isinstance(out, Tensor) or len(out) != 2:
        raise ValueError("out: expected two tensors, for q and k")
    return tuple(out)


def rotate_(
    q: Tensor,
    k: Tensor | None = None,
    *,
    plan: Plan,
    positions: Tensor | None = None,
    offset: int | Tensor = 0,
    layout: str = "bhtd",
    fallback: str | None = None,
    **options: Unpack[RotateOptions],
):
    """:func:`rotate` in place; returns q, or (q, k). A leaf that requires grad is refused."""
    if not options:
        result = known.rotate(q, k, plan, layout, offset, positions, True)
        if result is not None:
            return result
    return _rotate_inplace(q, k, plan, positions, offset, layout, fallback, **options)


def _rotate_inplace(
    q: Tensor,
    k: Tensor | None,
    plan: Plan,
    positions: Tensor | None,
    offset: int | Tensor,
    layout: str,
    fallback: str | None,
    *,
    cu_seqlens: Tensor | None = None,
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    inverse: bool = False,
    padding: int | None = None,
    fractional: bool = False,
):
    call = make_call(
        plan, q, positions, offset, cu_seqlens, cos, sin, layout, padding, fractional, inverse
    )
    if uses_reference(q, fallback):
        for target, source in zip((q, k), rotate_reference(q, k, Call(*call)), strict=True):
            if target is not None:
                target.copy_(source)
    else:
        autograd.rotate_inplace(q, k, call)
        known.learn(plan, q, layout)
    return q if k is None else (q, k)


def bad_rows(plan: Plan, device: torch.device | str = "cuda", *, reset: bool = False) -> int:
    """Rows (a token and head) that rotations by ``plan`` on a GPU made NaN, since the process began
    or the last reset, because their position was outside the limits or the table. 0 on the CPU,
    where a bad position raises.

    Waits for the current stream of ``device``: call it now and then, not in every step.
    """
    device = torch.device(device)
    if not (SERVES_CPU and device.type == "cpu") and not (SERVES_CUDA and device.type == "cuda"):
        raise UnsupportedError(f"bad_rows: {LOAD_PROBLEM or f'no kernels for {device}'}")
    like = torch.empty(0, device=device)
    return torch.ops.ropewalk._bad_rows(like, plan.text, reset)
