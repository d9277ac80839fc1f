"""The reference for devices and versions without the operators, and the error otherwise."""

import subprocess
import sys

import pytest
import torch

import ropewalk
from ropewalk.call import Call
from ropewalk.fallback import rotate_reference
from tolerance import near

CALLS = {
    "offset": {"start": 100},
    "tokens": {"positions": torch.tensor([5, 0, -7])},
    "batch tokens": {"positions": torch.tensor([[5, 0, 7], [1, 2, 3]])},
    "starts": {"starts": torch.tensor([5, 10])},
    "padding": {"positions": torch.tensor([[-1, 0, 7], [1, -1, 3]]), "padding": -1},
    "inverse": {"start": 3, "inverse": True},
    "bthd": {"start": 3, "token_dim": -3},
}


@pytest.mark.parametrize("pairing", ropewalk.plans.PAIRINGS)
@pytest.mark.parametrize("call", CALLS)
def test_reference_agrees_with_the_operators(call, pairing):
    plan = ropewalk.make_plan(20, rotary_dim=12, pairing=pairing, offset=4)
    shape = (2, 3, 4, 20) if call == "bthd" else (2, 4, 3, 20)
    q, k = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    arguments = Call(plan.text, **CALLS[call])
    got, expected = rotate_reference(q, k, arguments), torch.ops.ropewalk.rotate(q, k, *arguments)
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g, e, **near(torch.float64, size=5.0, rotations=20))


@pytest.mark.parametrize("config", ["qwen2-vl-7b", "phi-3.5-mini", "deepseek-v3", "glm-4-9b-0414"])
def test_reference_agrees_for_models(config, configs):
    plan = ropewalk.plan_from_config(configs / f"{config}.json", length=5000)
    x = torch.randn(1, 2, 5, plan.head_dim, dtype=torch.float64)
    positions = torch.randint(0, 5000, (plan.axes, 1, 5))
    got = rotate_reference(x, None, Call(plan.text, positions=positions))[0]
    expected = ropewalk.rotate(x, plan=plan, positions=positions)
    # The reference forms angles up to 5000 in float64: off by as many units in the last place.
    torch.testing.assert_close(got, expected, **near(torch.float64, size=5.0, rotations=5000))


def test_reference_with_tables():
    plan = ropewalk.make_plan(8, pairing="interleaved")
    cos, sin = torch.rand(2, 9, 4, dtype=torch.float64)
    x = torch.randn(1, 2, 5, 8, dtype=torch.float64)
    for c, s in ((cos, sin), (cos.repeat_interleave(2, 1), sin.repeat_interleave(2, 1))):
        arguments = Call(plan.text, start=2, cos=c, sin=s)
        expected = torch.ops.ropewalk.rotate(x, None, *arguments)[0]
        torch.testing.assert_close(rotate_reference(x, None, arguments)[0], expected)


@pytest.mark.parametrize("columns", [4, 8])
def test_reference_gives_tables_the_same_gradients(columns):
    plan = ropewalk.make_plan(8)
    half = torch.rand(2, 9, 4, dtype=torch.float64)
    tables = (torch.cat([half, half], -1) if columns == 8 else half).requires_grad_()
    x, weight = torch.randn(2, 1, 2, 5, 8, dtype=torch.float64)
    call = Call(plan.text, start=2, cos=tables[0], sin=tables[1])
    (expected,) = torch.autograd.grad(
        (ropewalk.rotate(x, plan=plan, offset=2, cos=tables[0], sin=tables[1]) * weight).sum(),
        tables,
    )
    (got,) = torch.autograd.grad((rotate_reference(x, None, call)[0] * weight).sum(), tables)
    torch.testing.assert_close(got, expected)


OLDER = """
import torch
torch.__version__ = "2.9.1"
import ropewalk
x = torch.randn(1, 2, 3, 16, requires_grad=True)
try:
    ropewalk.RotaryEmbedding(16)(x)
except ropewalk.UnsupportedError as error:
    print(error)
y = ropewalk.RotaryEmbedding(16, fallback="reference")(x)
y.sum().backward()
assert x.grad is not None
ropewalk.RotaryEmbedding(16, fallback="reference")(x.detach(), inplace=True)
"""


def test_an_older_torch_gets_one_clear_error_or_the_reference():
    run = subprocess.run([sys.executable, "-c", OLDER], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "need PyTorch 2.10 or newer, this is 2.9.1" in run.stdout
    assert 'fallback="reference"' in run.stdout


def test_unknown_fallback_on_an_unknown_device(monkeypatch, rotary):
    from ropewalk import functional

    monkeypatch.setattr(functional, "SERVES_CPU", False)
    x = torch.randn(1, 2, 3, 16)
    with pytest.raises(ropewalk.UnsupportedError, match="no kernel for tensors on cpu"):
        rotary(x)
    with pytest.raises(ValueError, match="fallback"):
        ropewalk.rotate(x, plan=rotary.plan, fallback="numpy")
    got = ropewalk.rotate(x, plan=rotary.plan, fallback="reference")
    monkeypatch.undo()
    torch.testing.assert_close(got, rotary(x))
