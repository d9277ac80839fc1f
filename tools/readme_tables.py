#!/usr/bin/env python3
"""Fills README.md's accuracy and speed tables from results files.

    tools/readme_tables.py            rewrites README.md
    tools/readme_tables.py --check    exit status 1 where README.md is stale

The files come from the command line of the same tree:
    ropewalk verify --full --json        > bench/results/cpu_verify.json
    ropewalk bench … --json              > bench/results/cpu_bench.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
DTYPES = ("float64", "float32", "float16", "bfloat16")


def accuracy_table(report: dict) -> str:
    """One row per dtype: kernels agree bit for bit, so the worst of all stands for each."""
    lines = [
        "| data | worst error ÷ bound | worst absolute error | correctly rounded |",
        "|---|---|---|---|",
    ]
    for dtype in DTYPES:
        rows = [row for row in report["rows"] if row["dtype"] == dtype]
        ratio = max(row["worst_error_to_bound"] for row in rows)
        error = max(row["worst_abs_error"] for row in rows)
        share = min(row["correctly_rounded_share"] for row in rows)
        rounded = f"≥ {100 * share:.3f} %" if dtype in ("float16", "bfloat16") else "–"
        lines.append(f"| {dtype} | {ratio:.3f} | {error:.2g} | {rounded} |")
    kernels = sorted({row["kernel"] for row in report["rows"]})
    cases = sum(row["cases"] for row in report["rows"]) // len(kernels)
    failed = sum(row["failed"] for row in report["rows"])
    lines.append("")
    lines.append(
        f"{cases} cases for each of the kernels {', '.join(kernels)}; {failed} failures "
        f"(`ropewalk verify --{report['size']}`, `bench/results/cpu_verify.json`)."
    )
    return "\n".join(lines)


def speed_table(report: dict) -> str:
    lines = [
        "| tokens | heads | dtype | layout | pairing | placement | µs | GB/s | of the copy floor |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in report["rows"]:
        placement = "in place" if row["in_place"] else "out of place"
        microseconds = row["us"]
        time = f"{microseconds:.2f}" if microseconds < 10 else f"{microseconds:.0f}"
        lines.append(
            f"| {row['tokens']} | {row['query_heads']}+{row['key_heads']} of {row['head_dim']} "
            f"| {row['dtype']} | {row['layout']} | {row['pairing']} | {placement} | {time} "
            f"| {row['gb_per_s']:.0f} | {row['ratio_to_floor']:.2f} |"
        )
    machine = report["machine"]
    lines.append("")
    lines.append(
        f"{machine['cpu']}, {machine['processors']} processors, {report['date']}, "
        "`bench/results/cpu_bench.json`, where each row has the command that reproduces it."
    )
    return "\n".join(lines)


def filled(readme: str, name: str, table: str) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, rest = readme.split(begin, 1)
    _, tail = rest.split(end, 1)
    return f"{head}{begin}\n{table}\n{end}{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where stale")
    arguments = parser.parse_args()
    path = ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = filled(
        old, "accuracy", accuracy_table(json.loads((RESULTS / "cpu_verify.json").read_text()))
    )
    new = filled(new, "speed", speed_table(json.loads((RESULTS / "cpu_bench.json").read_text())))
    if arguments.check:
        if new != old:
            print("README.md: tables are stale; run tools/readme_tables.py", file=sys.stderr)
            return 1
        return 0
    path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
