"""JSON, CSV, Markdown and text of the rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from .field import TOO_LARGE, UNAVAILABLE, UNSUPPORTED, VERIFIED, Row, columns


def to_json(rows: Sequence[Row], machine: dict[str, object]) -> str:
    return json.dumps({"machine": machine, "rows": [columns(row) for row in rows]}, indent=1)


def _csv(records: Sequence[dict[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(records[0]) if records else [])
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def to_csv(rows: Sequence[Row], machine: dict[str, object]) -> str:
    """One line a row; the machine's facts are in the report, not here."""
    return _csv([columns(row) for row in rows])


def to_report(rows: Sequence[Row], machine: dict[str, object]) -> str:
    """One CSV that stands alone: every line has the machine's facts too."""
    facts = {f"machine_{name}": value for name, value in machine.items()}
    return _csv([columns(row) | facts for row in rows])


def _cells(row: Row) -> list[str]:
    case = row.case
    if row.cold is None:
        state = row.status.upper() if row.status not in (VERIFIED, UNSUPPORTED) else row.status
        times = [state, "", "", "", "", ""]
    else:
        flat = columns(row)
        times = [
            f"{flat['us']:.2f}", f"{100 * row.cold.spread:.1f} %", f"{flat['hot_us']:.2f}",
            f"{flat['tokens_per_s']:.3g}", f"{flat['gb_per_s']:.1f}", f"{flat['of_ceiling']:.3f}",
        ]  # fmt: skip
    share = "" if row.error_to_bound is None else f"{row.error_to_bound:.3f}"
    marks = ["in place"] if row.peer.in_place else []
    marks += ["destroys its input"] if row.destroys_input else []
    marks += (
        ["launched without a graph"] if row.cold is not None and row.cold.graph is False else []
    )
    marks += [row.peer.note] if row.peer.note else []
    marks += [row.reason] if row.reason else []
    return [
        row.peer.name, f"{case.batch}×{case.tokens}", f"{case.heads}+{case.kv_heads}",
        str(case.head_dim), case.dtype, case.layout, case.pairing, case.direction, case.positions,
        *times, share, "; ".join(marks),
    ]  # fmt: skip


HEADER = ("peer", "tokens", "heads", "dim", "dtype", "layout", "pairing", "direction", "positions",
          "µs", "spread", "hot µs", "tokens/s", "GB/s", "of copy", "error/bound", "remarks")  # fmt: skip


def shown(rows: Sequence[Row]) -> list[Row]:
    """Without the rows that say only that a peer does not offer a case."""
    return [row for row in rows if row.status not in (UNSUPPORTED, UNAVAILABLE, TOO_LARGE)]


def left_out(rows: Sequence[Row]) -> list[str]:
    """One sentence for each peer that could not run, and one for the cases left out."""
    reasons = {row.peer.name: row.reason for row in rows if row.status == UNAVAILABLE}
    lines = [f"{name}: {reason}" for name, reason in reasons.items()]
    large = {str(row.case) for row in rows if row.status == TOO_LARGE}
    if large:
        lines.append(f"left out as too large (--max-bytes): {', '.join(sorted(large))}")
    return lines


def to_markdown(rows: Sequence[Row], machine: dict[str, object]) -> str:
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in shown(rows)]
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    notes = [f"- {line}" for line in left_out(rows)]
    return "\n".join([facts, "", *lines, "", *notes]) + "\n"


def to_text(rows: Sequence[Row], machine: dict[str, object]) -> str:
    table = [list(HEADER)] + [_cells(row) for row in shown(rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADER))]
    lines = []
    for line in table:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        lines.append("  ".join(padded).rstrip())
    name = machine.get("gpu") or machine["cpu"]
    head = f"{name}, torch {machine['torch']}, ropewalk {machine['ropewalk']}, {machine['date']}"
    foot = [
        "of copy: time of the fastest pass over the same bytes in the same run, divided by the time.",
        *left_out(rows),
    ]
    return "\n".join([head, "", *lines, "", *foot]) + "\n"
