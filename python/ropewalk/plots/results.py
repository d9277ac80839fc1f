"""Figures of measured results: files that ``ropewalk bench --against`` wrote (JSON, CSV, report)."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

#: Which rows belong to a figure, by their values.
TUTORIAL = {"dtype": "float32", "base": 1e6}
LENGTHS = TUTORIAL | {"heads": 12}
HEADS = TUTORIAL | {"tokens": 1024}
DECODE = {"dtype": "bfloat16", "heads": 32, "kv_heads": 8, "layout": "bthd", "pairing": "half"}


def _value(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def load(path: Path) -> tuple[list[dict], dict]:
    """(rows that were timed, facts of the machine). Raises ValueError with a sentence."""
    if path.suffix == ".json":
        data = json.loads(path.read_text(encoding="utf-8"))
        rows, machine = data.get("rows"), data.get("machine", {})
    elif path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            rows = [{k: _value(v) for k, v in row.items()} for row in csv.DictReader(file)]
        facts = rows[0].items() if rows else ()
        machine = {k.removeprefix("machine_"): v for k, v in facts if k.startswith("machine_")}
    else:
        raise ValueError(f"results: expected a .json or .csv file, got {path}")
    if not rows or "peer" not in rows[0]:
        raise ValueError(f"results: {path} is not a file of `ropewalk bench --against`")
    return [row for row in rows if row.get("us") not in (None, "")], machine


def series(rows: list[dict], wanted: dict, x: str, y: str) -> dict[str, list[tuple[float, float]]]:
    """{peer: [(x, y)]} of the rows with the wanted values, sorted."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            found[row["peer"]].append((float(row[x]), float(row[y])))
    if not found:
        raise ValueError(f"results: no timed row has {wanted}")
    return {peer: sorted(points) for peer, points in found.items()}


def ceiling(rows: list[dict], wanted: dict, x: str) -> list[tuple[float, float]]:
    """(x, GB/s) of the copy of the same bytes, out of place."""
    points = {
        float(row[x]): float(row["bytes"]) / float(row["ceiling_us"]) * 1e-3
        for row in rows
        if all(row[n] == v for n, v in wanted.items()) and "in place" not in str(row["ceiling"])
    }
    return sorted(points.items())


def _lines(axes, found: dict[str, list[tuple[float, float]]]) -> None:
    styles = ["-o", "-s", "-^", "-v", "-D", "--o", "--s", "--^", "--v", "--D", ":o", ":s", ":^"]
    for i, (peer, points) in enumerate(found.items()):
        ours = peer.startswith("ropewalk")
        axes.plot(*zip(*points, strict=True), styles[i % len(styles)], label=peer, markersize=4,
                  linewidth=2.4 if ours else 1.1, zorder=3 if ours else 2)  # fmt: skip


def plot_bandwidth(axes, rows: list[dict], machine: dict, by: str) -> None:
    """GB/s by formula against ``tokens`` or ``heads``, with the copy of the same run, the peak of
    the memory and the size of the cache where the file knows them."""
    wanted = LENGTHS if by == "tokens" else HEADS
    _lines(axes, series(rows, wanted, by, "gb_per_s"))
    copies = ceiling(rows, wanted, by)
    if copies:
        axes.plot(*zip(*copies, strict=True), color="black", linewidth=1.5, linestyle="-.",
                  label="copy, same run")  # fmt: skip
    if machine.get("peak_bytes_per_second"):
        peak = float(machine["peak_bytes_per_second"]) * 1e-9
        axes.axhline(peak, color="grey", linewidth=1, label=f"memory peak, {peak:.0f} GB/s")
    chosen = [row for row in rows if all(row[n] == v for n, v in wanted.items())]
    cache = float(machine.get("cache_bytes") or 0)
    per_x = float(chosen[0]["bytes"]) / float(chosen[0][by])
    if min(r[by] for r in chosen) <= cache / per_x <= max(r[by] for r in chosen):
        axes.axvline(cache / per_x, color="grey", linestyle=":", linewidth=1)
        axes.annotate("one call fills the cache", (cache / per_x, 0.02), rotation=90, color="grey",
                      xycoords=("data", "axes fraction"), ha="right", va="bottom")  # fmt: skip
    axes.set_xscale("log", base=2)
    fixed = "12 heads" if by == "tokens" else "1024 tokens"
    axes.set(xlabel="tokens" if by == "tokens" else "heads", ylabel="GB/s by formula",
             title=f"float32, batch 2, {fixed} of 128, cold buffers\n{_name(machine)}")  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))


def plot_decode(axes, rows: list[dict], machine: dict) -> None:
    """Microseconds of a call at 1 … 512 tokens."""
    few = [row for row in rows if row["tokens"] <= 512]
    _lines(axes, series(few, DECODE, "tokens", "us"))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set(xlabel="tokens", ylabel="µs a call",
             title=f"Decode: bfloat16, 32 + 8 heads of 128, cold buffers\n{_name(machine)}")  # fmt: skip
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _name(machine: dict) -> str:
    return f"{machine.get('gpu') or machine.get('cpu', 'machine unknown')}, {str(machine.get('date', ''))[:10]}"
