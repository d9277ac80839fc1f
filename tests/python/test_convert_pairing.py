"""`ropewalk convert-pairing`: rows change places, scores stay, nothing is converted twice."""

import json

import numpy as np
import pytest

from cli_support import assert_one_sentence

safetensors = pytest.importorskip("safetensors.numpy")

HEADS, KEY_HEADS, HEAD_DIM, WIDTH = 4, 2, 16, 24


def config(tmp_path, **more):
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_size": WIDTH,
                "head_dim": HEAD_DIM,
                "num_attention_heads": HEADS,
                "num_key_value_heads": KEY_HEADS,
                "num_hidden_layers": 1,
                **more,
            }
        )
    )
    return path


def checkpoint(generator=None):
    generator = generator or np.random.default_rng(5)
    attention = "model.layers.0.self_attn."
    shapes = {
        "q_proj.weight": (HEADS * HEAD_DIM, WIDTH),
        "q_proj.bias": (HEADS * HEAD_DIM,),
        "k_proj.weight": (KEY_HEADS * HEAD_DIM, WIDTH),
        "q_norm.weight": (HEAD_DIM,),
        "v_proj.weight": (KEY_HEADS * HEAD_DIM, WIDTH),
    }
    tensors = {
        attention + name: generator.standard_normal(shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    tensors["model.embed_tokens.weight"] = generator.standard_normal((7, WIDTH)).astype(np.float32)
    return tensors


def rotate(x, positions, pairing, rotary_dim):
    """(tokens, heads, channels) in float64 by the definition."""
    half = rotary_dim // 2
    first, second = (
        (np.arange(half), np.arange(half) + half)
        if pairing == "half"
        else (2 * np.arange(half), 2 * np.arange(half) + 1)
    )
    angle = positions[:, None, None] * 10000.0 ** (-2 * np.arange(half) / rotary_dim)
    out = x.copy()
    out[..., first] = x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle)
    out[..., second] = x[..., second] * np.cos(angle) + x[..., first] * np.sin(angle)
    return out


def scores(tensors, pairing, rotary_dim):
    attention = "model.layers.0.self_attn."
    hidden = np.random.default_rng(9).standard_normal((6, WIDTH))
    positions = np.array([0.0, 1.0, 2.0, 500.0, 4095.0, 131071.0])
    q = hidden @ tensors[attention + "q_proj.weight"].astype(float).T
    q = (q + tensors[attention + "q_proj.bias"]).reshape(6, HEADS, HEAD_DIM)
    q = q * tensors[attention + "q_norm.weight"]
    k = hidden @ tensors[attention + "k_proj.weight"].astype(float).T
    k = np.repeat(k.reshape(6, KEY_HEADS, HEAD_DIM), HEADS // KEY_HEADS, axis=1)
    # The norm's weight is q's alone here; k has none.
    q, k = (rotate(x, positions, pairing, rotary_dim) for x in (q, k))
    return np.einsum("thc,shc->hts", q, k)


@pytest.mark.parametrize("share, rotary_dim", [(1.0, 16), (0.5, 8)])
def test_scores_are_the_same_under_the_other_pairing(cli, tmp_path, share, rotary_dim):
    path = config(tmp_path, partial_rotary_factor=share)
    before = checkpoint()
    safetensors.save_file(before, tmp_path / "a.safetensors", {"format": "pt"})
    options = ["--config", path, "--to", "interleaved"]
    done = cli("convert-pairing", tmp_path / "a.safetensors", tmp_path / "b.safetensors", *options)
    assert done.returncode == 0, done.stderr
    after = safetensors.load_file(tmp_path / "b.safetensors")
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    names = ("q_proj.weight", "q_proj.bias", "k_proj.weight", "q_norm.weight")
    assert changed == {"model.layers.0.self_attn." + name for name in names}
    theirs = scores(before, "half", rotary_dim)
    ours = scores(after, "interleaved", rotary_dim)
    # Sums of HEAD_DIM products in another order.
    assert np.abs(ours - theirs).max() <= HEAD_DIM * 2.0**-50 * np.abs(theirs).max()


def test_there_and_back_is_the_same_file_and_twice_is_refused(cli, tmp_path):
    path = config(tmp_path)
    safetensors.save_file(checkpoint(), tmp_path / "a.safetensors", {"format": "pt"})
    a, b, c, d = (tmp_path / f"{name}.safetensors" for name in "abcd")
    to = ["--config", path, "--to"]
    assert cli("convert-pairing", a, b, *to, "interleaved").returncode == 0
    assert_one_sentence(cli("convert-pairing", b, c, *to, "interleaved"), 2, "already")
    assert not c.exists()
    assert_one_sentence(cli("convert-pairing", a, c, *to, "half"), 2, "already")
    assert cli("convert-pairing", b, c, *to, "half").returncode == 0
    assert cli("convert-pairing", c, d, *to, "interleaved").returncode == 0
    assert b.read_bytes() == d.read_bytes()
    original = safetensors.load_file(a)
    for name, tensor in safetensors.load_file(c).items():
        assert tensor.tobytes() == original[name].tobytes()
    header = c.read_bytes()[8 : 8 + int.from_bytes(c.read_bytes()[:8], "little")]
    assert json.loads(header)["__metadata__"] == {"format": "pt"}


def test_latent_attention_permutes_rotary_rows_alone(cli, tmp_path):
    path = config(
        tmp_path,
        model_type="deepseek_v3",
        qk_nope_head_dim=6,
        qk_rope_head_dim=4,
        kv_lora_rank=5,
        v_head_dim=6,
    )
    attention = "model.layers.0.self_attn."
    rows = HEADS * 10
    before = {
        attention + "q_b_proj.weight": np.arange(rows * 2, dtype=np.float32).reshape(rows, 2),
        attention + "kv_a_proj_with_mqa.weight": np.arange(18, dtype=np.float32).reshape(9, 2),
    }
    safetensors.save_file(before, tmp_path / "a.safetensors")
    options = ["--config", path, "--to", "half"]
    done = cli("convert-pairing", tmp_path / "a.safetensors", tmp_path / "b.safetensors", *options)
    assert done.returncode == 0, done.stderr
    after = safetensors.load_file(tmp_path / "b.safetensors")
    order = [*range(6), 6, 8, 7, 9]
    q = before[attention + "q_b_proj.weight"].reshape(HEADS, 10, 2)[:, order].reshape(rows, 2)
    assert np.array_equal(after[attention + "q_b_proj.weight"], q)
    k = before[attention + "kv_a_proj_with_mqa.weight"][[*range(5), 5, 7, 6, 8]]
    assert np.array_equal(after[attention + "kv_a_proj_with_mqa.weight"], k)


def test_sharded_checkpoints_and_dry_run(cli, tmp_path):
    path = config(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    tensors = checkpoint()
    names = sorted(tensors)
    shards = {"one.safetensors": names[:3], "two.safetensors": names[3:]}
    for shard, of_shard in shards.items():
        safetensors.save_file({name: tensors[name] for name in of_shard}, folder / shard)
    weight_map = {name: shard for shard, of_shard in shards.items() for name in of_shard}
    index = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    options = ["--config", path, "--to", "interleaved"]
    out = tmp_path / "out"
    listed = cli("convert-pairing", folder, out, *options, "--dry-run", "--json")
    assert listed.returncode == 0, listed.stderr
    assert len(json.loads(listed.stdout)["tensors"]) == 4
    assert not out.exists()
    done = cli("convert-pairing", folder, out, *options)
    assert done.returncode == 0, done.stderr
    assert (out / "model.safetensors.index.json").read_text() == index
    safetensors.save_file(tensors, tmp_path / "whole.safetensors")
    whole = tmp_path / "converted.safetensors"
    assert cli("convert-pairing", tmp_path / "whole.safetensors", whole, *options).returncode == 0
    expected = safetensors.load_file(whole)
    for shard, of_shard in shards.items():
        found = safetensors.load_file(out / shard)
        assert all(np.array_equal(found[name], expected[name]) for name in of_shard)


def test_what_cannot_be_converted_is_refused(cli, tmp_path):
    path = config(tmp_path)
    attention = "model.layers.0.self_attn."
    options = ["--config", path, "--to", "interleaved"]
    cases = {
        "qkv_proj.weight": np.zeros((128, WIDTH), dtype=np.float32),
        "q_proj.qweight": np.zeros((64, WIDTH), dtype=np.int32),
        "q_proj.weight": np.zeros((63, WIDTH), dtype=np.float32),
    }
    for name, tensor in cases.items():
        safetensors.save_file({attention + name: tensor}, tmp_path / "a.safetensors")
        output = tmp_path / "b.safetensors"
        done = cli("convert-pairing", tmp_path / "a.safetensors", output, *options)
        assert_one_sentence(done, 2, name)
        assert not output.exists()
    safetensors.save_file({"other": np.zeros(3, dtype=np.float32)}, tmp_path / "a.safetensors")
    done = cli("convert-pairing", tmp_path / "a.safetensors", tmp_path / "a.safetensors", *options)
    assert_one_sentence(done, 2, "OUTPUT")
    done = cli("convert-pairing", tmp_path / "a.safetensors", tmp_path / "b.safetensors", *options)
    assert_one_sentence(done, 2, "INPUT")
