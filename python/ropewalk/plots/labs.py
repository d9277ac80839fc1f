"""Figures of ``ropewalk lab NAME --json``."""

from __future__ import annotations

import json
from pathlib import Path

from .results import _name


def load(path: Path) -> dict:
    """Raises ValueError with a sentence."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("lab") not in DRAW:
        raise ValueError(f"results: {path} is not a file of `ropewalk lab NAME --json`")
    return data


def plot_lab(axes, data: dict) -> None:
    DRAW[data["lab"]](axes, data["rows"])
    axes.set_title(f"{axes.get_title()}\n{_name(data['machine'])}")
    axes.grid(alpha=0.3)


def _illusion(axes, rows: list) -> None:
    names, values = zip(*rows, strict=True)
    bars = axes.barh(range(len(rows)), values)
    axes.bar_label(bars, fmt="{:.0f}", padding=3)
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(xlabel="GB/s", title="One rotation, counted in several ways")


def _waves(axes, rows: list) -> None:
    _, waves, us, _ = zip(*rows, strict=True)
    axes.plot(waves, us, "o-", markersize=4)
    for whole in range(1, int(max(waves)) + 1):
        axes.axvline(whole, color="grey", linestyle=":", linewidth=1)
    axes.set(xlabel="blocks ÷ blocks that run at once (waves)", ylabel="µs",
             title="Time against the number of blocks")  # fmt: skip


def _launch(axes, rows: list) -> None:
    elements, launched, replayed, _ = zip(*rows, strict=True)
    axes.loglog(elements, launched, "o-", label="launched one by one")
    axes.loglog(elements, replayed, "s-", label="replayed from a CUDA graph")
    axes.legend()
    axes.set(xlabel="float32 elements", ylabel="µs a call", title="What a launch costs")


DRAW = {"l2-illusion": _illusion, "waves": _waves, "launch": _launch}
