#!/usr/bin/env python3
"""Checks the rules of the tree that a compiler does not.

1. Include direction: a stage under src/ includes its own folder, base, and earlier stages; nothing
   in src/ includes verify/, measure/, cli/ or tests/; public headers include public headers alone.
2. Hand-written files stay under MAX_LINES lines.
3. No tolerance outside verify/tolerance.h: no small literal in EXPECT_NEAR, EXPECT_LE and their
   kin, as the bound of an assert or the last argument of a helper named close, no atol/rtol/
   tolerance/epsilon set to a literal.
4. Hugging Face config keys are spelled in src/config/hf_fields.h alone (rope_theta stands for all).

Usage: check_layers.py [ROOT]. Exit status 1 when a rule is broken, one line for each place.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

# In the order of the pipeline: a stage may include the ones before it.
STAGES = ("base", "config", "plan", "phase", "table", "rotate", "stream", "capi")
SIDE_FOLDERS = ("verify", "measure", "cli", "tests", "bench")
# What the side libraries and the command line may include beside src/ and the public headers.
SIDE_MAY_INCLUDE = {
    "verify": ("verify",),
    "measure": ("measure", "verify"),
    "cli": ("cli", "measure", "verify"),
}
SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".c"}
CHECKED_FOR_SIZE = SOURCE_SUFFIXES | {".py", ".sh", ".cmake"}
SOURCE_FOLDERS = (
    "include",
    "src",
    "verify",
    "measure",
    "cli",
    "tests",
    "bench",
    "examples",
    "torch",
)
SIZE_FOLDERS = (*SOURCE_FOLDERS, "python", "tools", "cmake")
MAX_LINES = 400
# The checker's own test plants violations.
TOLERANCE_HOMES = {"verify/tolerance.h", "tests/python/test_check_layers.py"}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SMALL = r"(?:\d*\.?\d+[eE]-\d+|0\.0*[1-9]\d*|0x1p-\d+)[fFlLqQ]?"
TOLERANCE_PATTERNS = (
    re.compile(rf"\b(?:EXPECT|ASSERT)_NEAR\s*\([^;]*,\s*{SMALL}\s*\)"),
    # A comparison with a small bound, bare or as the factor of a scale.
    re.compile(rf"\b(?:EXPECT|ASSERT)_L[ET]\s*\([^;]*,\s*{SMALL}\s*(?:\*[^;]*)?\)\s*(?:;|<<)"),
    re.compile(rf"\bassert\b[^\n]*<=?\s*{SMALL}"),
    # A helper that is given its tolerance last.
    re.compile(
        rf"\b(?!EXPECT_NEAR|ASSERT_NEAR)\w*(?:close|near|within)\w*\s*\([^;]*,\s*{SMALL}\s*\)",
        re.IGNORECASE,
    ),
    re.compile(rf"\b\w*(?:atol|rtol|tolerance|epsilon)\w*\s*[={{(]\s*{SMALL}", re.IGNORECASE),
    re.compile(rf"\babs_tol\s*=\s*{SMALL}|\brel_tol\s*=\s*{SMALL}"),
    re.compile(rf"\bapprox\([^)]*(?:abs|rel)\s*=\s*{SMALL}"),
)
HF_KEY = re.compile(r'"(?:rope_theta|rope_scaling|partial_rotary_factor)"')


def source_files(root: Path, folders: tuple[str, ...], suffixes: set[str]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def include_problem(path: Path, included: str) -> str | None:
    """Why the file at `path` (relative to the root) may not include `included`; None if it may."""
    folder = path.parts[0]
    target = included.split("/")[0]
    if target == "ropewalk":
        return None
    if folder == "include":
        return f'a public header includes the internal "{included}"'
    if folder == "src":
        if target in SIDE_FOLDERS:
            return f'the pipeline includes "{included}" from the side'
        stage = path.parts[1] if len(path.parts) > 2 else ""
        if stage in STAGES and target in STAGES and STAGES.index(target) > STAGES.index(stage):
            return f'stage {stage} includes "{included}" of the later stage {target}'
        return None
    allowed = SIDE_MAY_INCLUDE.get(folder)
    if allowed is not None and target in SIDE_FOLDERS and target not in allowed:
        return f'{folder} includes "{included}" of {target}'
    return None


def check_includes(root: Path) -> Iterator[str]:
    for path in source_files(root, SOURCE_FOLDERS, SOURCE_SUFFIXES):
        relative = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            problem = include_problem(relative, match.group(1))
            if problem:
                yield f"{relative}:{line_of(text, match.start())}: {problem}"


def check_sizes(root: Path) -> Iterator[str]:
    for path in source_files(root, SIZE_FOLDERS, CHECKED_FOR_SIZE):
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > MAX_LINES:
            yield f"{path.relative_to(root)}:1: {lines} lines, more than {MAX_LINES}"


def check_tolerances(root: Path) -> Iterator[str]:
    for path in source_files(root, (*SOURCE_FOLDERS, "python"), SOURCE_SUFFIXES | {".py"}):
        relative = path.relative_to(root)
        if relative.as_posix() in TOLERANCE_HOMES:
            continue
        text = path.read_text(encoding="utf-8")
        for pattern in TOLERANCE_PATTERNS:
            for match in pattern.finditer(text):
                yield (
                    f"{relative}:{line_of(text, match.start())}: a tolerance outside "
                    f"verify/tolerance.h: {' '.join(match.group().split())}"
                )


def check_config_keys(root: Path) -> Iterator[str]:
    for path in source_files(root, ("include", "src", "verify", "measure", "cli"), SOURCE_SUFFIXES):
        relative = path.relative_to(root)
        if relative.as_posix() == "src/config/hf_fields.h":
            continue
        text = path.read_text(encoding="utf-8")
        for match in HF_KEY.finditer(text):
            yield f"{relative}:{line_of(text, match.start())}: {match.group()} belongs in hf_fields.h"


def problems(root: Path) -> list[str]:
    return [
        *check_includes(root),
        *check_sizes(root),
        *check_tolerances(root),
        *check_config_keys(root),
    ]


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / "src").is_dir():
        print(f"check_layers: {root} has no folder src", file=sys.stderr)
        return 2
    found = problems(root)
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
