"""Microseconds of one call, cold and hot, and of the copies of the same run.

Cold: the calls go round several sets of buffers, together more than five times the largest cache.
Hot: one set, again and again. On a GPU the calls of a round are captured in a CUDA graph, so that
the host's share does not count; what cannot be captured is launched one by one, and says so.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

#: A working set counts as cold from so many times the largest cache on.
TIMES_CACHE = 5
#: Sets of buffers at most: a graph of more calls takes longer to make than to measure. Small calls stay
#: partly in the cache then; the rows say how large the working set was.
MOST_SETS = 512
#: Calls in one graph, at least: a launch of a graph costs several microseconds.
CALLS = 20

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Timing:
    median_us: float
    #: Distance of the quartiles divided by the median.
    spread: float
    samples: int
    #: Whether a CUDA graph was replayed; None on the CPU.
    graph: bool | None = None


def summarise(samples: Sequence[float], graph: bool | None = None) -> Timing:
    """Of microseconds per call; at least one."""
    middle = statistics.median(samples)
    if len(samples) < 2:
        return Timing(middle, 0.0, len(samples), graph)
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(middle, (third - first) / middle, len(samples), graph)


def sets_for(bytes_of_one: int, cache_bytes: int) -> int:
    """How many sets of buffers make the working set cold: at least 1, at most MOST_SETS."""
    return max(1, min(MOST_SETS, -(-TIMES_CACHE * cache_bytes // bytes_of_one)))


def time_calls(rotate: Callable[..., object], sets: Sequence[Pair], seconds: float) -> Timing:
    """Calls ``rotate(q, k)`` on the sets in turn, for about ``seconds``."""
    if sets[0][0].is_cuda:
        return _time_gpu(rotate, sets, seconds)
    return _time_cpu(rotate, sets, seconds)


def _time_cpu(rotate: Callable[..., object], sets: Sequence[Pair], seconds: float) -> Timing:
    clock = time.perf_counter
    start = clock()
    rotate(*sets[0])
    once = max(clock() - start, 1e-7)
    calls = max(1, min(len(sets) if len(sets) > 1 else 10_000, int(50e-6 / once)))
    samples, at, end = [], 0, clock() + seconds
    while len(samples) < 5 or (clock() < end and len(samples) < 2000):
        chosen = [sets[(at + i) % len(sets)] for i in range(calls)]
        at += calls
        start = clock()
        for q, k in chosen:
            rotate(q, k)
        samples.append((clock() - start) / calls * 1e6)
    return summarise(samples)


def _capture(rotate: Callable[..., object], sets: Sequence[Pair], calls: int):
    """A graph of the calls. Outputs are kept until all are captured, so that no two share memory
    (unless there is one set)."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for q, k in sets[:2]:
            rotate(q, k)  # compiles, allocates workspaces
    stream.synchronize()
    graph, kept = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph, stream=stream):
        for i in range(calls):
            result = rotate(*sets[i % len(sets)])
            if len(sets) > 1:
                kept.append(result)
    return graph, kept


def _time_gpu(rotate: Callable[..., object], sets: Sequence[Pair], seconds: float) -> Timing:
    calls = len(sets) * max(1, -(-CALLS // len(sets))) if len(sets) > 1 else CALLS
    if sets[0][0].numel() * sets[0][0].element_size() > 1 << 28:
        calls = max(len(sets), 3)
    kept: list = []
    try:
        graph, kept = _capture(rotate, sets, calls)
        replay, captured = graph.replay, True
    except (RuntimeError, AssertionError):
        torch.cuda.synchronize()

        def replay() -> None:
            for i in range(calls):
                rotate(*sets[i % len(sets)])

        captured = False
    for _ in range(2):
        replay()
    torch.cuda.synchronize()
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < 5 or (time.perf_counter() < end and len(samples) < 400):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(9)]
        for mark in marks[:-1]:
            mark.record()
            replay()
        marks[-1].record()
        torch.cuda.synchronize()
        samples += [a.elapsed_time(b) * 1e3 / calls for a, b in itertools.pairwise(marks)]
    del kept
    return summarise(samples, captured)


def ceilings(
    bytes_of_one: int, sets: int, seconds: float, device: torch.device
) -> dict[str, Timing]:
    """Passes that move the same bytes by name: into fresh outputs, as the peers do, and in place."""
    pool = [torch.ones(max(16, bytes_of_one // 2) // 4, device=device) for _ in range(sets)]
    pairs = [(x, x) for x in pool]
    passes = {
        "copy": lambda x, _: x.clone(),
        "negating copy": lambda x, _: torch.neg(x),
        "negation in place": lambda x, _: x.neg_(),
    }
    return {name: time_calls(work, pairs, seconds) for name, work in passes.items()}
