#!/usr/bin/env python3
"""Writes docs/benchmarks.md, and the tables of docs/formula.md and docs/labs.md, from result files.

    tools/benchmark_page.py            rewrites them
    tools/benchmark_page.py --check    exit status 1 where one is stale

Files of bench/results: field_CARD.csv (`ropewalk bench --against all --report`), field_*_CARD.json,
model_step_CARD.json (bench/model_step.py), lengths_*.json (bench/lengths), lab_NAME_CARD.json
(`ropewalk lab NAME --json`). What was not measured is said, not filled in.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
#: From so many bytes on a case counts as large, and what is promised of large and of small ones.
LARGE, TIE, NEAR, LEAST = 8e6, 1.01, 1.03, 0.90
CARDS = {"h200": "NVIDIA H200", "cpu": "CPU"}
OTHER_CARDS = ("A100", "H100", "RTX 4090")
Row = dict


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def load_field(path: Path) -> list[Row]:
    """Rows that were timed, numbers as numbers."""
    if path.suffix == ".json":
        data = json.loads(path.read_text("utf-8"))
        facts = {f"machine_{k}": v for k, v in data["machine"].items()}
        rows = [row | facts for row in data["rows"]]
    else:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    timed = []
    for row in rows:
        if row["us"] not in (None, ""):
            numbers = ("us", "bytes", "of_ceiling", "tokens", "batch", "heads", "kv_heads", "base")
            timed.append(row | {name: float(row[name]) for name in numbers})
    return timed


def case_name(row: Row) -> str:
    batch = "" if row["batch"] == 1 else f"{row['batch']:.0f} × "
    heads = f"{row['heads']:.0f} + {row['kv_heads']:.0f}"
    extra = "" if row["pairing"] == "half" else f", {row['pairing']}"
    return f"{row['dtype']}, {batch}{row['tokens']:.0f} tokens, {heads} heads{extra}"


def by_case(rows: list[Row]) -> list[list[Row]]:
    """Rows of one case together, each case sorted by time."""
    keys = (
        "batch",
        "tokens",
        "heads",
        "kv_heads",
        "dtype",
        "layout",
        "pairing",
        "direction",
        "base",
    )
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[k] for k in keys), []).append(row)
    return [sorted(group, key=lambda row: row["us"]) for group in found.values()]


def is_ours(row: Row) -> bool:
    return row["peer"].startswith("ropewalk")


def number(us: float) -> str:
    return f"{us:.2f}" if us < 100 else f"{us:.0f}"


def field_table(rows: list[Row]) -> str:
    """One line a case: ours, the best of the others, and how far apart."""
    lines = []
    for group in by_case(rows):
        ours = {row["peer"]: row for row in group if is_ours(row)}
        others = [row for row in group if not is_ours(row)]
        if not ours or not others:
            continue
        best = min(ours.values(), key=lambda row: row["us"])
        shown = [number(ours[name]["us"]) if name in ours else "–"
                 for name in ("ropewalk", "ropewalk-in-place")]  # fmt: skip
        rest = ", ".join(f"{row['peer']} {number(row['us'])}" for row in others[:4])
        lines.append([case_name(best), f"{best['bytes'] / 1e6:.3g}", *shown,
                      f"{best['of_ceiling']:.2f}", f"{others[0]['us'] / best['us']:.2f}", rest])  # fmt: skip
    header = ["case", "MB moved", "ropewalk, µs", "in place, µs", "of copy", "× the next",
              "the fastest others, µs"]  # fmt: skip
    return table(header, lines)


def misses(rows: list[Row]) -> list[str]:
    """Cases that do not keep what the page promises."""
    found = []
    for group in by_case(rows):
        ours = [row for row in group if is_ours(row)]
        others = [row for row in group if not is_ours(row)]
        if not ours or not others:
            continue
        ratio = ours[0]["us"] / others[0]["us"]
        large = ours[0]["bytes"] >= LARGE
        if ratio > (TIE if large else NEAR):
            found.append(f"- {case_name(ours[0])}: {number(ours[0]['us'])} µs, {others[0]['peer']} "
                         f"{number(others[0]['us'])} ({ratio:.2f} ×)")  # fmt: skip
        for row in ours:
            if large and row["of_ceiling"] < LEAST:
                found.append(
                    f"- {case_name(row)}, {row['peer']}: {row['of_ceiling']:.3f} of the copy"
                )
    return found


def machine(row: Row) -> str:
    name = row.get("machine_gpu") or row["machine_cpu"]
    more = f", driver {row['machine_driver']}" if row.get("machine_driver") else ""
    more = more or f", {row['machine_threads']} threads"
    return f"{name}{more}, torch {row['machine_torch']}, {row['machine_date'][:10]}"


def field_section(card: str, name: str) -> str:
    path = RESULTS / f"field_{card}.csv"
    if not path.exists():
        command = f"ropewalk bench --against all --packages packages --report field_{card}.csv"
        return f"## {name}\n\nNot measured on a quiet machine yet. Command: `{command}`\n"
    rows = load_field(path)
    lines = [f"## {name}", "", f"{machine(rows[0])}; all rows in [{path.name}](../bench/results/{path.name}).",
             "", field_table(rows), ""]  # fmt: skip
    found = misses(rows)
    if found:
        lines += ["Where that is not kept:", "", *found, ""]
    else:
        lines += ["It is kept in every case.", ""]
    for more in sorted(RESULTS.glob(f"field_*_{card}.*")):
        rows = load_field(more)
        lines += [f"[{more.name}](../bench/results/{more.name}), {machine(rows[0])}:", "",
                  field_table(rows), ""]  # fmt: skip
    return "\n".join(lines)


def step_section() -> str:
    lines = ["## Steps of a model", "",
             ("A Llama-shaped transformers model with random weights; `transformers` is its own rotation, "
             "`exact` and `parity` are `ropewalk.patch`. Written by `bench/model_step.py`."), ""]  # fmt: skip
    for card, name in CARDS.items():
        path = RESULTS / f"model_step_{card}.json"
        if not path.exists():
            command = "python bench/model_step.py --compile --output model_step.json"
            lines += [f"{name}: not measured. Command: `{command}`", ""]
            continue
        data = json.loads(path.read_text("utf-8"))
        rows = []
        for row in data["rows"]:
            peak = f"{row['peak_bytes'] / 1e9:.2f}" if "peak_bytes" in row else "–"
            time = row.get("failed") or f"{row['ms']:.2f} ± {50 * row['spread']:.0f} %"
            rows.append([row["step"], "compiled" if row["compiled"] else "eager", row["rotation"],
                         time, peak])  # fmt: skip
        rows.sort(
            key=lambda row: (row[1] == "compiled", ["train", "prefill", "decode"].index(row[0]))
        )
        options = data["options"]
        lines += [(f"{name}, {options['layers']} layers, {options['batch']} × {options['tokens']} tokens, "
                  f"{'small widths' if options['small'] else 'the widths of Llama-3.1-8B'}, decode behind "
                  f"{options['cached']} tokens ({data['machine']['date'][:10]}, `{data['command']}`):"), "",
                  table(["step", "", "rotation", "ms", "peak GB above the start"], rows), ""]  # fmt: skip
    return "\n".join(lines)


def others_section() -> str:
    rows = [[card, "not measured"] for card in OTHER_CARDS]
    return "\n".join([
        "## Other cards", "",
        "These are empty on purpose. One command fills a row; send the file:", "",
        "```", "ropewalk bench --fetch packages",
        "ropewalk bench --against all --packages packages --report my-card.csv", "```", "",
        table(["card", "result"], rows),
    ])  # fmt: skip


INTRO = (ROOT / "docs" / "parts" / "benchmarks_intro.md").read_text("utf-8")


def page() -> str:
    parts = [INTRO.strip(), *(field_section(card, name) for card, name in CARDS.items()),
             step_section(), others_section()]  # fmt: skip
    return "\n\n".join(part.strip() for part in parts) + "\n"


def perplexity_table() -> str:
    data = json.loads((RESULTS / "lengths_smollm2_cpu.json").read_text("utf-8"))
    names = [found["rule"] for found in data["rules"]]
    rows = []
    for i, window in enumerate(data["rules"][0]["windows"]):
        rows.append([str(window["length"]),
                     *(f"{found['windows'][i]['perplexity']:.2f}" for found in data["rules"])])  # fmt: skip
    return table(["tokens", *names], rows)


def encodings_table() -> str:
    path = RESULTS / "lengths_encodings_h200.json"
    if not path.exists():
        return (
            "Not measured yet. Command: `python bench/lengths/encodings.py --output encodings.json`"
        )
    data = json.loads(path.read_text("utf-8"))
    ends = [str(bucket["end"]) for bucket in next(iter(data["encodings"].values()))[0]["buckets"]]
    rows = []
    for name, curves in data["encodings"].items():
        means = (sum(c["buckets"][i]["bits_per_byte"] for c in curves) / len(curves)
                 for i in range(len(ends)))  # fmt: skip
        rows.append([name, *(f"{mean:.3f}" for mean in means)])
    said = (f"Bits per byte up to each position, mean of {len(next(iter(data['encodings'].values())))} "
            f"seeds, trained on {data['trained']} ({data['device']}, `{data['command']}`):")  # fmt: skip
    return f"{said}\n\n{table(['encoding', *ends], rows)}\n\n![Encodings](images/encodings.svg)"


def lab_table(name: str) -> Callable[[], str]:
    def make() -> str:
        path = RESULTS / f"lab_{name}_h200.json"
        if not path.exists():
            return f"Not measured yet. Command: `ropewalk lab {name}`"
        data = json.loads(path.read_text("utf-8"))
        rows = [[c if isinstance(c, str) else f"{c:.5g}" for c in row] for row in data["rows"]]
        said = (
            f"{data['machine'].get('gpu', data['machine']['cpu'])}, {data['machine']['date'][:10]}:"
        )
        figure = f"![{name}](images/lab_{name}.svg)"
        return f"{said}\n\n{table(data['columns'], rows)}\n\n{data['explanation']}\n\n{figure}"

    return make


MARKED = {
    "docs/formula.md": {"perplexity": perplexity_table, "encodings": encodings_table},
    "docs/labs.md": {name: lab_table(name) for name in ("l2-illusion", "waves", "launch")},
}


def fill(text: str, name: str, content: str) -> str:
    pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"benchmark_page: no markers of {name}")
    return pattern.sub(lambda found: f"{found[1]}{content}\n{found[2]}", text)


def written() -> dict[Path, str]:
    found = {ROOT / "docs" / "benchmarks.md": page()}
    for path, tables in MARKED.items():
        text = (ROOT / path).read_text("utf-8")
        for name, make in tables.items():
            text = fill(text, name, make())
        found[ROOT / path] = text
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the pages of measured results.")
    parser.add_argument("--check", action="store_true", help="change nothing, fail where stale")
    check = parser.parse_args().check
    stale = {
        path: text for path, text in written().items()
        if not path.exists() or path.read_text("utf-8") != text
    }  # fmt: skip
    for path, text in stale.items():
        if check:
            print(f"{path.relative_to(ROOT)} is stale; run tools/benchmark_page.py")
        else:
            path.write_text(text, "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
