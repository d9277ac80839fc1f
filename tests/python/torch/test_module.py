"""The module's life: casts, copies, pickles, meta, state dicts, contexts; plans and configs."""

import copy
import json
import pickle
import subprocess
import sys

import pytest
import torch

import ropewalk
from ropewalk import RotaryEmbedding
from tolerance import near


@pytest.fixture
def x():
    return torch.randn(1, 2, 700, 16)


LIVES = {
    "half": lambda: RotaryEmbedding(16).half(),
    "bfloat16": lambda: RotaryEmbedding(16).bfloat16(),
    "double": lambda: RotaryEmbedding(16).double(),
    "deepcopy": lambda: copy.deepcopy(RotaryEmbedding(16)),
    "pickle": lambda: pickle.loads(pickle.dumps(RotaryEmbedding(16))),
    "meta": lambda: RotaryEmbedding(16).to("meta").to_empty(device="cpu"),
    "short before": lambda: [m := RotaryEmbedding(16), m(torch.randn(1, 1, 3, 16)), m][2],
}


# Bug20
@pytest.mark.parametrize("life", LIVES)
def test_lives(life, x, rotary):
    assert torch.equal(LIVES[life]()(x), rotary(x))
    assert LIVES[life]().plan == rotary.plan


# Bug20
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_contexts_around_construction(dtype, x, rotary):
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        built = RotaryEmbedding(16)
        inside = built(x)
    finally:
        torch.set_default_dtype(default)
    assert torch.equal(inside, rotary(x)) and torch.equal(built(x), rotary(x))
    with torch.device("meta"):
        built = RotaryEmbedding(16, 32)
        cos = built.cos_cache
    assert torch.equal(built(x), rotary(x)) and cos.device.type == "cpu"


# Bug20
def test_meta_tensors(rotary):
    q, k = rotary(torch.empty(1, 2, 3, 16, device="meta"), torch.empty(1, 1, 3, 16, device="meta"))
    assert q.is_meta and q.shape == (1, 2, 3, 16) and k.shape == (1, 1, 3, 16)


# Bug20
def test_state_dict_is_empty_and_stray_keys_are_ignored():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.rotary_emb = RotaryEmbedding(16)
            self.rope = RotaryEmbedding(16)

    model = Model()
    assert not RotaryEmbedding(16).state_dict() and not list(RotaryEmbedding(16).buffers())
    state = model.state_dict()
    assert set(state) == {"linear.weight", "linear.bias"}
    garbage = torch.full((8,), float("nan"))
    state |= {"rotary_emb.inv_freq": garbage, "rope.freqs": garbage}
    model.load_state_dict(state, strict=True)
    x = torch.randn(1, 1, 3, 16)
    assert torch.equal(model.rotary_emb(x), RotaryEmbedding(16)(x))
    with pytest.raises(RuntimeError, match="rotary_emb.weight"):
        model.load_state_dict(state | {"rotary_emb.weight": garbage}, strict=True)


def test_caches_are_for_looking():
    rotary = RotaryEmbedding(16, 32)
    assert rotary.cos_cache.shape == rotary.sin_cache.shape == (32, 8)
    angles = torch.outer(torch.arange(32.0).double(), torch.tensor(rotary.plan.frequencies))
    torch.testing.assert_close(rotary.cos_cache, angles.cos().float(), **near(torch.float32))
    torch.testing.assert_close(rotary.sin_cache, angles.sin().float(), **near(torch.float32))
    rotary(torch.randn(1, 1, 100, 16))  # max_seq_len limits nothing
    with pytest.raises(ValueError, match="max_seq_len"):
        RotaryEmbedding(16).cos_cache  # noqa: B018
    for pairing in ropewalk.plans.PAIRINGS:
        other = RotaryEmbedding(20, 32, rotary_dim=16, pairing=pairing)
        assert torch.equal(other.cos_cache, rotary.cos_cache)
        assert torch.equal(other.sin_cache, rotary.sin_cache)


# Bug20
def test_plans_that_differ_share_nothing():
    make = ropewalk.make_plan
    plans = [make(32), make(32, base=10001.0), make(32, rotary_dim=16), make(32, pairing="interleaved"),
             make(32, rotary_dim=16, offset=16), make(64)]  # fmt: skip
    assert len(set(plans)) == len({p.fingerprint for p in plans}) == len(plans)
    x = torch.randn(1, 1, 3, 32)
    results = [ropewalk.rotate(x, plan=p) for p in plans[:5]]
    assert len({tuple(r.flatten().tolist()) for r in results}) == 5
    assert all(
        torch.equal(r, ropewalk.rotate(x, plan=p)) for r, p in zip(results, plans[:5], strict=True)
    )


