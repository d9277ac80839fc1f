"""What rotations do: a log in JSON lines of each call, and counters. Both off until asked for.

The environment variable ``ROPEWALK_LOG`` names a log file for a whole process.
"""

from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import dataclass, fields
from pathlib import Path

from .ops import _CUDA, _FOLDER, SERVES_CPU, SERVES_CUDA


@dataclass(frozen=True)
class CallCounters:
    """Sums since counting began or was reset. ``tokens`` are batch × tokens of each call; ``bytes``
    those read and written; ``lines_dropped`` lines of the log that could not be written."""

    cpu_calls: int = 0
    cuda_launches: int = 0
    tokens: int = 0
    bytes: int = 0
    lines_dropped: int = 0


@functools.cache
def _libraries() -> list[ctypes.CDLL]:
    """Every loaded library that rotates: each has its own observer and sums."""
    names = [_FOLDER / "libropewalk_plan.so"]  # streams
    if SERVES_CPU:
        names.append(_FOLDER / "libropewalk_torch_cpu.so")
    if SERVES_CUDA:
        names.append(_CUDA)
    libraries = [ctypes.CDLL(str(name)) for name in names]
    for library in libraries:
        library.ropewalk_python_log_calls.argtypes = [ctypes.c_char_p]
        library.ropewalk_python_log_problem.restype = ctypes.c_char_p
        library.ropewalk_python_reset_counters.restype = None
    return libraries


def log_calls(path: str | os.PathLike | None) -> None:
    """Appends one JSON object a line for each rotation to a file, from now on; None: no more.

    Fields: time_ns, device, device_id, kernel (or launch policy), positions (their kind), dtype,
    direction, in_place, table, views, batch, tokens, heads, head_dim, rotary_dim, bytes,
    fingerprint. Threads and processes may share a file.
    """
    name = b"" if path is None else os.fsencode(Path(path).absolute())
    for library in _libraries():
        if library.ropewalk_python_log_calls(name) != 0:
            raise OSError(library.ropewalk_python_log_problem().decode())


def count_calls(on: bool = True) -> None:
    """Turns counting on or off; the sums stay."""
    for library in _libraries():
        library.ropewalk_python_count_calls(int(on))


def call_counters() -> CallCounters:
    sums = [0] * len(fields(CallCounters))
    for library in _libraries():
        values = (ctypes.c_ulonglong * len(sums))()
        library.ropewalk_python_counters(values)
        sums = [total + value for total, value in zip(sums, values, strict=True)]
    return CallCounters(*sums)


def reset_call_counters() -> None:
    for library in _libraries():
        library.ropewalk_python_reset_counters()


def log_as_environment_says() -> None:
    path = os.environ.get("ROPEWALK_LOG")
    if path:
        log_calls(path)
