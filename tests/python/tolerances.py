"""The bounds of verify/tolerance.h, through its one reader."""

from __future__ import annotations

from ropewalk.bench.tolerances import constant

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def trig_error(dtype: str) -> float:
    return constant("kTrigError64" if dtype == "float64" else "kTrigError32")


def unit_input_bound(dtype: str) -> float:
    """How far an output may be from the exact one where no input is beyond 1 in magnitude."""
    root_two = 2.0**0.5
    compute = UNIT_ROUNDOFF["float64" if dtype == "float64" else "float32"]
    return root_two * UNIT_ROUNDOFF[dtype] + 2 * trig_error(dtype) + (1 + root_two) * compute


def printed_decimals(decimals: int) -> float:
    """Half a unit of the last of so many decimals."""
    return 0.5 * 10.0**-decimals


def roundings(dtype: str, count: int) -> float:
    """The relative error of so many roundings to nearest, those of both sides counted."""
    return count * UNIT_ROUNDOFF[dtype]
