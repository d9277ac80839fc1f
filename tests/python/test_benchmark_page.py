"""tools/benchmark_page.py: what it says of results."""

from __future__ import annotations

import csv
import importlib.util

import pytest

from cli_support import ROOT


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location(
        "benchmark_page", ROOT / "tools" / "benchmark_page.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(peer, us, megabytes, of_copy=1.0, tokens=4):
    return {"peer": peer, "us": us, "bytes": megabytes * 1e6, "of_ceiling": of_copy, "batch": 1.0,
            "tokens": float(tokens), "heads": 2.0, "kv_heads": 1.0, "dtype": "float32",
            "layout": "bthd", "pairing": "half", "direction": "forward", "base": 1e4}  # fmt: skip


@pytest.mark.parametrize(
    ("megabytes", "ours", "of_copy", "count"),
    [
        (10, 10.0, 1.0, 0), (10, 10.2, 1.0, 1), (1, 10.2, 0.5, 0), (1, 10.4, 1.0, 1),
        (10, 10.0, 0.89, 1), (10, 10.2, 0.89, 2),
    ],
)  # fmt: skip
def test_what_is_not_kept_is_listed(tool, megabytes, ours, of_copy, count):
    rows = [row("ropewalk", ours, megabytes, of_copy), row("other", 10.0, megabytes)]
    assert len(tool.misses(rows)) == count


def test_cases_are_not_mixed(tool):
    rows = [row("ropewalk", 5.0, 10), row("other", 4.0, 10, tokens=8)]
    assert len(tool.by_case(rows)) == 2 and tool.misses(rows) == []
    assert len(tool.field_table(rows).splitlines()) == 2


def test_the_numbers_are_the_files(tool):
    path = ROOT / "bench" / "results" / "field_h200.csv"
    with path.open(newline="") as file:
        ours = [r for r in csv.DictReader(file) if r["peer"] == "ropewalk" and r["us"]]
    page = tool.page()
    for r in ours:
        assert f"| {tool.number(float(r['us']))} |" in page
    assert all(f"| {card} | not measured |" in page for card in tool.OTHER_CARDS)


def test_pages_are_not_stale(tool):
    for path, text in tool.written().items():
        assert path.read_text("utf-8") == text, f"{path.name}: run tools/benchmark_page.py"


def test_a_page_without_markers_is_refused(tool):
    with pytest.raises(SystemExit, match="no markers"):
        tool.fill("text", "waves", "table")
    assert tool.fill("<!-- a:begin -->\nold\n<!-- a:end -->", "a", "new").split("\n")[1] == "new"
