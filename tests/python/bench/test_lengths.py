"""bench/lengths: the encodings as their papers define them, and the scripts at a small size."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[3] / "bench" / "lengths"
SMALL = {"steps": 3, "batch": 2, "length": 8, "times": 4, "width": 16, "heads": 2, "layers": 1,
         "seeds": 1, "texts": 1}  # fmt: skip


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_sinusoidal_rows_are_turns(module):
    table = module("tiny_model").sinusoidal(5, 4)
    assert table[0].tolist() == [0, 1, 0, 1]
    assert float(table[3, 0]) == pytest.approx(math.sin(3))
    assert float(table[3, 3]) == pytest.approx(math.cos(0.03))


def test_alibi_falls_by_its_slopes(module):
    bias = module("tiny_model").alibi(8, 4, torch.device("cpu"))
    assert bias[0, 3].tolist() == [-1.5, -1.0, -0.5, 0.0]
    assert float(bias[7, 3, 0]) == -3 / 256


def test_relative_buckets(module):
    bucket = module("tiny_model").bucket
    found = bucket(torch.tensor([-2, 0, 15, 16, 127, 128, 5000])).tolist()
    assert found[:4] == [0, 0, 15, 16] and found[4:] == [31, 31, 31]
    assert bucket(torch.arange(200)).diff().min() >= 0


@pytest.mark.parametrize("encoding", ["rope", "sinusoidal", "learned", "alibi", "relative", "none"])
def test_no_byte_is_predicted_from_later_ones(module, encoding):
    model = module("tiny_model").TinyModel(encoding, 16, 2, 2, 12)
    tokens = torch.randint(256, (1, 12))
    changed = tokens.clone()
    changed[0, 7] = (changed[0, 7] + 1) % 256
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :7], after[:, :7])
    assert (before[:, 7:] != after[:, 7:]).any()


def test_only_nope_reads_a_bag_of_bytes(module):
    """The last logits of one layer: the same for a permutation of the bytes before the last."""
    tokens = torch.tensor([[1, 2, 3, 4, 9]])
    turned = torch.tensor([[4, 2, 1, 3, 9]])
    for encoding in module("tiny_model").ENCODINGS:
        torch.manual_seed(3)
        model = module("tiny_model").TinyModel(encoding, 16, 2, 1, 5)
        if encoding == "relative":
            torch.nn.init.normal_(model.relative)
        with torch.no_grad():
            gap = float((model(tokens)[0, -1] - model(turned)[0, -1]).abs().max())
            size = float(model(tokens)[0, -1].abs().max())
        rounding = 64 * torch.finfo(torch.float32).eps * size
        assert (gap <= rounding) == (encoding == "none"), encoding


def test_the_encodings_script(tmp_path):
    out = tmp_path / "encodings.json"
    words = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
    words += ["--device", "cpu", "--output", str(out), "--encodings", "rope", "alibi"]
    subprocess.run([sys.executable, str(FOLDER / "encodings.py"), *words], check=True)
    data = json.loads(out.read_text())
    assert list(data["encodings"]) == ["rope", "alibi"] and data["trained"] == 8
    buckets = data["encodings"]["rope"][0]["buckets"]
    assert [bucket["end"] for bucket in buckets] == [2, 4, 8, 16, 32]
    assert all(0 < bucket["bits_per_byte"] < 20 for bucket in buckets)


def test_windows_of_perplexity(module):
    perplexity = module("perplexity")
    loss = torch.full((3 * perplexity.WINDOW - 1,), math.log(7.0), dtype=torch.float64)
    loss[: perplexity.WINDOW - 1] = math.log(2.0)
    found = perplexity.windows(loss)
    assert [w["length"] for w in found] == [1024, 2048, 3072]
    assert [round(w["perplexity"], 9) for w in found] == [2.0, 7.0, 7.0]


def test_perplexity_of_a_small_model(module):
    """−log p of each token, compared with the whole model's logits."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, vocab_size=32,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    tokens = torch.randint(32, (9,))
    with torch.no_grad():
        got = module("perplexity").losses(model, tokens)
        wanted = model(tokens[None]).logits[0, :-1].log_softmax(-1)
    torch.testing.assert_close(got, -wanted.gather(1, tokens[1:, None])[:, 0])


def test_the_script_of_model_steps(tmp_path):
    pytest.importorskip("transformers")
    out = tmp_path / "steps.json"
    words = ["--device", "cpu", "--small", "--layers", "1", "--batch", "1", "--tokens", "4",
             "--cached", "3", "--seconds", "0", "--rotations", "exact",
             "--output", str(out)]  # fmt: skip
    script = FOLDER.parent / "model_step.py"
    subprocess.run([sys.executable, str(script), *words], check=True)
    rows = json.loads(out.read_text())["rows"]
    assert [row["step"] for row in rows] == ["train", "prefill", "decode"]
    assert all(row["ms"] > 0 for row in rows)
