"""tools/ncu_table.py: a table of the profiler's CSV."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "ncu_table.py"

STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
HEADING = [
    "ID",
    "Kernel Name",
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "smsp__inst_executed.sum",
    STALLED.format("long_scoreboard"),
    STALLED.format("math_pipe_throttle"),
    STALLED.format("no_instruction"),
    STALLED.format("wait"),
]
UNITS = ["", "", "usecond", "Mbyte", "inst", "inst", "inst", "inst", "inst"]
ROW = ["0", "rotate<int, 2>(Args)", "12.5", "1.25", "1,500,000", "9.5", "0.25", "3", "n/a"]


def as_csv(*rows: list[str]) -> str:
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)


def run(folder: Path, text: str, launches: str | None = None) -> subprocess.CompletedProcess[str]:
    (folder / "profile.csv").write_text(text, encoding="utf-8")
    command = [sys.executable, str(TOOL), str(folder / "profile.csv")]
    if launches is not None:
        (folder / "launches.txt").write_text(launches, encoding="utf-8")
        command += ["--launches", str(folder / "launches.txt")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_units_names_and_the_commonest_stalls(tmp_path: Path) -> None:
    text = "==PROF== Connected\n" + as_csv(HEADING, UNITS, ROW)
    result = run(tmp_path, text, "8 tokens\trotate sweep\n")
    assert result.returncode == 0, result.stderr
    heading, _, row = result.stdout.strip().split("\n")
    cells = dict(zip(heading.split(" | "), row.split(" | "), strict=True))
    assert cells["| case"] == "| 8 tokens" and cells["launch"] == "rotate sweep"
    assert (cells["µs"], cells["MB read"], cells["M instr."]) == ("12.50", "1.25", "1.500")
    assert cells["DRAM %"] == ""
    assert row.endswith("long_scoreboard 9.5, no_instruction 3.0, math_pipe_throttle 0.2 |")


def test_without_names_the_kernel_is_named(tmp_path: Path) -> None:
    result = run(tmp_path, as_csv(HEADING, UNITS, ROW, ROW))
    assert result.stdout.count("rotate<int, 2>(Args)") == 2


def test_what_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    for text, launches in (
        ("nothing\n", None),
        (as_csv(HEADING, UNITS, ROW), "one\ta\ntwo\tb\n"),
    ):
        result = run(tmp_path, text, launches)
        assert result.returncode == 1
        assert result.stderr.startswith("ncu_table: ") and result.stderr.count("\n") == 1