def test_plan_is_a_value():
    plan = ropewalk.make_plan(32, rotary_dim=16, pairing="interleaved")
    assert ropewalk.Plan(plan.text) == plan and ropewalk.Plan(plan.text).text == plan.text
    assert pickle.loads(pickle.dumps(plan)) == plan and copy.deepcopy(plan) is plan
    with pytest.raises(AttributeError):
        plan.text = "x"
    assert (plan.head_dim, plan.rotary_dim, plan.pairs, plan.pairing) == (32, 16, 8, "interleaved")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"head_dim": 65}, "D = 65|65"),
        ({"head_dim": 64, "rotary_dim": 33}, "33"),
        ({"head_dim": 65, "rotary_dim": 66}, "66"),
        ({"head_dim": 64, "base": -1.0}, "base"),
        ({"head_dim": 64, "rotary_dim": 0}, "rotary_dim"),
        ({"head_dim": 64, "pairing": "neox"}, "neox"),
    ],
)
def test_impossible_plans(arguments, message):
    with pytest.raises(ropewalk.PlanError, match=message):
        ropewalk.make_plan(**arguments)


def test_every_form_of_a_config(configs):
    transformers = pytest.importorskip("transformers")
    path = configs / "llama-3.1-8b.json"
    from_path = RotaryEmbedding.from_config(path)
    assert from_path.plan == RotaryEmbedding.from_config(str(path)).plan
    assert from_path.plan == RotaryEmbedding.from_config(json.loads(path.read_text())).plan
    assert from_path.plan == RotaryEmbedding.from_config(path.read_text()).plan
    config = transformers.AutoConfig.from_pretrained(path)
    assert from_path.plan == RotaryEmbedding.from_config(config).plan
    with pytest.raises(TypeError, match="config"):
        RotaryEmbedding.from_config(3)


def test_config_errors_name_the_key():
    with pytest.raises(ropewalk.PlanError, match="rope_type|some_new_type"):
        RotaryEmbedding.from_config({
            "model_type": "llama", "hidden_size": 64, "num_attention_heads": 1,
            "rope_scaling": {"rope_type": "some_new_type", "factor": 2.0},
        })  # fmt: skip
    with pytest.raises(ropewalk.PlanError, match="frequencies"):
        ropewalk.plan_from_config("{}", frequencies="both")


def test_length_chooses_the_plan(configs):
    short = ropewalk.plan_from_config(configs / "phi-3.5-mini.json", length=1000)
    long = ropewalk.plan_from_config(configs / "phi-3.5-mini.json", length=100_000)
    assert short != long and short.length_policy == "longrope_switch"


def test_layers_that_differ(configs):
    local = ropewalk.plan_from_config(configs / "gemma-3-4b.json", layer_type="sliding_attention")
    whole = ropewalk.plan_from_config(configs / "gemma-3-4b.json", layer_type="full_attention")
    assert local != whole
    with pytest.raises(ropewalk.PlanError, match="layer_type"):
        ropewalk.plan_from_config(configs / "gemma-3-4b.json")


def test_amp(rotary):
    linear = torch.nn.Linear(16, 16)
    x = torch.randn(1, 2, 3, 16)
    with torch.autocast("cpu", torch.bfloat16):
        y = rotary(linear(x))
        assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert linear.weight.grad.dtype == torch.float32 and linear.weight.grad.isfinite().all()


def test_version_and_main():
    assert ropewalk.__version__.count(".") == 2
    run = [sys.executable, "-m", "ropewalk"]
    missing = subprocess.run([*run, "plot"], capture_output=True, text=True, check=False)
    assert missing.returncode == 2 or missing.returncode == 0
    from ropewalk.__main__ import _BINARY

    if _BINARY.exists():
        version = subprocess.run([*run, "--version"], capture_output=True, text=True, check=False)
        assert version.returncode == 0 and ropewalk.__version__ in version.stdout


def test_layout_is_checked(rotary):
    with pytest.raises(ValueError, match="layout: expected one of bhtd, htd, bthd, thd"):
        rotary(torch.randn(1, 2, 3, 16), layout="bdht")
