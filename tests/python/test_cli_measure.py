"""`ropewalk kernels`, `bench`, `run` and `verify`: what they report is checked, not how fast."""

from __future__ import annotations

import csv
import json
import os

import pytest

from cli_support import CONFIG, assert_one_sentence


def test_kernels_lists_the_scalar_one_and_one_active(cli):
    kernels = json.loads(cli("kernels", "--json").stdout)["kernels"]
    assert "scalar" in [k["name"] for k in kernels if k["supported"]]
    assert sum(k["active"] for k in kernels) == 1
    forced = cli("kernels", "--json", env=os.environ | {"ROPEWALK_KERNEL": "scalar"})
    assert [k["name"] for k in json.loads(forced.stdout)["kernels"] if k["active"]] == ["scalar"]
    wrong = cli("kernels", env=os.environ | {"ROPEWALK_KERNEL": "abacus"})
    assert_one_sentence(wrong, 2, "ROPEWALK_KERNEL", "abacus")


QUICK = ["--reps", "3", "--seconds", "0.001"]


def test_bench_spans_the_product_of_its_axes(cli):
    arguments = [
        "--tokens",
        "1,16",
        "--dtype",
        "f32,bf16",
        "--heads",
        "4",
        "--kv-heads",
        "2",
    ]
    result = cli("bench", *arguments, *QUICK, "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert len(rows) == 2 * 2 * 2  # tokens × dtype × placement
    for row in rows:
        assert row["verified"] and row["worst_error_to_bound"] <= 1
        assert row["us"] > 0 and row["floor_us"] > 0
        size = {"float32": 4, "bfloat16": 2}[row["dtype"]]
        assert row["bytes"] == 2 * row["tokens"] * 6 * 128 * size
        assert row["ratio_to_floor"] == pytest.approx(row["floor_us"] / row["us"])
        assert row["gb_per_s_counting_three"] == pytest.approx(1.5 * row["gb_per_s"])


def test_a_rows_command_reproduces_the_row(cli):
    options = [
        "--tokens",
        "8",
        "--heads",
        "3",
        "--kv-heads",
        "1",
        "--head-dim",
        "40",
        "--in-place",
    ]
    options += [
        "--rotary-dim",
        "24",
        "--pairing",
        "interleaved",
        "--direction",
        "inverse",
    ]
    first = json.loads(cli("bench", *options, *QUICK, "--json").stdout)["rows"][0]
    again = cli(*first["command"].split()[1:], *QUICK, "--json")
    second = json.loads(again.stdout)["rows"]
    assert len(second) == 1
    measured = (
        "us",
        "gb_per_s",
        "floor",
        "ratio",
        "spread",
        "worst",
        "correctly",
        "samples",
    )
    for key, value in first.items():
        if not key.startswith(measured):
            assert second[0][key] == value, key


def test_bench_tables(cli):
    options = ["--tokens", "4", "--heads", "2", "--kv-heads", "0", *QUICK]
    lines = cli("bench", *options, "--csv").stdout.splitlines()
    markdown = cli("bench", *options, "--markdown").stdout.splitlines()
    assert len(lines) == 3 and lines[0].startswith("tokens,")
    assert len({len(row) for row in csv.reader(lines)}) == 1
    assert len(markdown) == 4 and len({line.count("|") for line in markdown}) == 1
    assert "ropewalk bench --batch 1" in lines[1]
    assert "counting 3" in cli("bench", *options, "--explain").stdout


def test_run_covers_every_shipped_config(cli, shipped_configs):
    result = cli("run", "--tokens", "16", "--seconds", "0.001", "--json")
    assert result.returncode == 0, result.stderr + result.stdout
    report = json.loads(result.stdout)
    assert {row["model"] for row in report["rows"]} == {p.stem for p in shipped_configs}
    assert report["failed"] == 0
    for row in report["rows"]:
        assert row["ok"] and row["device"] in ("cpu", "cuda")
        if row["rotates"]:
            assert row["verified"] and 0 < row["worst_error_to_bound"] <= 1 and row["us"] > 0


def test_run_has_rows_of_the_gpu_or_says_why_not(cli, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(CONFIG))
    options = ["--configs", tmp_path, "--tokens", "4", "--seconds", "0.001"]
    report = json.loads(cli("run", *options, "--json").stdout)
    machine = report["machine"]
    on_gpu = [row for row in report["rows"] if row["device"] == "cuda"]
    assert len(report["rows"]) == 1 + len(on_gpu)
    assert ("gpu" in machine) == bool(on_gpu) and ("no_gpu" in machine) != bool(on_gpu)
    text = cli("run", *options).stdout
    if on_gpu:
        assert machine["gpu"]["name"] in text
        return
    lines = [line for line in text.splitlines() if line.startswith("No GPU rows: ")]
    assert lines == [f"No GPU rows: {machine['no_gpu']}."]
    assert "GPU" not in cli("run", *options, "--device", "cpu").stdout
    for command in ("run", "bench"):
        assert_one_sentence(cli(command, "--device", "cuda"), 2, "--device", machine["no_gpu"])


def test_what_only_one_kind_of_device_has(cli):
    assert_one_sentence(cli("bench", "--warm"), 2, "--warm", "--device cuda")


def test_run_reports_a_config_that_is_refused_and_fails(cli, config, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "good.json").write_text(json.dumps(CONFIG))
    (folder / "bad.json").write_text(json.dumps(CONFIG | {"rope_scaling": {"rope_type": "x"}}))
    result = cli(
        "run", "--configs", folder, "--tokens", "4", "--seconds", "0.001", "--device", "cpu"
    )
    assert result.returncode == 1
    assert "FAILED bad:" in result.stdout and "1 of 2 verified" in result.stdout
    table = [line for line in result.stdout.splitlines() if line.startswith("good")]
    assert len(table) == 1 and "llama" not in table[0]


def test_verify_a_part_of_the_matrix(cli):
    result = cli("verify", "--kernel", "scalar", "--dtype", "bfloat16", "--json")
    assert result.returncode == 0, result.stdout[-2000:]
    report = json.loads(result.stdout)
    assert report["pass"] and not report["failures"]
    assert {r["dtype"] for r in report["rows"]} == {"bfloat16"}
    assert {r["kernel"] for r in report["rows"]} == {"scalar"}
    assert {r["pairing"] for r in report["rows"]} == {
        "half",
        "interleaved",
        "interleaved_to_half",
    }
    assert all(0 < r["worst_error_to_bound"] <= 1 for r in report["rows"])
    parts = [
        json.loads(
            cli(
                *("verify", "--kernel", "scalar", "--dtype", "bf16", "--json"),
                *("--seed", report["seed"], "--shard", f"{part}/3"),
            ).stdout
        )
        for part in (1, 2, 3)
    ]
    for number, part in enumerate(parts, 1):
        assert part["pass"] and part["seed"] == report["seed"]
        assert part["shard"] == {"number": number, "parts": 3}
    for key in ("cases", "elements"):
        whole = sum(row[key] for row in report["rows"])
        assert sum(row[key] for part in parts for row in part["rows"]) == whole
        assert all(sum(row[key] for row in part["rows"]) < whole for part in parts)
