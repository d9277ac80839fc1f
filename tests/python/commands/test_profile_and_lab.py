"""Counters of Nsight Compute, read and put into words; the labs' arithmetic; refusals without a GPU.

The CSV is written by hand in the documented format: a header, a line of units, a line a launch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from ropewalk.bench.cases import Case
from ropewalk.commands import lab, profile
from ropewalk.labs import l2_illusion, waves
from ropewalk.profiling import cupti, ncu, trace
from ropewalk.profiling.counters import METRICS, Counters, explain, explain_launches, parse, tail
from ropewalk.profiling.target import prepared

HEADER = ["ID", "Process ID", "Kernel Name", *METRICS.values()]
UNITS = ["", "", "", "usecond", "Mbyte", "Gbyte", "%", "%", "%", "%", "%", "register/thread", ""]
LAUNCH = ["0", "17", "sweep_kernel<half, 4>(VectorArgs)", "282.5", "604.1", "1,000.5", "87.1",
          "12.5", "n/a", "41.0", "63.2", "64", "3.25"]  # fmt: skip


def written(*lines: list[str]) -> str:
    table = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    return f"==PROF== Connected to process 17\nwords of the program\n{table}\n==PROF== Disconnected"


def test_a_launch_is_read_with_its_units():
    (launch,) = parse(written(HEADER, UNITS, LAUNCH))
    assert launch.kernel == "sweep_kernel<half, 4>(VectorArgs)"
    assert launch.time_us == 282.5 and launch.registers == 64 and launch.waves == 3.25
    assert launch.dram_read_bytes == pytest.approx(604.1e6)
    assert launch.dram_write_bytes == pytest.approx(1000.5e9)
    assert launch.l1_hit_percent is None
    nano = ["", "", "", "nsecond", *UNITS[4:]]
    assert parse(written(HEADER, nano, LAUNCH))[0].time_us == pytest.approx(0.2825)


def test_several_launches_and_missing_counters():
    shorter = HEADER[:5], UNITS[:5], LAUNCH[:5], LAUNCH[:5]
    launches = parse(written(*shorter))
    assert len(launches) == 2 and launches[1].waves is None


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match="no table"):
        parse("==ERROR== No kernels were profiled")
    strange = [*UNITS[:3], "fortnight", *UNITS[4:]]
    with pytest.raises(ValueError, match="fortnight"):
        parse(written(HEADER, strange, LAUNCH))


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        (Counters("k", dram_percent=90, sm_percent=30), "Memory is the limit"),
        (Counters("k", dram_percent=30, sm_percent=90), "instruction issue are the limit"),
        (Counters("k", dram_percent=65, sm_percent=30), "Near a limit"),
        (Counters("k", dram_percent=5, sm_percent=5), "too little work"),
        (Counters("k", dram_read_bytes=100, dram_write_bytes=20), "stayed in the L2"),
        (Counters("k", dram_read_bytes=600, dram_write_bytes=600), "twice"),
        (Counters("k", waves=1.25), "partial: up to 38 %"),
    ],
)
def test_the_limit_in_words(counters, words):
    assert words in " ".join(explain(counters, 1000))


def test_the_tail_of_the_last_wave():
    assert tail(1.0) == 0 and tail(4.0) == 0
    assert tail(1.5) == 0.25 and tail(0.5) == 0.5


def test_the_figures_of_the_illusion():
    (_, inflated), (_, hot), (_, cold) = l2_illusion.figures(6_000_000, 10.0, 30.0)
    assert hot == pytest.approx(600.0)
    assert inflated == pytest.approx(1.5 * hot) and cold == pytest.approx(hot / 3)


def test_blocks_lie_around_full_waves():
    counts = waves.block_counts(264, 2)
    assert counts == [132, 263, 264, 265, 396, 527, 528, 529]


def test_a_table_of_a_lab():
    text = lab.to_text({"columns": ["a", "b"], "rows": [("x", 1.5)], "explanation": "why"})
    assert text.splitlines()[1].split() == ["x", "1.5"] and text.endswith("why")


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
@pytest.mark.parametrize(
    ("command", "words"),
    [(profile, ["--device", "cuda"]), (lab, ["waves"]), (lab, ["launch"])],
)
def test_without_a_gpu_they_say_so(command, words, capsys):
    assert command.main(words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "CUDA device" in lines[0]


def test_the_illusion_is_shown_by_a_cpus_cache_too(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(l2_illusion, "SECONDS", 0.01)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert lab.main(["l2-illusion", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    values = dict(result["rows"])
    inflated, hot = list(values.values())[:2]
    assert inflated == pytest.approx(1.5 * hot) and "largest cache" in result["explanation"]
    assert result["machine"]["device"] == "cpu"


def test_a_profile_of_the_cpu_has_times_and_a_trace(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "SECONDS", 0.01)
    trace, lines = tmp_path / "trace.json", tmp_path / "lines.jsonl"
    words = ["--device", "cpu", "--tokens", "3", "--heads", "2", "--kv-heads", "1", "--head-dim",
             "8", "--trace", str(trace), "--output", str(lines), "--json"]  # fmt: skip
    assert profile.main(words) == 0 and profile.main(words) == 0
    first, second = (json.loads(line) for line in lines.read_text().splitlines())
    assert first["necessary_bytes"] == second["necessary_bytes"] == 2 * 3 * 3 * 8 * 2
    assert first["times"]["us"] > 0 and first["times"]["copy_us"] > 0
    assert "no counters" in first["explanation"][0]
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert "ropewalk: rotate, call 4" in names


class Properties:
    max_threads_per_multi_processor = 2048
    regs_per_multiprocessor = 65536
    multi_processor_count = 132


def test_launches_as_cupti_reports_them():
    kernel = {
        "ph": "X", "cat": "kernel", "name": "rotate_vectors", "ts": 20, "dur": 282.5,
        "args": {"registers per thread": 64, "grid": [1056, 2, 1], "block": [32, 8, 1],
                 "est. achieved occupancy %": 50},
    }  # fmt: skip
    earlier = {"cat": "kernel", "name": "fill", "ts": 10, "dur": 2, "args": {}}
    other = {"cat": "cpu_op", "name": "aten::empty", "ts": 1, "dur": 1}
    found = cupti.launches({"traceEvents": [kernel, other, earlier]}, Properties)
    assert [launch.kernel for launch in found] == ["fill", "rotate_vectors"]
    rotated = found[1]
    assert (rotated.time_us, rotated.registers, rotated.occupancy_percent) == (282.5, 64, 50)
    # 256 threads of 64 registers: registers leave room for 4 blocks, threads for 8.
    assert rotated.waves == 2112 / (132 * 4) and rotated.dram_read_bytes is None
    assert explain(rotated, 1000) == [] and found[0].waves is None
    assert cupti.launches({}, Properties) == []


def test_blocks_at_once():
    assert cupti.blocks_at_once(1024, 16, Properties) == 2
    assert cupti.blocks_at_once(32, 16, Properties) == cupti.MOST_BLOCKS
    assert cupti.blocks_at_once(1024, 255, Properties) == 1


def a_tool(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_nsys_writes_the_time_line_where_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    a_tool(tmp_path, "nsys", f'printf "%s\\n" "$@" > {tmp_path}/words')
    case = Case(3, heads=2, kv_heads=1, head_dim=8)
    said = trace.write(case, True, tmp_path / "t.json", torch.device("cuda"))
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:2] == ["profile", "--trace=cuda,nvtx"]
    assert f"--output={tmp_path / 't'}" in words and "ropewalk.profiling.target" in words
    assert json.loads(words[-1])["in_place"] is True and str(tmp_path / "t.nsys-rep") in said


@pytest.mark.parametrize(
    ("printed", "reason"),
    [("==ERROR== ERR_NVGPUCTRPERM", "does not let this user"), ("nothing", "no table (nothing)")],
)
def test_why_nsight_compute_gave_nothing(tmp_path, monkeypatch, printed, reason):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    a_tool(tmp_path, "ncu", f'echo "{printed}"')
    launches, why_not = ncu.measure(Case(3), in_place=False)
    assert launches == [] and reason in why_not


def test_nsight_compute_is_asked_for_one_launch(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "table").write_text(written(HEADER, UNITS, LAUNCH))
    a_tool(tmp_path, "ncu", f'printf "%s\\n" "$@" > {tmp_path}/words; cat {tmp_path}/table')
    (launch,), why_not = ncu.measure(Case(3), in_place=False, flush=False)
    words = (tmp_path / "words").read_text().splitlines()
    assert launch.time_us == 282.5 and why_not == ""
    assert words[words.index("--cache-control") + 1] == "none"
    assert l2_illusion.counted([launch], 100.0) == [
        ("bytes that DRAM moved (counter), the same buffers", (604.1e6 + 1000.5e9) / 100.0 * 1e-3)
    ]


def test_without_nsight_compute_it_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert ncu.measure(Case(3), in_place=False) == ([], "ncu (Nsight Compute) is not installed")


def test_launching_in_words():
    assert "75 % is launching" in explain_launches(2.0, 8.0)
    assert "hides" in explain_launches(8.0, 8.1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", lab.LABS)
def test_labs_run(name, capsys):
    assert lab.main([name]) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cupti_reports_the_rotation():
    rotate, q, k = prepared(Case(8), True, torch.device("cuda"))
    rotate(q, k)
    launches, why_not = cupti.collect(lambda: rotate(q, k), torch.device("cuda"))
    assert why_not == "" and len(launches) == 1
    assert launches[0].time_us > 0 and launches[0].registers > 0 and launches[0].waves > 0
