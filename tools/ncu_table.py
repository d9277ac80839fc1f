#!/usr/bin/env python3
"""A Markdown table of Nsight Compute's counters.

    ncu --csv --page raw ... > profile.csv
    tools/ncu_table.py profile.csv --launches profile.txt

One row for each launch: duration, bytes moved by the memory, the share of the memory's and the
multiprocessors' peak, hit rate of the L2 cache, issue slots in use, active warps, instructions,
registers, waves, and the three commonest reasons why warps wait (average number of waiting warps
for each instruction issued). `--launches` names the rows: a line each, as cuda_bench --profile
writes it.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from pathlib import Path

# Multiples of the base unit: seconds and bytes. Counts and percentages have none.
UNITS = {
    "nsecond": 1e-9,
    "ns": 1e-9,
    "usecond": 1e-6,
    "us": 1e-6,
    "msecond": 1e-3,
    "ms": 1e-3,
    "second": 1.0,
    "s": 1.0,
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
}
STALL = re.compile(
    r"issue_stalled_(\w+?)(?:_per_issue_active|_per_warp_active)?\.(?:ratio|avg|pct)"
)

COLUMNS = (
    ("µs", "gpu__time_duration.sum", 1e6, "{:.2f}"),
    ("MB read", "dram__bytes_read.sum", 1e-6, "{:.2f}"),
    ("MB written", "dram__bytes_write.sum", 1e-6, "{:.2f}"),
    ("DRAM %", "dram__throughput.avg.pct_of_peak_sustained_elapsed", 1, "{:.1f}"),
    ("SM %", "sm__throughput.avg.pct_of_peak_sustained_elapsed", 1, "{:.1f}"),
    ("L2 hits %", "lts__t_sector_hit_rate.pct", 1, "{:.1f}"),
    ("issue %", "smsp__issue_active.avg.pct_of_peak_sustained_active", 1, "{:.1f}"),
    ("warps %", "sm__warps_active.avg.pct_of_peak_sustained_active", 1, "{:.1f}"),
    ("M instr.", "smsp__inst_executed.sum", 1e-6, "{:.3f}"),
    ("regs", "launch__registers_per_thread", 1, "{:.0f}"),
    ("blocks", "launch__grid_size", 1, "{:.0f}"),
    ("threads", "launch__block_size", 1, "{:.0f}"),
    ("waves", "launch__waves_per_multiprocessor", 1, "{:.2f}"),
)


def number(text: str, unit: str) -> float | None:
    """A counter in base units; None where there is none."""
    try:
        return float(text.replace(",", "")) * UNITS.get(unit, 1.0)
    except ValueError:
        return None


def read_launches(lines: list[str]) -> list[dict[str, float | str | None]]:
    """The launches of a CSV of `ncu --csv --page raw`: a heading, a row of units, rows."""
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError('no heading that begins with "ID": is this the CSV of ncu --page raw?')
    heading, units, *rows = csv.reader(line for line in lines[start:] if line.startswith('"'))
    launches = []
    for row in rows:
        launch: dict[str, float | str | None] = {}
        for name, unit, text in zip(heading, units, row, strict=True):
            launch[name] = text if name == "Kernel Name" else number(text, unit)
        launches.append(launch)
    return launches


def stalls(launch: dict[str, float | str | None]) -> str:
    """The three commonest reasons, "long_scoreboard 12.3, …"."""
    found: dict[str, float] = {}
    for name, value in launch.items():
        match = STALL.search(name)
        if match and isinstance(value, float):
            found[match.group(1)] = max(value, found.get(match.group(1), 0.0))
    largest = sorted(found.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{reason} {value:.1f}" for reason, value in largest)


def cells_of(launch: dict[str, float | str | None]) -> list[str]:
    cells = []
    for _, name, scale, form in COLUMNS:
        value = launch.get(name)
        cells.append(form.format(value * scale) if isinstance(value, float) else "")
    return [*cells, stalls(launch)]


def table(launches: list[dict[str, float | str | None]], names: list[list[str]]) -> str:
    lines = [
        "| case | launch | " + " | ".join(c[0] for c in COLUMNS) + " | waiting warps |",
        "|---|---|" + "---:|" * len(COLUMNS) + "---|",
    ]
    for launch, name in zip(launches, names, strict=True):
        lines.append("| " + " | ".join([*name, *cells_of(launch)]) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", type=Path, help="output of ncu --csv --page raw")
    parser.add_argument("--launches", type=Path, help="a line for each launch: case, tab, what")
    arguments = parser.parse_args()
    try:
        lines = arguments.csv.read_text(encoding="utf-8").splitlines()
        launches = read_launches(lines)
        names = [["", str(launch.get("Kernel Name"))] for launch in launches]
        if arguments.launches:
            named = arguments.launches.read_text(encoding="utf-8").splitlines()
            names = [line.split("\t") for line in named]
        if len(names) != len(launches):
            raise ValueError(f"{len(launches)} launches, but {len(names)} names")
    except (OSError, ValueError) as error:
        print(f"ncu_table: {arguments.csv}: {error}", file=sys.stderr)
        return 1
    print(table(launches, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
