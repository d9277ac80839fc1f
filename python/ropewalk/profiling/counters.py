"""Nsight Compute's CSV (``--csv --page raw``): reading it, and saying what limits the kernel."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass

#: Our name of a counter: Nsight Compute's.
METRICS = {
    "time_us": "gpu__time_duration.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "l1_hit_percent": "l1tex__t_sector_hit_rate.pct",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "waves": "launch__waves_per_multiprocessor",
}
#: Units of the second line of the CSV, as a factor to bytes, microseconds, percent or a number.
UNITS = {
    "byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "nsecond": 1e-3, "ns": 1e-3,
    "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6, "%": 1.0,
    "": 1.0, "register/thread": 1.0,
}  # fmt: skip


@dataclass(frozen=True)
class Counters:
    """Of one kernel launch; None where the tool does not give a counter on this device."""

    kernel: str
    time_us: float | None = None
    dram_read_bytes: float | None = None
    dram_write_bytes: float | None = None
    dram_percent: float | None = None
    l2_hit_percent: float | None = None
    l1_hit_percent: float | None = None
    sm_percent: float | None = None
    occupancy_percent: float | None = None
    registers: float | None = None
    waves: float | None = None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def parse(text: str) -> list[Counters]:
    """Every launch of the output. Lines of the tool (``==PROF== …``) and of the program before the
    header are skipped. Raises ValueError where there is no table, or a unit is unknown."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError("ncu: its output has no table")
    table = [line for line in lines[start:] if line.startswith('"')]
    reader = csv.DictReader(io.StringIO("\n".join(table)))
    units = next(reader, None)
    if units is None:
        raise ValueError("ncu: its table has no line of units")
    return [_launch(row, units) for row in reader]


def _launch(row: dict[str, str], units: dict[str, str]) -> Counters:
    values: dict[str, float] = {}
    for name, metric in METRICS.items():
        text = (row.get(metric) or "").replace(",", "")
        if text in ("", "n/a"):
            continue
        unit = units.get(metric) or ""
        if unit.lower() not in UNITS:
            raise ValueError(f"ncu: {metric}: unknown unit {unit!r}")
        values[name] = float(text) * UNITS[unit.lower()]
    return Counters(row.get("Kernel Name", "?"), **values)


def tail(waves: float) -> float:
    """Share of the time of whole waves in which the last, partial one leaves the device idle."""
    whole = -(-waves // 1)
    return (whole - waves) / whole if whole else 0.0


def _limit(counters: Counters) -> list[str]:
    if counters.dram_percent is None or counters.sm_percent is None:
        return []
    dram, sm = counters.dram_percent, counters.sm_percent
    if dram >= 80:
        return [f"Memory is the limit: DRAM runs at {dram:.0f} % of its peak."]
    if sm >= 80:
        return [f"Arithmetic and instruction issue are the limit: {sm:.0f} % of their peak."]
    if dram >= 60 or sm >= 60:
        return [f"Near a limit, not at it: DRAM {dram:.0f} %, multiprocessors {sm:.0f} %."]
    busy = f"memory ({dram:.0f} %) nor multiprocessors ({sm:.0f} %)"
    return [f"Neither {busy} are busy: latency or too little work limits it."]


def explain(counters: Counters, necessary_bytes: int) -> list[str]:
    """What limits the kernel, one sentence a fact."""
    said = _limit(counters)
    if counters.dram_read_bytes is not None and counters.dram_write_bytes is not None:
        moved = counters.dram_read_bytes + counters.dram_write_bytes
        ratio = moved / necessary_bytes
        said.append(f"Memory moved {ratio:.3f} of the necessary {necessary_bytes} bytes.")
        if ratio < 0.9:
            said.append("Less than necessary: part of it stayed in the L2 cache.")
        elif ratio > 1.1:
            said.append("More than necessary: something is read or written twice.")
    if counters.waves is not None and counters.waves > 0 and tail(counters.waves) > 0.1:
        said.append(
            f"The last of {counters.waves:.2f} waves is partial: up to {100 * tail(counters.waves):.0f} "
            f"% of the device's time is idle there."
        )
    return said


def explain_launches(graph_us: float, launched_us: float) -> str:
    """The host's share: the time of a call launched by itself beside that in a graph's replay."""
    share = max(0.0, 1 - graph_us / launched_us)
    if share > 0.1:
        return (
            f"Launched one by one a call takes {launched_us:.2f} µs, replayed from a CUDA graph "
            f"{graph_us:.2f} µs: {100 * share:.0f} % is launching."
        )
    return f"Launching hides behind the work: {launched_us:.2f} µs, from a graph {graph_us:.2f} µs."
