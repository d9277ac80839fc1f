"""Running Nsight Compute on one launch of a case."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys

from ..bench.cases import Case
from .counters import METRICS, Counters, parse
from .target import WARM


def measure(case: Case, in_place: bool, flush: bool = True) -> tuple[list[Counters], str]:
    """(launches, why there are none). With ``flush`` the caches are empty before the launch, else as
    the warming calls on the same buffers left them."""
    tool = shutil.which("ncu")
    if tool is None:
        return [], "ncu (Nsight Compute) is not installed"
    request = json.dumps(dataclasses.asdict(case) | {"in_place": in_place})
    command = [tool, "--csv", "--page", "raw", "--clock-control", "none", "--cache-control",
               "all" if flush else "none", "--metrics", ",".join(METRICS.values()),
               "--kernel-name", "regex:rotate", "--launch-skip", str(WARM), sys.executable, "-m",
               "ropewalk.profiling.target", request]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        return [], "the driver does not let this user read counters"
    try:
        return parse(done.stdout), ""
    except ValueError as error:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
        return [], f"{error} ({lines[-1][:120]})"
