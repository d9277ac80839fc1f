"""Kernel launches as CUPTI reports them, through torch.profiler: for machines without Nsight Compute,
or whose driver keeps the counters to itself. It counts no bytes and no cache hits."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from .counters import Counters

#: Blocks that a multiprocessor holds at once, whatever their size.
MOST_BLOCKS = 32


def blocks_at_once(threads: int, registers: int, properties: object) -> int:
    """Blocks of one multiprocessor that its threads and registers have room for; at least 1.

    ``properties`` is what torch.cuda.get_device_properties gives."""
    by_threads = properties.max_threads_per_multi_processor // max(threads, 1)
    by_registers = properties.regs_per_multiprocessor // max(registers * threads, 1)
    return max(1, min(MOST_BLOCKS, by_threads, by_registers))


def launches(trace: dict, properties: object) -> list[Counters]:
    """Every kernel of a Chrome trace of torch.profiler, in the order of their start."""
    events = [e for e in trace.get("traceEvents", ()) if e.get("cat") == "kernel"]
    return [_launch(event, properties) for event in sorted(events, key=lambda e: e["ts"])]


def _launch(event: dict, properties: object) -> Counters:
    told = event.get("args", {})
    registers, block = told.get("registers per thread"), told.get("block")
    waves = None
    if registers and block and told.get("grid"):
        (gx, gy, gz), (bx, by, bz) = told["grid"], block
        room = blocks_at_once(bx * by * bz, registers, properties)
        waves = gx * gy * gz / (properties.multi_processor_count * room)
    return Counters(
        event["name"],
        time_us=float(event["dur"]),
        occupancy_percent=told.get("est. achieved occupancy %"),
        registers=registers,
        waves=waves,
    )


def collect(call: Callable[[], object], device: torch.device) -> tuple[list[Counters], str]:
    """(launches of one call, why there are none)."""
    if torch.profiler.ProfilerActivity.CUDA not in torch.profiler.supported_activities():
        return [], "this PyTorch has no CUPTI"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(encoding="utf-8"))
    found = launches(trace, torch.cuda.get_device_properties(device))
    return found, "" if found else "CUPTI reported no kernel"
