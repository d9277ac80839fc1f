"""Host overhead of the PyTorch operators on a GPU: microseconds a call, against torch's own
`x.add_(1)` in the same run; bytes allocated; kernels and copies launched.

    python bench/torch_host_bench.py --output result.json

Every case is verified before it is timed.
"""

import argparse
import datetime
import json
import platform
import sys
import time

import torch

import ropewalk

#: Largest ratio to x.add_(1).
TARGETS = {"in place": 0.85, "out of place": 1.4, "with grad": 2.8}


def host_time(function, calls: int = 300, rounds: int = 41) -> tuple[float, float, float]:
    """Microseconds a call that the host spends, the GPU never waited for: median, least, spread."""
    for _ in range(50):
        function()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - start) / calls * 1e6)
    low, median, high = (sorted(times)[int(len(times) * p)] for p in (0.1, 0.5, 0.9))
    return median, min(times), (high - low) / median


def allocated_bytes(function) -> tuple[int, int]:
    """Bytes the call allocates in all, and bytes of what it returns, as the allocator rounds."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocated_bytes.all.allocated"]
    result = function()
    after = torch.cuda.memory_stats()["allocated_bytes.all.allocated"]
    tensors = result if isinstance(result, tuple) else (result,)
    held = sum((t.numel() * t.element_size() + 511) // 512 * 512 for t in tensors)
    return after - before, held


def launches(function, calls: int = 10) -> dict[str, float]:
    """Kernels, copies and fills a call, from the profiler."""
    function()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(calls):
            function()
        torch.cuda.synchronize()
    on_device = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    copies = sum("memcpy" in e.name.lower() or "memset" in e.name.lower() for e in on_device)
    return {"kernels": (len(on_device) - copies) / calls, "copies": copies / calls}


def verify(rotary, q, k) -> None:
    on_cpu = rotary(q.cpu(), k.cpu(), offset=7)
    for got, want in zip(rotary(q, k, offset=7), on_cpu, strict=True):
        assert torch.equal(got.cpu(), want), "the GPU's bits differ from the CPU's"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", help="JSON file to write")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch_host_bench: needs a GPU", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    rotary = ropewalk.RotaryEmbedding(128, layout="thd")
    plan = rotary.plan
    q = torch.randn(4, 32, 128, device="cuda", dtype=torch.bfloat16)
    k = torch.randn(4, 8, 128, device="cuda", dtype=torch.bfloat16)
    verify(rotary, q, k)
    positions = torch.arange(4, device="cuda")
    q_grad, k_grad = (t.clone().requires_grad_() for t in (q, k))
    x = torch.ones(4, 32, 128, device="cuda", dtype=torch.bfloat16)
    op = torch.ops.ropewalk._rotate_.default
    op_known = torch.ops.ropewalk._rotate_known_.default._op
    text = plan.text
    number = plan.numbers_cuda["thd"]
    no_q, no_k = q[:0], k[:0]
    # From the inside out: each layer holds the one before it.
    cases = {
        "x.add_(1)": lambda: x.add_(1),
        "add_ to an empty tensor": lambda: no_q.add_(1),
        "operator, by number, nothing to launch": lambda: op_known(no_q, no_k, number, 0, None),
        "operator, by number, in place": lambda: op_known(q, k, number, 0, None),
        "operator, by text, in place": lambda: op(q, k, text, -3),
        "in place": lambda: ropewalk.rotate_(q, k, plan=plan, layout="thd"),
        "in place, positions": lambda: ropewalk.rotate_(q, k, plan=plan, positions=positions,
                                                        layout="thd"),
        "in place, module": lambda: rotary(q, k, inplace=True),
        "two torch.empty_like": lambda: (torch.empty_like(q), torch.empty_like(k)),
        "out of place": lambda: ropewalk.rotate(q, k, plan=plan, layout="thd"),
        "out of place, module": lambda: rotary(q, k),
        "with grad": lambda: ropewalk.rotate(q_grad, k_grad, plan=plan, layout="thd"),
        "with grad, module": lambda: rotary(q_grad, k_grad),
    }  # fmt: skip
    rows = {}
    # Two sweeps: a drift between the first and the last case would show.
    for _ in range(2):
        for name, function in cases.items():
            median, least, spread = host_time(function)
            if name not in rows or median < rows[name]["median_us"]:
                rows[name] = {"median_us": median, "min_us": least, "spread": spread}
    base = rows["x.add_(1)"]["median_us"]
    for name, function in cases.items():
        row = rows[name]
        row["ratio_to_add"] = row["median_us"] / base
        if name in TARGETS:
            row["target"] = TARGETS[name]
            row["allocated_bytes"], row["output_bytes"] = allocated_bytes(function)
            row |= launches(function)
        print(f"{name:40} {row['median_us']:7.2f} us  {row['ratio_to_add']:5.2f} x add_", row)
    result = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": "python " + " ".join(sys.argv),
        "machine": {
            "gpu": torch.cuda.get_device_name(),
            "cpu": platform.processor() or platform.machine(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "ropewalk": ropewalk.__version__,
        },
        "case": "4 tokens, 32 + 8 heads of 128, bfloat16; in place writes no memory of its own",
        "statistic": "median of 41 rounds of 300 calls, the better of two sweeps",
        "rows": rows,
    }
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
