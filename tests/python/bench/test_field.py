"""The field benchmark on the CPU: what counts as right, rows, formats, the command."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest
import torch

import ropewalk
from ropewalk.bench import cases, report, tolerances
from ropewalk.bench.cli import main
from ropewalk.bench.field import (
    FAILED,
    TOO_LARGE,
    UNAVAILABLE,
    UNSUPPORTED,
    VERIFIED,
    WRONG,
    Options,
    columns,
    run,
)  # fmt: skip
from ropewalk.bench.judge import judge
from ropewalk.bench.packages import Unavailable
from ropewalk.bench.peers import all_peers
from ropewalk.bench.peers.peer import Peer, Unsupported
from ropewalk.bench.timing import sets_for, summarise

CPU = Options(torch.device("cpu"), seconds=0.01)
SMALL = cases.Case(3, 2, 2, 1, 8, dtype="float32")


def ours(setting):
    case = setting.case
    plan = ropewalk.make_plan(case.head_dim, case.base, pairing=case.pairing)
    return lambda q, k: ropewalk.rotate(
        q, k, plan=plan, positions=setting.positions, layout=case.layout, inverse=setting.inverse
    )


def one_row(prepare, case=SMALL, **options):
    return next(run([case], [Peer("x", "x", prepare, **options)], CPU))


@pytest.mark.parametrize("case", cases.tiny_cases(), ids=str)
def test_ropewalk_and_the_models_code_are_right_in_every_kind_of_case(case):
    pytest.importorskip("transformers")
    wanted = {"ropewalk", "ropewalk-in-place", "eager", "eager-gather"}
    peers = [peer for peer in all_peers() if peer.name in wanted]
    rows = list(run([case], peers, Options(torch.device("cpu"), verify_only=True)))
    assert [row.status for row in rows] == [VERIFIED] * 4
    assert all(row.cold is None for row in rows)


def test_the_fixed_cases_are_those_that_were_promised():
    fixed = cases.fixed_cases()
    assert cases.Case(8192, 4, 32, 32, dtype="float32", layout="bhtd") in fixed
    tutorial = [c for c in fixed if c.base == 1e6]
    assert {c.tokens for c in tutorial if c.heads == 12} == {2**n for n in range(6, 14)}
    assert {c.heads for c in tutorial if c.tokens == 1024} >= {1, 2, 4, 8, 16, 32}
    decode = [c for c in fixed if c.dtype == "bfloat16"]
    assert {c.tokens for c in decode} == {2**n for n in range(17)}
    assert {(c.heads, c.kv_heads, c.head_dim) for c in decode} == {(32, 8, 128)}
    assert fixed[0].bytes == 2 * 2 * 4 * 32 * 8192 * 128 * 4


@pytest.mark.parametrize(
    "damage",
    [
        lambda q: q.neg(),
        lambda q: q.index_fill(1, torch.tensor([2]), 0.0),
        lambda q: torch.where(torch.arange(q.numel()).view(q.shape) == 5, torch.nan, q),
        lambda q: torch.where(torch.arange(q.numel()).view(q.shape) == 9, torch.inf, q),
        lambda q: torch.where(torch.arange(q.numel()).view(q.shape) == 9, q + q.abs().max() / 64, q),
    ],
)  # fmt: skip
def test_one_wrong_element_is_found(damage):
    def prepare(setting):
        rotate = ours(setting)
        return lambda q, k: (damage(rotate(q, k)[0]), rotate(q, k)[1])

    row = one_row(prepare)
    assert row.status == WRONG and row.cold is None and row.error_to_bound > 1


def test_angles_in_bfloat16_and_a_forgotten_offset_are_found(setting):
    for positions in (lambda p: p.bfloat16().long(), lambda p: p - p[:, :1]):
        made = setting(positions="start")
        q, k = made.inputs()[0]
        rotate = ours(made)
        assert judge(made, (q, k), rotate(q, k)).right
        made.positions = positions(made.positions)
        wrong = ours(made)(q, k)
        assert not judge(setting(positions="start"), (q, k), wrong).right


def test_a_result_of_another_shape_or_dtype_failed_to_rotate():
    row = one_row(lambda setting: lambda q, k: (q.double(), k))
    assert row.status == FAILED and row.reason.startswith("q: expected")


def test_a_peer_that_writes_into_its_input_is_marked():
    def prepare(setting):
        rotate = ours(setting)

        def destroying(q, k):
            rotated = rotate(q, k)
            return q.copy_(rotated[0]), k.copy_(rotated[1])

        return destroying

    assert one_row(prepare).destroys_input
    assert not one_row(prepare, in_place=True).destroys_input
    assert not one_row(ours).destroys_input


def raising(error):
    def prepare(setting):
        raise error

    return prepare


def test_what_a_peer_raises_is_its_result():
    assert one_row(raising(Unavailable("not installed"))).status == UNAVAILABLE
    assert one_row(raising(Unsupported("float64"))).status == UNSUPPORTED
    row = one_row(raising(RuntimeError("broken\nin two lines")))
    assert (row.status, row.reason) == (FAILED, "broken")


def test_an_absent_peer_is_asked_once():
    asked = []

    def prepare(setting):
        asked.append(1)
        raise Unavailable("absent")

    other = cases.Case(4, 1, 1, 1, 8, dtype="float32")
    rows = list(run([SMALL, other], [Peer("x", "x", prepare)], CPU))
    assert [row.status for row in rows] == [UNAVAILABLE] * 2 and asked == [1]


def test_a_case_beyond_max_bytes_is_left_out_and_said():
    options = Options(torch.device("cpu"), max_bytes=10)
    rows = list(run([SMALL], [Peer("x", "x", ours)], options))
    assert [row.status for row in rows] == [TOO_LARGE]
    assert "--max-bytes" in report.left_out(rows)[0]


def test_a_timed_row_has_every_number_and_its_command():
    row = one_row(ours)
    flat = columns(row)
    assert flat["status"] == VERIFIED and flat["bytes"] == 2 * 2 * 3 * 3 * 8 * 4
    assert flat["tokens_per_s"] == pytest.approx(6 / flat["us"] * 1e6)
    assert flat["gb_per_s"] == pytest.approx(flat["bytes"] / flat["us"] * 1e-3)
    assert flat["of_ceiling"] == pytest.approx(flat["ceiling_us"] / flat["us"])
    assert flat["working_set_bytes"] == row.sets * flat["bytes"]
    assert flat["hot_us"] > 0 and flat["ceiling"] in ("copy", "negating copy")
    assert flat["command"].startswith("ropewalk bench --against x --no-fixed --batch 2 --tokens 3")


def test_the_formats_hold_the_same_rows():
    rows = [one_row(ours), one_row(raising(Unavailable("not installed")))]
    machine = {"cpu": "a cpu", "torch": "2", "ropewalk": "0", "date": "today"}
    data = json.loads(report.to_json(rows, machine))
    assert data["machine"] == machine and len(data["rows"]) == 2
    lines = list(csv.DictReader(io.StringIO(report.to_csv(rows, machine))))
    assert [line["status"] for line in lines] == [VERIFIED, UNAVAILABLE]
    assert float(lines[0]["us"]) == data["rows"][0]["us"]
    sent = list(csv.DictReader(io.StringIO(report.to_report(rows, machine))))
    assert {line["machine_cpu"] for line in sent} == {"a cpu"}
    for text in (report.to_markdown(rows, machine), report.to_text(rows, machine)):
        assert "not installed" in text and f"{rows[0].cold.median_us:.2f}" in text


def test_statistics_and_sets():
    timing = summarise([4.0, 1.0, 2.0, 3.0, 100.0])
    assert timing.median_us == 3.0 and timing.spread == pytest.approx(2 / 3)
    assert sets_for(100, 1000) == 50
    assert sets_for(10_000_000, 1000) == 1 and sets_for(1, 10**9) == 512


def test_the_command(tmp_path, capsys):
    sent = tmp_path / "mine.csv"
    words = ["--against", "ropewalk", "--no-fixed", "--tokens", "2,3", "--heads", "1", "--kv-heads",
             "1", "--device", "cpu", "--seconds", "0.001", "--json", "--report", str(sent)]  # fmt: skip
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["tokens"], row["status"]) for row in rows] == [(2, VERIFIED), (3, VERIFIED)]
    assert len(list(csv.DictReader(sent.open()))) == 2


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--against", "nobody"], "--against"),
        (["--against", "ropewalk", "--no-fixed"], "--tokens"),
        (["--against", "ropewalk", "--dtype", "int8"], "--dtype"),
        (["--against", "ropewalk", "--tokens", "0"], "--tokens"),
        (["--against", "ropewalk", "--packages", "/nowhere"], "--packages"),
        (["--against", "ropewalk", "--output", "x.txt"], "--output"),
        (["--against", "ropewalk", "--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_is_one_sentence(capsys, words, named):
    assert main([*words, "--device", "cpu"]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("ropewalk: bench: ") and named in lines[0]


def test_python_m_ropewalk_leads_here():
    words = [sys.executable, "-m", "ropewalk", "bench", "--list-peers"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert all(peer.name in listed for peer in all_peers())


def test_the_bound_is_read_from_the_header(monkeypatch, tmp_path):
    assert tolerances.constant("kRecipeAngleRoundings") >= 1
    with pytest.raises(KeyError, match="kNone"):
        tolerances.constant("kNone")
    installed = tmp_path / "tolerance.h"
    installed.write_text("inline constexpr double kRecipeAngleRoundings = 2.5e-1;")
    monkeypatch.setattr(tolerances, "_INSTALLED", installed)
    tolerances._text.cache_clear()
    tolerances.constant.cache_clear()
    assert tolerances.constant("kRecipeAngleRoundings") == 0.25
    tolerances._text.cache_clear()
    tolerances.constant.cache_clear()
