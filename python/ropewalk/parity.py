"""Tables for the parity arithmetics: the angles a model's own eager code would form, made with the
same PyTorch operations, so that every bit is reached."""

from __future__ import annotations

import functools
import json

import torch
from torch import Tensor

from .call import Call, plan_of, token_positions
from .plans import Plan


@functools.lru_cache(maxsize=64)
def _single_axis(text: str) -> str:
    """The plan's text without its axes: the table has resolved them."""
    fields = json.loads(text)
    fields.pop("axes", None)
    fields.pop("axis", None)
    return Plan(json.dumps(fields)).text


def with_parity_table(q: Tensor, call: Call) -> Call:
    """A call whose table holds one row for each of its tokens; the call itself where it has one, or
    where its plan is exact."""
    plan = plan_of(call.plan)
    if plan.arithmetic == "exact" or call.cos is not None or not plan.rotates:
        return call
    if is_spread := hasattr(q, "device_mesh"):  # a DTensor
        call = _of_all_ranks(call)
    batch = q.size(0) if q.dim() == 4 else 1
    positions = token_positions(call, batch, q.size(call.token_dim), q.device)
    with torch.autocast(q.device.type, enabled=False), torch.no_grad():
        cos, sin = _recipe(plan, positions, q.dtype, q.device)
    rows = torch.arange(cos[..., 0].numel(), device=q.device).view(cos.shape[:-1])
    if call.padding is not None:
        pads = positions == call.padding
        rows = torch.where(pads.all(0) if pads.dim() == 3 else pads, -1, rows)
    cos, sin = cos.flatten(0, -2), sin.flatten(0, -2)
    if is_spread:
        rows, cos, sin = (_on_every_rank(t, q.device_mesh) for t in (rows, cos, sin))
    return Call(
        _single_axis(call.plan), positions=rows, cos=cos, sin=sin,
        token_dim=call.token_dim, padding=None if call.padding is None else -1, inverse=call.inverse,
    )  # fmt: skip


# Rows of the table are numbers of the whole sequence, and to form a row costs less than to send it:
# every rank makes all of them, and DTensor's rule takes from `rows` those of a rank's own tokens.


def _of_all_ranks(call: Call) -> Call:
    return Call(*(t.full_tensor() if hasattr(t, "full_tensor") else t for t in call))


def _on_every_rank(tensor: Tensor, mesh) -> Tensor:
    from torch.distributed.tensor import DTensor, Replicate

    return DTensor.from_local(tensor, mesh, [Replicate()] * mesh.ndim, run_check=False)


def _recipe(plan: Plan, positions: Tensor, dtype: torch.dtype, device: torch.device):
    exact = torch.float64 if plan.arithmetic == "parity_p4" else torch.float32
    values = plan.frequencies if exact == torch.float64 else plan.model_frequencies
    frequencies = torch.tensor(values, dtype=exact, device=device)
    if positions.dim() == 3:
        if positions.size(0) > 1:
            positions = positions[torch.tensor(plan.axis, device=device)].movedim(0, -1)
        else:
            positions = positions[0][..., None]
    else:
        positions = positions[..., None]
    angles = frequencies * positions.to(exact)
    if plan.arithmetic == "parity_p3":  # models keep these as complex numbers, made by polar
        turns = torch.polar(torch.ones_like(angles), angles) * plan.amplitude
        cos, sin = turns.real, turns.imag
    else:
        cos, sin = angles.cos(), angles.sin()
        if plan.amplitude != 1.0:
            cos, sin = cos * plan.amplitude, sin * plan.amplitude
    if plan.sign < 0:
        sin = -sin
    if plan.arithmetic in ("parity_p0", "parity_p1"):
        cos, sin = cos.to(dtype), sin.to(dtype)
    return cos, sin
