"""Reader of verify/tolerance.h, the one place that states how far a result may be from the truth.

A wheel carries the header; in a source tree it is read where it lies."""

from __future__ import annotations

import functools
import re
from pathlib import Path

_INSTALLED = Path(__file__).parents[1] / "share" / "ropewalk" / "tolerance.h"
_SOURCE = Path(__file__).resolve().parents[3] / "verify" / "tolerance.h"


@functools.cache
def _text() -> str:
    return (_INSTALLED if _INSTALLED.exists() else _SOURCE).read_text(encoding="utf-8")


@functools.cache
def constant(name: str) -> float:
    """The value of `inline constexpr double NAME`. Raises KeyError where there is none."""
    found = re.search(rf"constexpr double {name} = ([0-9.e+-]+);", _text())
    if found is None:
        raise KeyError(f"tolerance.h has no constant {name}")
    return float(found.group(1))
