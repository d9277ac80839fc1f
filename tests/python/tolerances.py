"""Reader of verify/tolerance.h, the one place that states how far a result may be from the truth."""

from __future__ import annotations

import re
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "verify" / "tolerance.h"
UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def constant(name: str) -> float:
    """The value of `inline constexpr double NAME`."""
    found = re.search(rf"constexpr double {name} = ([0-9.e+-]+);", HEADER.read_text("utf-8"))
    if found is None:
        raise KeyError(f"{HEADER.name} has no constant {name}")
    return float(found.group(1))


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
