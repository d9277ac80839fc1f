"""Figures of models beyond their trained length: files of bench/lengths."""

from __future__ import annotations

import json
from pathlib import Path


def load(path: Path) -> dict:
    """Raises ValueError with a sentence."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or not ({"rules", "encodings"} & data.keys()):
        raise ValueError(f"results: {path} is not a file of bench/lengths")
    return data


def plot_lengths(axes, data: dict) -> None:
    if "rules" in data:
        _perplexity(axes, data)
    else:
        _encodings(axes, data)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _perplexity(axes, data: dict) -> None:
    styles = ["-o", "-s", "-^", "-v"]
    for style, found in zip(styles, data["rules"], strict=False):
        lengths = [w["length"] for w in found["windows"]]
        axes.semilogy(lengths, [w["perplexity"] for w in found["windows"]], style,
                      label=found["rule"], markersize=4, linewidth=1.4)  # fmt: skip
    axes.axvline(data["rules"][0]["trained"], color="grey", linestyle=":", label="trained length")
    axes.set(xlabel="tokens before and in the window", title=f"{data['model']}, not fine-tuned",
             ylabel=f"perplexity of {data['window']} tokens")  # fmt: skip


def _encodings(axes, data: dict) -> None:
    for name, curves in data["encodings"].items():
        ends = [bucket["end"] for bucket in curves[0]["buckets"]]
        means = [sum(c["buckets"][i]["bits_per_byte"] for c in curves) / len(curves)
                 for i in range(len(ends))]  # fmt: skip
        axes.semilogx(ends, means, "o-", label=name, markersize=4, base=2)
    axes.axvline(data["trained"], color="grey", linestyle=":", label="trained length")
    axes.set(xlabel="position (end of the bucket)", ylabel="bits per byte, held-out text",
             title="The same small model with different position encodings")  # fmt: skip
