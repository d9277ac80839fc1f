"""Counters of Nsight Compute, read and put into words; the labs' arithmetic; refusals without a GPU.

The CSV is written by hand in the documented format: a header, a line of units, a line a launch."""

from __future__ import annotations

import pytest
import torch

from ropewalk.commands import lab, profile
from ropewalk.labs import l2_illusion, waves
from ropewalk.profiling.counters import METRICS, Counters, explain, parse, tail

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
    [(profile, []), *((lab, [name]) for name in lab.LABS)],
)
def test_without_a_gpu_they_say_so(command, words, capsys):
    assert command.main(words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "CUDA device" in lines[0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", lab.LABS)
def test_labs_run(name, capsys):
    assert lab.main([name]) == 0
    assert capsys.readouterr().out.strip()
