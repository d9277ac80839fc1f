#!/usr/bin/env python3
"""Writes docs/bugs.md: the kinds of public bugs (bug_kinds.py) and the tests that cover each.

A test covers kind N where `BugN` stands in its name, in the comment directly above it, or in its
body; a marker above anything else counts for the file.

Usage: bug_map.py [--check]. With --check nothing is written; exit status 1 when the file is stale,
when a kind of the core has no test, or when a marker names no kind.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bug_kinds import KINDS, Kind

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/bugs.md")
SUFFIXES = {".cpp", ".cu", ".h", ".py"}
# Its markers are planted.
LEFT_OUT = {"tests/python/test_bug_map.py"}

MARKER = re.compile(r"Bug(\d+)")
TEST = re.compile(r"TEST(?:_[FP])?\((\w+), *(\w+)\)|def (test_\w+)")
COMMENT = re.compile(r"//|#(?!include)|@")

HEADER = """\
# Public bugs and the tests that stand against them

Rotary embeddings have been got wrong in public many times. Each row is a kind of bug that a report
against some library describes, what is right instead, and the tests here that fail where it
returns. Tests say so with a marker, `BugN`. This page is generated: `tools/bug_map.py`.

| | Kind | What goes wrong | What is right | Tests |
|---|---|---|---|---|
"""


def markers_of(text: str) -> Iterator[tuple[str, int]]:
    """(test name, kind) of every marker of a file; the name is empty where it is of no test."""
    test = ""
    above: list[int] = []
    for line in [*text.splitlines(), "end"]:
        found = [int(number) for number in MARKER.findall(line)]
        definition = TEST.match(line.lstrip())
        if definition:
            suite, name, function = definition.groups()
            test = function or f"{suite}.{name}"
            yield from ((test, kind) for kind in (*above, *found))
            above = []
        elif line[:1].isspace():
            yield from ((test, kind) for kind in found)
        elif COMMENT.match(line):
            above += found
        elif line:
            yield from (("", kind) for kind in (*above, *found))
            above = []


def tests_by_kind(root: Path) -> dict[int, dict[str, list[str]]]:
    """Kind → file → its tests that are marked, in their order."""
    covered: dict[int, dict[str, list[str]]] = defaultdict(dict)
    for path in sorted((root / "tests").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in SUFFIXES or name in LEFT_OUT:
            continue
        for test, kind in markers_of(path.read_text(encoding="utf-8")):
            tests = covered[kind].setdefault(name, [])
            if test and test not in tests:
                tests.append(test)
    return covered


def tests_cell(files: dict[str, list[str]]) -> str:
    if not files:
        return "not covered yet"
    entries = []
    for name, tests in files.items():
        names = ", ".join(f"`{re.sub(r'_Bug[0-9]+', '', test)}`" for test in tests)
        link = f"[{name.removeprefix('tests/')}](../{name})"
        entries.append(f"{link}: {names}" if names else link)
    return "; ".join(entries)


def page(covered: dict[int, dict[str, list[str]]]) -> str:
    rows = (
        f"| {kind.number} | {kind.title} | {kind.wrong} | {kind.right} "
        f"| {tests_cell(covered.get(kind.number, {}))} |\n"
        for kind in KINDS
    )
    return HEADER + "".join(rows)


def problems(covered: dict[int, dict[str, list[str]]], kinds: tuple[Kind, ...]) -> list[str]:
    known = {kind.number for kind in kinds}
    result = [
        f"{name}: Bug{number} is no kind of tools/bug_kinds.py"
        for number, files in sorted(covered.items())
        if number not in known
        for name in files
    ]
    result += [
        f"bug {kind.number} ({kind.title}): no test has the marker Bug{kind.number}"
        for kind in kinds
        if kind.owner == "core" and kind.number not in covered
    ]
    return result


def main(arguments: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="report only; write nothing")
    check = parser.parse_args(arguments).check
    covered = tests_by_kind(root)
    found = problems(covered, KINDS)
    text = page(covered)
    target = root / PAGE
    if not check:
        target.write_text(text, encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        found.append(f"{PAGE} is stale: run tools/bug_map.py")
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
