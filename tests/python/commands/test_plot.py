"""``ropewalk plot``: the numbers behind the figures, and the files."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("matplotlib")

from ropewalk.bench.cases import fixed_cases
from ropewalk.commands.plot import main
from ropewalk.plots import computed, results
from tolerances import trig_error

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture
def field(tmp_path) -> Path:
    """A file of results with made-up times: x tokens take x µs, the copy half of it."""
    rows = [
        dataclasses.asdict(case) | {
            "peer": peer, "us": float(case.tokens), "bytes": case.bytes, "ceiling": "copy",
            "gb_per_s": case.bytes / case.tokens * 1e-3, "ceiling_us": case.tokens / 2,
        }
        for case in fixed_cases() for peer in ("ropewalk", "eager")
    ]  # fmt: skip
    machine = {"gpu": "none", "cache_bytes": 60e6, "peak_bytes_per_second": 4e12}
    path = tmp_path / "field.json"
    path.write_text(json.dumps({"machine": machine, "rows": rows}))
    return path


@pytest.fixture
def made_up(tmp_path) -> dict[str, Path]:
    """Files of labs and of bench/lengths with made-up numbers."""
    window = [{"length": 1024, "perplexity": 9.0}, {"length": 2048, "perplexity": 8.0}]
    bucket = [{"end": 64, "bits_per_byte": 2.0}, {"end": 128, "bits_per_byte": 1.9}]
    found = {
        "illusion": {"lab": "l2-illusion", "rows": [["a", 600.0], ["b", 300.0]]},
        "waves": {"lab": "waves", "rows": [[132, 0.5, 10.0, 7.0], [264, 1.0, 10.0, 4.0]]},
        "launch": {"lab": "launch", "rows": [[1, 5.0, 2.0, 0.0], [10, 5.0, 2.0, 0.0]]},
        "rules": {"model": "a model", "window": 1024,
                  "rules": [{"rule": "none", "trained": 1024, "windows": window}]},
        "encodings": {"trained": 64, "encodings": {"rope": [{"buckets": bucket}]}},
    }  # fmt: skip
    paths = {}
    for name, data in found.items():
        paths[name] = tmp_path / f"{name}.json"
        paths[name].write_text(json.dumps({"machine": {"gpu": "none"}} | data))
    return paths


@pytest.mark.parametrize("words", [
    ["bandwidth", "{field}"], ["bandwidth", "{field}", "--by", "heads"], ["decode", "{field}"],
    ["error"], ["spectrum", str(CONFIGS / "llama-3.1-8b.json")],
    ["scaling", str(CONFIGS / "phi-3.5-mini.json")], ["decay"],
    ["lab", "{illusion}"], ["lab", "{waves}"], ["lab", "{launch}"],
    ["lengths", "{rules}"], ["lengths", "{encodings}"],
])  # fmt: skip
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_every_figure_is_written(field, made_up, tmp_path, words, suffix):
    out = tmp_path / ("figure" + suffix)
    assert main([word.format(field=field, **made_up) for word in words] + ["--out", str(out)]) == 0
    assert out.read_bytes()[:4] == (b"\x89PNG" if suffix == ".png" else b"<?xm")


def test_the_measured_lines_are_the_files_numbers(field, tmp_path):
    rows, machine = results.load(field)
    found = results.series(rows, results.LENGTHS, "tokens", "us")
    assert found["eager"] == [(2.0**n, 2.0**n) for n in range(6, 14)]
    copies = results.ceiling(rows, results.LENGTHS, "tokens")
    assert copies[0][1] == pytest.approx(2 * 2 * 2 * 12 * 128 * 4 * 64 / 32 * 1e-3 / 1)
    assert machine["gpu"] == "none"
    sent = tmp_path / "sent.csv"
    with sent.open("w", newline="") as file:
        flat = [row | {"machine_gpu": "none"} for row in rows]
        writer = csv.DictWriter(file, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)
    again, machine = results.load(sent)
    assert results.series(again, results.LENGTHS, "tokens", "us") == found
    assert machine == {"gpu": "none"}


def test_errors_are_those_that_the_figure_claims():
    positions = torch.tensor([1, 1000, 131071, 2**20])
    errors = computed.angle_errors(128, 10000.0, positions)
    # The reference here is float64: its own angle is off by half an ulp of 2^20, 1.2e-10.
    assert errors["exact (Ropewalk, float32)"].max() <= trig_error("float32")
    recipe = errors["float32 recipe"]
    assert recipe[2] > 1000 * trig_error("float32") and recipe[3] > recipe[1]
    assert errors["angles in bfloat16"][1] > 0.5


def test_decay_and_schedules():
    score = computed.score_decay(64, 10000.0, torch.tensor([0, 1, 5000]))
    assert score[0] == 1 and abs(float(score[2])) < float(score[1]) < 1
    config = json.loads((CONFIGS / "qwen3-8b.json").read_text())
    found = computed.schedules(config, factor=4.0)
    default, linear = (found[name].frequencies for name in list(found)[:2])
    assert linear == pytest.approx([f / 4 for f in default])
    assert len(found) == 6


@pytest.mark.parametrize("words", [
    ["decode", "{absent}", "--out", "x.png"], ["decode", "{other}", "--out", "x.png"],
    ["error", "--out", "x.txt"], ["spectrum", "{other}", "--out", "x.png"],
    ["lab", "{other}", "--out", "x.png"], ["lengths", "{other}", "--out", "x.png"],
])  # fmt: skip
def test_bad_input_is_one_sentence(tmp_path, capsys, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text('{"rows": [{"a": 1}]}')
    places = {"absent": tmp_path / "absent.json", "other": tmp_path / "other.json"}
    assert main([word.format(**places) for word in words]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("ropewalk: plot: ")
    assert not (tmp_path / "x.png").exists()
