"""Any plan in plain PyTorch, for devices and versions without the operators (fallback="reference").
Angles are formed in float64 on the CPU and rounded once, so it is right but slow."""

from __future__ import annotations

import torch
from torch import Tensor

from .call import Call, geometry_of, half_width, plan_of, token_positions
from .pairs import Geometry, join_written, split_read
from .plans import Plan


def _angles(plan: Plan, positions: Tensor) -> Tensor:
    """(…, token, pair) in float64, from (token), (batch, token) or (axes, batch, token)."""
    frequencies = torch.tensor(plan.frequencies, dtype=torch.float64, device="cpu")
    positions = positions.detach().cpu().double()
    if positions.dim() < 3 or positions.size(0) == 1:
        positions = positions[0] if positions.dim() == 3 else positions
        return positions[..., None] * frequencies
    return positions[torch.tensor(plan.axis)].movedim(0, -1) * frequencies


def _compute_dtype(plan: Geometry, dtype: torch.dtype) -> torch.dtype:
    """Of products and sums: parity_p0 rounds each to the dtype of the data."""
    if plan.arithmetic == "parity_p4" or dtype == torch.float64:
        return torch.float64
    return dtype if plan.arithmetic == "parity_p0" else torch.float32


def _cos_sin(
    call: Call, plan: Geometry, batch: int, tokens: int, dtype: torch.dtype, device: torch.device
):
    positions = token_positions(call, batch, tokens, device)
    if call.cos is None:
        whole = plan_of(call.plan)
        angles = _angles(whole, positions)
        cos, sin = angles.cos() * whole.amplitude, angles.sin() * (whole.amplitude * whole.sign)
    else:
        rows = positions if call.padding is None else positions.clamp(min=0)
        cos, sin = (half_width(table, plan)[rows] for table in (call.cos, call.sin))
    exact = _compute_dtype(plan, dtype)
    return cos.to(exact).to(device), sin.to(exact).to(device)


def rotate_reference(q: Tensor, k: Tensor | None, call: Call) -> tuple[Tensor, Tensor | None]:
    """The same arguments and result as the operators, differentiable throughout."""
    plan = Geometry(*geometry_of(call.plan))
    if not plan.rotates:
        return q.clone(), None if k is None else k.clone()
    batch = q.size(0) if q.dim() == 4 else 1
    cos, sin = _cos_sin(call, plan, batch, q.size(call.token_dim), q.dtype, q.device)
    cos, sin = cos.unsqueeze(call.head_axis), sin.unsqueeze(call.head_axis)
    if call.inverse:
        sin = -sin

    def rotated(x: Tensor) -> Tensor:
        x0, x1 = (half.to(cos.dtype) for half in split_read(x, plan, call.inverse))
        y = join_written(x0 * cos - x1 * sin, x1 * cos + x0 * sin, x, plan, call.inverse)
        if call.padding is None:
            return y
        positions = token_positions(call, batch, x.size(call.token_dim), x.device)
        pads = (positions == call.padding).unsqueeze(call.head_axis + 1).unsqueeze(-1)
        return torch.where(pads, x, y)

    return rotated(q), None if k is None else rotated(k)
