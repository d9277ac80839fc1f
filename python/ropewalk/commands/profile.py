"""``ropewalk profile``: one case under Nsight Compute or CUPTI, or timed where neither is possible."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..profiling import counters

SECONDS = 0.2


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        "ropewalk profile",
        description="What limits the rotation here: on a GPU DRAM bytes against the necessary ones, "
        "cache hits, occupancy, waves, and launches one by one against a graph's replay (Nsight "
        "Compute; CUPTI where it is not allowed); on the CPU times beside a copy's.",
    )  # fmt: skip
    for name, default in (("tokens", 8192), ("batch", 1), ("heads", 32), ("kv-heads", 8),
                          ("head-dim", 128)):  # fmt: skip
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--dtype", default="bfloat16",
                   choices=("float64", "float32", "float16", "bfloat16"))  # fmt: skip
    p.add_argument("--layout", default="bthd", choices=("bthd", "bhtd"))
    p.add_argument("--pairing", default="half", choices=("half", "interleaved"))
    p.add_argument("--in-place", action="store_true")
    p.add_argument("--output", type=Path, metavar="FILE", help="append the result as a JSON line")
    p.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one")
    p.add_argument("--trace", type=Path, metavar="FILE",
                   help="a time line: FILE.nsys-rep where nsys (Nsight Systems) is installed, else "
                   "a Chrome trace, which Perfetto opens")  # fmt: skip
    p.add_argument("--json", action="store_true")
    return p


def _times(case, in_place: bool, device) -> dict[str, float]:
    import torch

    from ..bench.field import fastest
    from ..bench.timing import ceilings, time_calls
    from ..labs.launch import back_to_back
    from ..profiling.target import prepared

    rotate, q, k = prepared(case, in_place, device)
    with torch.no_grad():
        us = time_calls(rotate, [(q, k)], SECONDS).median_us
        _, copy = fastest(ceilings(case.bytes, 1, SECONDS, device), in_place)
        times = {"us": us, "copy_us": copy.median_us}
        if device.type == "cuda":
            times |= {"launched_us": back_to_back(lambda: rotate(q, k))}
    return times


def _counted(case, in_place: bool, device) -> tuple[list[counters.Counters], list[str]]:
    """(launches, sentences about where they come from)."""
    if device.type != "cuda":
        return [], ["On the CPU there are no counters; only times were measured."]
    import torch

    from ..profiling import cupti, ncu
    from ..profiling.target import WARM, prepared

    launches, why_not = ncu.measure(case, in_place)
    if launches:
        return launches, []
    rotate, q, k = prepared(case, in_place, device)
    with torch.no_grad():
        for _ in range(WARM):
            rotate(q, k)
        launches, why_neither = cupti.collect(lambda: rotate(q, k), device)
    if launches:
        return launches, [f"{why_not}; the launches are CUPTI's, which counts no bytes here."]
    return [], [f"{why_not}; {why_neither}; only times were measured."]


def _print(result: dict) -> None:
    print(f"{result['case']}, {result['necessary_bytes']} bytes necessary")
    for launch in result["launches"]:
        for name, value in launch.items():
            print(f"  {name:20} {value if isinstance(value, str) else _number(value)}")
    for name, value in result["times"].items():
        print(f"  {name:20} {value:.2f}")
    print("\n".join(result["explanation"]))


def _number(value: float | None) -> str:
    return "not given" if value is None else f"{value:.6g}"


def main(words: list[str]) -> int:
    arguments = parser().parse_args(words)
    import torch

    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("ropewalk: profile: --device: there is no CUDA device", file=sys.stderr)
        return 2
    device = torch.device(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    from ..bench.cases import Case
    from ..profiling import trace

    case = Case(arguments.tokens, arguments.batch, arguments.heads, arguments.kv_heads,
                arguments.head_dim, dtype=arguments.dtype, layout=arguments.layout,
                pairing=arguments.pairing)  # fmt: skip
    launches, said = _counted(case, arguments.in_place, device)
    for launch in launches:
        said += counters.explain(launch, case.bytes)
    times = _times(case, arguments.in_place, device)
    if "launched_us" in times:
        said.append(counters.explain_launches(times["us"], times["launched_us"]))
    said.append(f"A copy of the same bytes takes {times['copy_us'] / times['us']:.3f} of the time.")
    if arguments.trace is not None:
        said.append(trace.write(case, arguments.in_place, arguments.trace, device))
    result = {
        "case": str(case) + (" in place" if arguments.in_place else ""),
        "device": device.type,
        "necessary_bytes": case.bytes,
        "launches": [launch.as_dict() for launch in launches],
        "times": times,
        "explanation": said,
    }
    if arguments.output is not None:
        with arguments.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        _print(result)
    return 0
