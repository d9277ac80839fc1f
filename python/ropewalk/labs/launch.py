"""Launch overhead: kernels of 1 … 10^6 elements, launched one by one and replayed from a graph."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from ..bench.timing import summarise, time_calls

ELEMENTS = tuple(10**n for n in range(7))
CALLS = 200


def back_to_back(call: Callable[[], object]) -> float:
    """Median microseconds a call of launches one after the other, the GPU waited for at the end."""
    samples = []
    for _ in range(11):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
        samples.append((time.perf_counter() - start) / CALLS * 1e6)
    return summarise(samples[1:]).median_us


def run(device: torch.device) -> dict[str, object]:
    rows = []
    for elements in ELEMENTS:
        x = torch.ones(elements, device=device)
        replayed = time_calls(lambda x, _: x.neg_(), [(x, x)], 0.05).median_us
        rows.append((elements, back_to_back(x.neg_), replayed, 8 * elements / replayed * 1e-3))
    return {
        "columns": ["elements", "µs, launched", "µs, from a graph", "GB/s, from a graph"],
        "rows": rows,
        "explanation": (
            "Up to the size where the two columns meet, the host's launch costs more than the work: "
            "at decode a fused kernel wins by being one launch, and a CUDA graph takes the host out."
        ),
    }
