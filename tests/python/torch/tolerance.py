"""The bounds of verify/tolerance.h on tensors; its constants come through the one reader."""

from __future__ import annotations

import numpy as np
import torch

from tolerances import constant

TRIG_ERROR_32 = constant("kTrigError32")
TRIG_ERROR_64 = constant("kTrigError64")
CORRECTLY_ROUNDED_SHARE = constant("kCorrectlyRoundedShare")

_SUBNORMAL = {torch.float64: 2.0**-1074, torch.float32: 2.0**-149, torch.float16: 2.0**-24,
              torch.bfloat16: 2.0**-133}  # fmt: skip


def trig_error(dtype: torch.dtype) -> float:
    return TRIG_ERROR_64 if dtype == torch.float64 else TRIG_ERROR_32


def unit_roundoff(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def exact_bound(dtype: torch.dtype, y, x_cos, x_sin, c, s, amplitude: float = 1.0):
    """exact_bound of verify/tolerance.h, on arrays: y = amplitude · (x_cos · c ± x_sin · s)."""
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    u_out, u_c, a = unit_roundoff(dtype), unit_roundoff(compute), abs(amplitude)
    size, cos_part, sin_part = np.abs(y), a * np.abs(x_cos * c), a * np.abs(x_sin * s)
    bound = (
        u_out * size
        + trig_error(dtype) * a * (np.abs(x_cos) + np.abs(x_sin))
        + u_c * (sin_part + size)
        + _SUBNORMAL[compute]
        + _SUBNORMAL[dtype] / 2
    )
    if a != 1:
        bound = bound + 2 * u_c * (cos_part + sin_part)
    return bound


def table_bound(dtype: torch.dtype, y, x_cos, x_sin, c, s):
    """The same where cosine and sine are given exactly: no trigonometric error."""
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    return (
        unit_roundoff(dtype) * np.abs(y)
        + 2 * unit_roundoff(compute) * (np.abs(x_cos * c) + np.abs(x_sin * s))
        + _SUBNORMAL[compute]
        + _SUBNORMAL[dtype] / 2
    )


def near(dtype: torch.dtype, size: float = 1.0, rotations: int = 1, digits: int | None = None):
    """Keywords of assert_close for results of inputs up to ``size`` in magnitude, that went through
    so many rotations, against others that did too; or against values printed with so many decimal
    digits. From exact_bound: an output is at most sqrt(2) times an input."""
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    once = 2**0.5 * size * (
        unit_roundoff(dtype) + 2 * trig_error(dtype) + 2 * unit_roundoff(compute)
    )  # fmt: skip
    printed = 0.0 if digits is None else 0.5 * 10.0**-digits
    return {"rtol": 0.0, "atol": 2 * rotations * once + printed}
