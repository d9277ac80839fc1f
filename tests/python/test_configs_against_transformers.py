"""The shipped configs, as `ropewalk inspect` reads them, against transformers' own modules."""

import importlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tolerances import roundings

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
CLI = Path(os.environ.get("ROPEWALK_CLI", ROOT / "build" / "cli" / "ropewalk"))
CONFIGS = sorted((ROOT / "configs").glob("*.json"))
# Its power function and ours (correctly rounded) part by one unit in the last place, at most for
# this many frequencies of one table.
MOST_DIFFERENT = 2

ROTARY_MODULES = {
    "cohere": "CohereRotaryEmbedding",
    "deepseek_v3": "DeepseekV3RotaryEmbedding",
    "gemma3": "Gemma3RotaryEmbedding",
    "glm4": "Glm4RotaryEmbedding",
    "gpt_neox": "GPTNeoXRotaryEmbedding",
    "gpt_oss": "GptOssRotaryEmbedding",
    "llama": "LlamaRotaryEmbedding",
    "mistral": "MistralRotaryEmbedding",
    "modernbert": "ModernBertRotaryEmbedding",
    "phi3": "Phi3RotaryEmbedding",
    "qwen2": "Qwen2RotaryEmbedding",
    "qwen2_vl": "Qwen2VLRotaryEmbedding",
    "qwen3": "Qwen3RotaryEmbedding",
    "qwen3_vl": "Qwen3VLTextRotaryEmbedding",
}

pytestmark = pytest.mark.skipif(not CLI.exists(), reason="the command line is not built")


def inspect(path, *options):
    """The layer types of `ropewalk inspect PATH --json`."""
    command = [str(CLI), "inspect", str(path), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["layer_types"]


def text_config(path):
    """The transformers config object of the text model, from the same keys."""
    keys = json.loads(path.read_text())
    keys.pop("_source")
    config = transformers.AutoConfig.for_model(keys.pop("model_type"), **keys)
    return config.get_text_config()


def rotary_module(path):
    model_type = json.loads(path.read_text())["model_type"]
    module = importlib.import_module(f"transformers.models.{model_type}.modeling_{model_type}")
    return getattr(module, ROTARY_MODULES[model_type])(text_config(path))


def bits_of(layer):
    return np.array(
        [int(entry["omega_fp32_bits"], 16) for entry in layer["frequencies"]], dtype=np.uint32
    )


def assert_same_frequencies(layer, inv_freq):
    ours = bits_of(layer).astype(np.int64)
    theirs = inv_freq.detach().numpy().astype(np.float32).view(np.uint32).astype(np.int64)
    assert ours.shape == theirs.shape
    apart = np.abs(ours - theirs)
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= MOST_DIFFERENT


def with_module():
    return [path for path in CONFIGS if path.stem != "gpt-j-6b"]


def test_there_are_configs():
    assert len(CONFIGS) == 17


@pytest.mark.parametrize("path", with_module(), ids=lambda path: path.stem)
def test_frequencies_and_amplitude(path):
    module = rotary_module(path)
    layers = inspect(path)
    for name, layer in layers.items():
        prefix = "" if name == "all" else f"{name}_"
        assert_same_frequencies(layer, getattr(module, f"{prefix}inv_freq"))
        scaling = getattr(module, f"{prefix}attention_scaling")
        assert layer["amplitude"] == pytest.approx(scaling, rel=roundings("float64", 2))
        assert layer["rotates"]
        assert layer["rotary_dim"] == 2 * len(layer["frequencies"])


def test_longrope_switches_with_the_length():
    path = ROOT / "configs" / "phi-3.5-mini.json"
    module = rotary_module(path)
    for length in (4096, 4097, 131072):
        module(torch.zeros(1), torch.tensor([[length - 1]]))
        (layer,) = inspect(path, "--length", str(length)).values()
        assert_same_frequencies(layer, module.inv_freq)


def test_gptj_table():
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions

    (layer,) = inspect(ROOT / "configs" / "gpt-j-6b.json").values()
    assert (layer["rotary_dim"], layer["head_dim"], layer["pairing"]) == (64, 256, "interleaved")
    omega = bits_of(layer).view(np.float32).astype(np.float64)
    sine, cosine = create_sinusoidal_positions(2, 64)[1].numpy().reshape(2, 32)
    # PyTorch's functions in fp32, good to one unit in the last place, of frequencies alike.
    last_bits = roundings("float32", 3)
    np.testing.assert_allclose(np.sin(omega), sine, rtol=last_bits, atol=0)
    np.testing.assert_allclose(np.cos(omega), cosine, rtol=last_bits, atol=0)


def test_deepseek_softmax_multiplier():
    (layer,) = inspect(ROOT / "configs" / "deepseek-v3.json").values()
    config = text_config(ROOT / "configs" / "deepseek-v3.json")
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

    small = {"hidden_size": 64, "num_attention_heads": 2, "q_lora_rank": 8, "kv_lora_rank": 8}
    for key, value in small.items():
        setattr(config, key, value)
    scaling = DeepseekV3Attention(config, 0).scaling * config.qk_head_dim**0.5
    assert layer["softmax_multiplier"] == pytest.approx(scaling, rel=roundings("float64", 8))


@pytest.mark.parametrize(
    "name, axes", [("qwen2-vl-7b", (16, 24, 24)), ("qwen3-vl-8b", (24, 20, 20))]
)
def test_axes(name, axes):
    (layer,) = inspect(ROOT / "configs" / f"{name}.json").values()
    assert layer["axes"] == 3
    counts = np.bincount([entry["axis"] for entry in layer["frequencies"]], minlength=3)
    assert tuple(counts) == axes
