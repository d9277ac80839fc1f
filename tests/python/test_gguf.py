"""Rope metadata of GGUF files: what llama.cpp's rules make of it, and hostile headers."""

import json
import math
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
CLI = Path(os.environ.get("ROPEWALK_CLI", ROOT / "build" / "cli" / "ropewalk"))
U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, value):
    """One key with the type that converters write for such a value."""
    head = text(key)
    if isinstance(value, str):
        return head + struct.pack("<I", STRING) + text(value)
    if isinstance(value, bool):
        return head + struct.pack("<IB", BOOL, value)
    if isinstance(value, int):
        return head + struct.pack("<II", U32, value)
    if isinstance(value, float):
        return head + struct.pack("<If", F32, value)
    if value and isinstance(value[0], str):
        body = b"".join(text(word) for word in value)
        return head + struct.pack("<IIQ", ARRAY, STRING, len(value)) + body
    kind, code = (BOOL, "B") if isinstance(value[0], bool) else (I32, "i")
    body = struct.pack(f"<{len(value)}{code}", *value)
    return head + struct.pack("<IIQ", ARRAY, kind, len(value)) + body


def gguf(keys, factors=None, version=3):
    factors = factors or {}
    head = b"GGUF" + struct.pack("<IQQ", version, len(factors), len(keys))
    head += b"".join(entry(key, value) for key, value in keys.items())
    data = b""
    for name, values in factors.items():
        head += text(name) + struct.pack("<IQIQ", 1, len(values), 0, len(data))
        data += struct.pack(f"<{len(values)}f", *values)
        data += bytes(-len(data) % 32)
    return head + bytes(-len(head) % 32) + data


def keys_of(arch, **more):
    keys = {
        "general.architecture": arch,
        "tokenizer.ggml.tokens": ["a", "bc" * 300, ""],
        f"{arch}.embedding_length": 4096,
        f"{arch}.block_count": 4,
        f"{arch}.context_length": 8192,
        f"{arch}.attention.head_count": 32,
        f"{arch}.attention.head_count_kv": 8,
        f"{arch}.rope.freq_base": 500000.0,
    }
    for key, value in more.items():
        keys[f"{arch}.{key.replace('__', '.')}"] = value
    return keys


def inspect(tmp_path, data):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return subprocess.run(
        [str(CLI), "inspect", str(path), "--json"], capture_output=True, text=True, check=False
    )


def layers(tmp_path, *arguments, **options):
    done = inspect(tmp_path, gguf(*arguments, **options))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def frequencies(layer):
    return np.array([pair["omega"] for pair in layer["frequencies"]])


def plain(base, width):
    # Two roundings in fp32 of the exponent's power and its reciprocal, and one of the exponent.
    exponent = np.float32(np.arange(0, width, 2)) / np.float32(width)
    return 1.0 / np.float64(base) ** np.float64(exponent)


def assert_close(ours, theirs):
    assert np.abs(ours / theirs - 1).max() < 2.0**-22


def test_llama_is_interleaved_with_its_own_base(tmp_path):
    found = layers(tmp_path, keys_of("llama", rope__dimension_count=128))
    layer = found["layer_types"]["all"]
    assert (layer["pairing"], layer["rotary_dim"], layer["head_dim"]) == ("interleaved", 128, 128)
    assert (found["query_heads"], found["key_heads"], found["layers"]) == (32, 8, 4)
    assert_close(frequencies(layer), plain(500000.0, 128))


def test_frequency_factors_of_llama_31_divide(tmp_path):
    factors = [1.0] * 32 + [8.0] * 32
    found = layers(tmp_path, keys_of("llama"), {"rope_freqs.weight": factors})
    assert_close(frequencies(found["layer_types"]["all"]) * factors, plain(500000.0, 128))


def test_yarn_and_its_amplitude(tmp_path):
    more = {
        "rope__scaling__type": "yarn",
        "rope__scaling__factor": 4.0,
        "rope__scaling__original_context_length": 2048,
    }
    layer = layers(tmp_path, keys_of("qwen2", **more))["layer_types"]["all"]
    assert (layer["pairing"], layer["scaling"]) == ("half", "yarn")
    assert layer["amplitude"] == pytest.approx(0.1 * math.log(4) + 1, rel=2.0**-50)


