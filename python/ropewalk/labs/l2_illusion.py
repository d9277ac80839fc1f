"""How a tutorial measured 670 GB/s on a card whose memory gives 288.

It rotated two float32 tensors of (512, 12, 128), counted three tensors' worth of bytes for each, and
called again and again on the same 6 MB, which stay in the L2 cache.
"""

from __future__ import annotations

import torch

from ..bench.cases import Case
from ..bench.machine import cache_bytes, peak_bytes_per_second
from ..bench.packages import Packages
from ..bench.peers.ropewalk import PEERS
from ..bench.setting import Setting
from ..bench.timing import ceilings, sets_for, time_calls
from ..profiling import ncu
from ..profiling.counters import Counters

SECONDS = 0.3


def figures(moved: int, hot_us: float, cold_us: float) -> list[tuple[str, float]]:
    """(what was counted on which buffers, GB/s)."""
    return [
        ("three tensors counted, the same buffers again and again", 1.5 * moved / hot_us * 1e-3),
        ("two tensors counted, the same buffers", moved / hot_us * 1e-3),
        ("two tensors counted, buffers beyond the cache in turn", moved / cold_us * 1e-3),
    ]


def counted(launches: list[Counters], hot_us: float) -> list[tuple[str, float]]:
    """What the memory itself moved in a call on the same buffers."""
    moved = [
        launch.dram_read_bytes + launch.dram_write_bytes
        for launch in launches
        if launch.dram_read_bytes is not None and launch.dram_write_bytes is not None
    ]
    if not moved:
        return []
    return [("bytes that DRAM moved (counter), the same buffers", sum(moved) / hot_us * 1e-3)]


def run(device: torch.device) -> dict[str, object]:
    case = Case(512, 1, 12, 12, dtype="float32")
    setting = Setting(case, device, Packages(), seed=0)
    in_place = next(peer for peer in PEERS if peer.in_place)
    rotate = in_place.prepare(setting)
    sets = sets_for(case.bytes, cache_bytes(device))
    inputs = setting.inputs(sets)
    with torch.no_grad():
        hot = time_calls(rotate, inputs[:1], SECONDS)
        cold = time_calls(rotate, inputs, SECONDS)
        copies = ceilings(case.bytes, sets, SECONDS, device)
    flip = copies["negation in place"].median_us
    rows = figures(case.bytes, hot.median_us, cold.median_us)
    rows.append(("a read-modify-write pass over the same cold buffers", case.bytes / flip * 1e-3))
    why_not = "The CPU has no counters to ask."
    if device.type == "cuda":
        launches, why_not = ncu.measure(case, in_place=True, flush=False)
        rows += counted(launches, hot.median_us)
        why_not = f"The counters were not read: {why_not}." if why_not else ""
    cache = "L2 cache" if device.type == "cuda" else "largest cache"
    peak = peak_bytes_per_second(device)
    if peak:
        rows.append(("the peak of the memory", peak * 1e-9))
    return {
        "columns": ["what was counted", "GB/s"],
        "rows": rows,
        "explanation": (
            f"The case moves {case.bytes / 1e6:.1f} MB a call: each byte of q and k read once and "
            f"written once. Counting cosines and sines as a third tensor makes 1.5 of it, though "
            f"heads share them. {case.bytes / 2e6:.1f} MB fit into the {cache} of "
            f"{cache_bytes(device) / 1e6:.0f} MB, so that the first two figures are the cache's; "
            f"the third goes round {sets} sets. {why_not}"
        ),
    }
