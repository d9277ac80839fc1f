"""The map of bugs to tests: where a marker counts, and what makes the check fail."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def bug_map(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("bug_map")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TEST(Suite, Name_Bug5) {\n", [("Suite.Name_Bug5", 5)]),
        ("// Bug14a: one.\n// More.\nTEST_P(Suite, Name) {\n", [("Suite.Name", 14)]),
        ("TEST(Suite, Name) {\n  // Bug3\n}\n", [("Suite.Name", 3)]),
        ("TEST(Suite, Name) {\n}\n\n// Bug3\nstruct Other {\n", [("Suite.Name", None), ("", 3)]),
        ("# Bug20\n@mark\ndef test_a(x):\n", [("test_a", 20)]),
        ('def test_a(x):\n    """Bug20: lives."""\n', [("test_a", 20)]),
        ('"""Bug1 of a file."""\nimport x\n', [("", 1)]),
    ],
)
def test_what_a_marker_belongs_to(bug_map, text, said):
    assert list(bug_map.markers_of(text)) == [entry for entry in said if entry[1] is not None]


def planted(root: Path, bug_map, left_out: int | None = None) -> Path:
    (root / "docs").mkdir()
    (root / "tests").mkdir()
    tests = [
        f"TEST(Suite, Name_Bug{kind.number}) {{\n}}\n"
        for kind in bug_map.KINDS
        if kind.owner == "core" and kind.number != left_out
    ]
    (root / "tests" / "a_test.cpp").write_text("".join(tests), encoding="utf-8")
    return root


def test_a_page_that_is_fresh_passes_and_a_stale_one_does_not(bug_map, tmp_path, capsys):
    root = planted(tmp_path, bug_map)
    assert bug_map.main(["--check"], root) == 1
    assert "stale" in capsys.readouterr().out
    assert bug_map.main([], root) == 0
    assert bug_map.main(["--check"], root) == 0
    page = (root / "docs" / "bugs.md").read_text(encoding="utf-8")
    assert page.count("not covered yet") == sum(kind.owner != "core" for kind in bug_map.KINDS)
    (root / "tests" / "b_test.cpp").write_text("TEST(More, Name_Bug5) {\n}\n", encoding="utf-8")
    assert bug_map.main(["--check"], root) == 1


def test_a_kind_without_a_test_and_a_marker_without_a_kind(bug_map, tmp_path, capsys):
    root = planted(tmp_path, bug_map, left_out=5)
    (root / "tests" / "b_test.cpp").write_text("TEST(More, Name_Bug999) {\n}\n", encoding="utf-8")
    assert bug_map.main([], root) == 1
    said = capsys.readouterr().out
    assert "Bug999" in said
    assert "no test has the marker Bug5" in said
