"""A time line of a few calls: Nsight Systems' where ``nsys`` is there, else torch.profiler's."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from ..bench.cases import Case
from .target import prepared

CALLS = 5


def write(case: Case, in_place: bool, path: Path, device: torch.device) -> str:
    """Writes the time line; a sentence that names the file and what opens it.

    Nsight Systems writes FILE.nsys-rep beside ``path``, with the library's NVTX ranges; otherwise
    ``path`` becomes a Chrome trace, in which each call is a span of the same kind. Raises OSError."""
    tool = shutil.which("nsys")
    if tool is None or device.type != "cuda":
        _chrome(case, in_place, path, device)
        return f"{path}: a Chrome trace of {CALLS} calls (opens in Perfetto)."
    request = json.dumps(dataclasses.asdict(case) | {"in_place": in_place})
    report = path.with_suffix(".nsys-rep")
    command = [tool, "profile", "--trace=cuda,nvtx", "--sample=none", "--force-overwrite=true",
               f"--output={report.with_suffix('')}", sys.executable, "-m",
               "ropewalk.profiling.target", request]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
        _chrome(case, in_place, path, device)
        return f"{path}: a Chrome trace (opens in Perfetto); nsys failed: {lines[-1][:120]}."
    return f"{report}: a time line with the ranges of domain ropewalk (opens in Nsight Systems)."


def _chrome(case: Case, in_place: bool, path: Path, device: torch.device) -> None:
    rotate, q, k = prepared(case, in_place, device)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.no_grad(), torch.profiler.profile(activities=kinds) as profile:
        for call in range(CALLS):
            with torch.profiler.record_function(f"ropewalk: rotate, call {call}"):
                rotate(q, k)
        if device.type == "cuda":
            torch.cuda.synchronize()
    profile.export_chrome_trace(str(path))
