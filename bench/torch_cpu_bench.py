"""The operators on the CPU against eager PyTorch, torch.compile and cloning the inputs.

    python bench/torch_cpu_bench.py --output result.json

1 x 32 x 2048 x 128 (batch, heads, tokens, channels), q alone. Every result is verified before it is
timed. Run it on a quiet machine: the load average is written beside the numbers.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import time

import torch

import ropewalk

SHAPE = (1, 32, 2048, 128)
#: name: (numerator, denominator, bound, whether the ratio must be at least or at most the bound)
TARGETS = {
    "eager / in place": ("eager", "in place", 10.0, "least"),
    "eager / out=": ("eager", "out=", 10.0, "least"),
    "torch.compile / in place": ("torch.compile", "in place", 2.0, "least"),
    "torch.compile / out=": ("torch.compile", "out=", 2.0, "least"),
    "fresh outputs / clone": ("fresh outputs", "clone", 1.2, "most"),
}


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def eager(x, cos, sin):
    """What transformers' Llama does, tables ready."""
    return x * cos + rotate_half(x) * sin


def time_all(cases: dict, rounds: int) -> dict:
    """Milliseconds a call. The cases take turns, so that a disturbance meets all of them."""
    times = {name: [] for name in cases}
    for round_number in range(rounds + 2):
        for name, function in cases.items():
            start = time.perf_counter()
            function()
            elapsed = (time.perf_counter() - start) * 1e3
            if round_number >= 2:
                times[name].append(elapsed)
    return {
        name: {"median_ms": statistics.median(values), "min_ms": min(values)}
        for name, values in times.items()
    }


def measure(dtype: torch.dtype, rounds: int) -> dict:
    rotary = ropewalk.RotaryEmbedding(SHAPE[-1])
    x = torch.randn(SHAPE).to(dtype)
    cos, sin = (torch.cat([t, t], dim=-1).to(dtype) for t in rotary.cos_sin(SHAPE[2]))
    expected = eager(
        x.double(), *(torch.cat([t, t], -1).double() for t in rotary.cos_sin(SHAPE[2]))
    )
    spacing = torch.finfo(dtype).eps * x.abs().max().item() * 2
    out, scratch = torch.empty_like(x), x.clone()
    compiled = torch.compile(eager, fullgraph=True)
    ropewalk.rotate(x, plan=rotary.plan, out=out)
    for got in (out, rotary(x), rotary(x.clone(), inplace=True)):
        assert (got.double() - expected).abs().max() <= spacing, "wrong result: not timed"
    for got in (eager(x, cos, sin), compiled(x, cos, sin)):
        assert (got.double() - expected).abs().max() <= 4 * spacing, "wrong baseline: not timed"
    with torch.no_grad():
        rows = time_all(
            {
                "in place": lambda: ropewalk.rotate_(scratch, plan=rotary.plan),
                "out=": lambda: ropewalk.rotate(x, plan=rotary.plan, out=out),
                "fresh outputs": lambda: ropewalk.rotate(x, plan=rotary.plan),
                "clone": lambda: x.clone(),
                "copy into given memory": lambda: out.copy_(x),
                "torch.compile": lambda: compiled(x, cos, sin),
                "eager": lambda: eager(x, cos, sin),
            },
            rounds,
        )
    ratios = {}
    for name, (above, below, bound, sense) in TARGETS.items():
        ratio = rows[above]["median_ms"] / rows[below]["median_ms"]
        met = ratio >= bound if sense == "least" else ratio <= bound
        least = rows[above]["min_ms"] / rows[below]["min_ms"]
        ratios[name] = {
            "ratio": ratio, "ratio_of_least": least, f"target_at_{sense}": bound, "met": met
        }  # fmt: skip
    return {"rows": rows, "ratios": ratios}


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(
                line.split(":")[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    load_before = os.getloadavg()
    results = {str(d): measure(d, arguments.rounds) for d in (torch.float32, torch.bfloat16)}
    for dtype, result in results.items():
        for name, row in result["rows"].items():
            print(f"{dtype:16} {name:24} {row['median_ms']:8.2f} ms  (least {row['min_ms']:.2f})")
        for name, row in result["ratios"].items():
            print(
                f"{dtype:16} {name:24} {row['ratio']:8.2f}     {'met' if row['met'] else 'MISSED'}"
            )
    if arguments.output:
        document = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": "python " + " ".join(sys.argv),
            "machine": {
                "cpu": cpu_name(),
                "processors": os.cpu_count(),
                "threads": torch.get_num_threads(),
                "torch": torch.__version__,
                "ropewalk": ropewalk.__version__,
                "load_before": load_before,
                "load_after": os.getloadavg(),
            },
            "shape": SHAPE,
            "statistic": f"median of {arguments.rounds} rounds in which the cases take turns",
            "results": results,
        }
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
