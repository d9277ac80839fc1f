"""``ropewalk profile``: one case under Nsight Compute, or timed where that is not possible."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

from ..profiling import counters


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        "ropewalk profile",
        description="What limits the rotation on this GPU: DRAM bytes against the necessary ones, "
        "cache hits, occupancy, waves; launches one by one against a graph's replay.",
    )
    for name, default in (("tokens", 8192), ("batch", 1), ("heads", 32), ("kv-heads", 8),
                          ("head-dim", 128)):  # fmt: skip
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--dtype", default="bfloat16",
                   choices=("float64", "float32", "float16", "bfloat16"))  # fmt: skip
    p.add_argument("--layout", default="bthd", choices=("bthd", "bhtd"))
    p.add_argument("--pairing", default="half", choices=("half", "interleaved"))
    p.add_argument("--in-place", action="store_true")
    p.add_argument("--output", type=Path, metavar="FILE", help="append the result as a JSON line")
    p.add_argument("--trace", type=Path, metavar="FILE",
                   help="a Chrome trace (opens in Perfetto), from torch.profiler")  # fmt: skip
    p.add_argument("--json", action="store_true")
    return p


def _under_ncu(case, in_place: bool) -> tuple[list[counters.Counters], str]:
    """(launches, why there are none)."""
    from ..profiling.target import WARM

    tool = shutil.which("ncu")
    if tool is None:
        return [], "ncu (Nsight Compute) is not installed; only times were measured"
    request = json.dumps(dataclasses.asdict(case) | {"in_place": in_place})
    command = [tool, "--csv", "--page", "raw", "--clock-control", "none", "--metrics",
               ",".join(counters.METRICS.values()), "--kernel-name", "regex:rotate",
               "--launch-skip", str(WARM), sys.executable, "-m", "ropewalk.profiling.target",
               request]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        return [], "the driver does not let this user read counters; only times were measured"
    try:
        return counters.parse(done.stdout), ""
    except ValueError as error:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
        return [], f"{error}; only times were measured (ncu: {lines[-1][:120]})"


def _times(case, in_place: bool) -> dict[str, float]:
    import torch

    from ..bench.timing import time_calls
    from ..labs.launch import back_to_back
    from ..profiling.target import prepared

    rotate, q, k = prepared(case, in_place)
    with torch.no_grad():
        replayed = time_calls(rotate, [(q, k)], 0.2).median_us
        return {"graph_us": replayed, "launched_us": back_to_back(lambda: rotate(q, k))}


def _trace(case, in_place: bool, path: Path) -> None:
    import torch

    from ..profiling.target import prepared

    rotate, q, k = prepared(case, in_place)
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.no_grad(), torch.profiler.profile(activities=kinds) as profile:
        for call in range(5):
            with torch.profiler.record_function(f"ropewalk rotate {call}"):
                rotate(q, k)
        torch.cuda.synchronize()
    profile.export_chrome_trace(str(path))


def _print(result: dict) -> None:
    print(f"{result['case']}, {result['necessary_bytes']} bytes necessary")
    for launch in result["launches"]:
        for name, value in launch.items():
            print(f"  {name:20} {value if isinstance(value, str) else _number(value)}")
    times = result["times"]
    print(f"  from a graph {times['graph_us']:.2f} µs, launched one by one "
          f"{times['launched_us']:.2f} µs")  # fmt: skip
    print("\n".join(result["explanation"]))


def _number(value: float | None) -> str:
    return "not given" if value is None else f"{value:.6g}"


def main(words: list[str]) -> int:
    arguments = parser().parse_args(words)
    import torch

    if not torch.cuda.is_available():
        print("ropewalk: profile: needs a CUDA device, and PyTorch finds none here",
              file=sys.stderr)  # fmt: skip
        return 2
    from ..bench.cases import Case

    case = Case(arguments.tokens, arguments.batch, arguments.heads, arguments.kv_heads,
                arguments.head_dim, dtype=arguments.dtype, layout=arguments.layout,
                pairing=arguments.pairing)  # fmt: skip
    launches, why_not = _under_ncu(case, arguments.in_place)
    said = [why_not + "."] if why_not else []
    for launch in launches:
        said += counters.explain(launch, case.bytes)
    result = {
        "case": str(case) + (" in place" if arguments.in_place else ""),
        "necessary_bytes": case.bytes,
        "launches": [launch.as_dict() for launch in launches],
        "times": _times(case, arguments.in_place),
        "explanation": said,
    }
    if arguments.trace is not None:
        _trace(case, arguments.in_place, arguments.trace)
    if arguments.output is not None:
        with arguments.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        _print(result)
    return 0