def test_linear_longrope_sections_and_two_bases(tmp_path):
    layer = layers(tmp_path, keys_of("qwen2", rope__scaling__factor=2.0))["layer_types"]["all"]
    assert_close(2 * frequencies(layer), plain(500000.0, 128))
    both = {"rope_factors_short.weight": [1.0] * 64, "rope_factors_long.weight": [2.0] * 64}
    more = {"rope__scaling__attn_factor": 1.25}
    layer = layers(tmp_path, keys_of("phi3", **more), both)["layer_types"]["all"]
    assert (layer["scaling"], layer["amplitude"]) == ("longrope", 1.25)
    sections = {"rope__dimension_sections": [16, 24, 24, 0]}
    layer = layers(tmp_path, keys_of("qwen2vl", **sections))["layer_types"]["all"]
    assert layer["axes"] == 3
    assert [pair["axis"] for pair in layer["frequencies"]].count(0) == 16
    found = layers(tmp_path, keys_of("gemma3", attention__key_length=256))["layer_types"]
    assert found["sliding_attention"]["base"] == 10000
    assert found["full_attention"]["base"] == 500000


def test_latent_attention_and_unknown_architectures(tmp_path):
    more = {"attention__kv_lora_rank": 512, "rope__dimension_count": 64}
    found = layers(tmp_path, keys_of("deepseek2", **more))
    assert (found["key_heads"], found["layer_types"]["all"]["head_dim"]) == (1, 64)
    done = inspect(tmp_path, gguf(keys_of("newarch")))
    assert done.returncode == 2 and "newarch" in done.stderr
    done = inspect(tmp_path, gguf(keys_of("llama", rope__surprise=1)))
    assert done.returncode == 2 and "llama.rope.surprise" in done.stderr


def test_what_the_gguf_package_writes(tmp_path):
    package = pytest.importorskip("gguf")
    path = tmp_path / "model.gguf"
    writer = package.GGUFWriter(path, "qwen3")
    writer.add_block_count(2)
    writer.add_context_length(40960)
    writer.add_embedding_length(1024)
    writer.add_head_count(16)
    writer.add_head_count_kv(8)
    writer.add_key_length(128)
    writer.add_rope_freq_base(1e6)
    writer.add_tensor("token_embd.weight", np.zeros((4, 8), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = json.loads(
        subprocess.check_output([str(CLI), "inspect", str(path), "--json"], text=True)
    )
    assert (found["model_type"], found["query_heads"], found["key_heads"]) == ("qwen3", 16, 8)
    assert found["layer_types"]["all"]["head_dim"] == 128


def test_hostile_headers_are_one_sentence(tmp_path):
    good = gguf(keys_of("llama"), {"rope_freqs.weight": [1.0] * 64})
    huge = struct.pack("<Q", 2**63)
    cases = [good[:cut] for cut in (5, 8, 20, 24, 30, 60, 200, len(good) - 40)] + [
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40),
        b"GGUF" + struct.pack("<IQQ", 3, 2**40, 0),
        b"GGUF" + struct.pack("<IQQ", 0x03000000, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + huge + b"x",
        b"GGUF"
        + struct.pack("<IQQ", 3, 0, 1)
        + text("k")
        + struct.pack("<II", ARRAY, STRING)
        + huge,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<II", ARRAY, 10) + huge,
        b"GGUF"
        + struct.pack("<IQQ", 3, 0, 1)
        + text("k")
        + struct.pack("<II", ARRAY, ARRAY)
        + huge,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 77),
        gguf({"general.architecture": "llama"}),
    ]
    for data in cases:
        done = inspect(tmp_path, data)
        assert done.returncode == 2, data[:64]
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("ropewalk: ")
    generator = np.random.default_rng(11)
    for _ in range(40):
        broken = bytearray(good)
        for at in generator.integers(4, len(broken), 3):
            broken[at] = generator.integers(256)
        assert inspect(tmp_path, bytes(broken)).returncode in (0, 2)
