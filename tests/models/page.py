"""docs/models.md from rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from run import EXACT, FAILED, NEAR, NONE, SAME, Row

from ropewalk import Plan

_HEAD = """# Models

Every model folder of transformers {version} that rotates, and how ropewalk's rotation, made from
the model's config alone, compares with the model's own code. This page is the output of

    python tests/models --write docs/models.md

which builds each rotary module from its class's default config, runs it and the folder's own apply
function in float32 and bfloat16 on the CPU with fresh random q and k, at positions up to 131 071
(grids: 100), and compares every element with `ropewalk.rotate` and the plan of
`plan_from_config(config, arithmetic="parity")`. `--check` compares this page with a new run.
The bits were compared with PyTorch {torch} on x86-64; functions of other builds may round otherwise.

{totals}

*Window*: which channels of a head turn. *Arithmetic*: classes P0 to P4 of [numerics](numerics.md#parity).
Vision and text towers of one folder share a row.

| folder | family | pairing | window | axes | scaling | arithmetic | status |
|---|---|---|---|---|---|---|---|
"""


def _each(plans: Iterable[Plan], what: Callable[[Plan], object]) -> str:
    return ", ".join(dict.fromkeys(str(what(plan)) for plan in plans)) or "–"


def _window(plan: Plan) -> str:
    if plan.rotary_dim == plan.head_dim:
        return f"all {plan.head_dim}"
    place = "first" if plan.offset == 0 else "last"
    return f"{place} {plan.rotary_dim} of {plan.head_dim}"


def _status(row: Row) -> str:
    return "; ".join([row.status, *row.notes])


def page(rows: list[Row], transformers_version: str, torch_version: str) -> str:
    """The whole page; rows in the order given."""
    counts = Counter(row.status for row in rows)
    totals = f"{len(rows)} folders: " + ", ".join(
        f"{counts[status]} {status}"
        for status in (SAME, NEAR, EXACT, NONE, FAILED)
        if counts[status]
    )
    lines = [_HEAD.format(version=transformers_version, torch=torch_version, totals=totals + ".")]
    for row in rows:
        plans = [plan for plan in row.plans if plan.rotates]
        cells = (
            row.folder.name, row.folder.family, _each(plans, lambda p: p.pairing.replace("_", " ")),
            _each(plans, _window), _each(plans, lambda p: p.axes),
            _each(plans, lambda p: p.scaling), _each(plans, lambda p: p.arithmetic[-2:].upper()),
            _status(row),
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |\n")
    lines.append("\n## Families\n\n| family | rule | folders |\n|---|---|---|\n")
    families = Counter(row.folder.family for row in rows)
    rules = {row.folder.family: row.folder.rule for row in rows}
    for family in sorted(families):
        lines.append(f"| {family} | {rules[family]} | {families[family]} |\n")
    return "".join(lines)
