"""What docs/formula.md says, each claim once."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import ropewalk
from ropewalk.plots.computed import schedules
from tolerance import near
from tolerances import roundings

DIM = 16
PLAN = ropewalk.make_plan(DIM, 10000.0)
DOUBLE = torch.float64


def rotated(x, position, pairing="half", **options):
    plan = ropewalk.make_plan(DIM, 10000.0, pairing=pairing)
    return ropewalk.rotate(x.view(1, 1, 1, DIM), plan=plan, offset=position, **options).flatten()


def test_attention_without_positions_is_blind():
    words = torch.randn(1, 1, 3, DIM, dtype=DOUBLE)
    order = torch.tensor([2, 1, 0])  # man bites dog
    said = scaled_dot_product_attention(words, words, words)
    turned = words[:, :, order]
    again = scaled_dot_product_attention(turned, turned, turned)
    torch.testing.assert_close(again, said[:, :, order], **near(DOUBLE, 4.0))
    q, q_turned = ropewalk.rotate(words, plan=PLAN), ropewalk.rotate(turned, plan=PLAN)
    said, again = (
        scaled_dot_product_attention(r, r, v) for r, v in ((q, words), (q_turned, turned))
    )
    assert (again - said[:, :, order]).abs().max() > 1000 * near(DOUBLE, 4.0)["atol"]


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_scores_depend_on_the_distance_alone(pairing):
    q, k = torch.randn(2, DIM, dtype=DOUBLE)
    score = {
        (m, n): float(rotated(q, m, pairing) @ rotated(k, n, pairing))
        for m, n in ((5, 2), (1005, 1002), (2**33 + 3, 2**33), (5, 3))
    }
    size = float(q.norm() * k.norm())
    bound = near(DOUBLE, size, rotations=2)["atol"] * DIM
    assert abs(score[5, 2] - score[1005, 1002]) <= bound
    assert abs(score[5, 2] - score[2**33 + 3, 2**33]) <= bound
    assert abs(score[5, 2] - score[5, 3]) > 1000 * bound


def test_a_rotation_keeps_norms_and_can_be_undone():
    x = torch.randn(DIM, dtype=DOUBLE)
    y = rotated(x, 12345)
    torch.testing.assert_close(y.norm(), x.norm(), **near(DOUBLE, DIM * float(x.norm())))
    torch.testing.assert_close(
        rotated(y, 12345, inverse=True), x, **near(DOUBLE, float(x.norm()), rotations=2)
    )
    assert torch.equal(rotated(x, 0), x)


def test_the_pairings_differ_by_a_permutation():
    x = torch.randn(DIM, dtype=DOUBLE)
    permutation = torch.arange(DIM).view(2, -1).T.flatten()  # 0, d/2, 1, d/2 + 1, …
    assert torch.equal(rotated(x, 77)[permutation], rotated(x[permutation], 77, "interleaved"))
    assert not torch.equal(rotated(x, 77), rotated(x, 77, "interleaved"))


def test_the_gradient_is_the_rotation_back():
    x = torch.randn(1, 1, 4, DIM, dtype=DOUBLE, requires_grad=True)
    incoming = torch.randn(1, 1, 4, DIM, dtype=DOUBLE)
    ropewalk.rotate(x, plan=PLAN).backward(incoming)
    assert torch.equal(x.grad, ropewalk.rotate(incoming, plan=PLAN, inverse=True))


def test_what_each_rule_does_to_wavelengths(configs):
    config = json.loads((configs / "qwen3-8b.json").read_text())
    trained, factor = config["max_position_embeddings"], 4.0
    found = schedules(config, factor)
    default = found["default"].frequencies
    grown = {
        name: [d / f for d, f in zip(default, plan.frequencies, strict=True)]
        for name, plan in found.items()
    }
    # Both sides round to float32 a handful of times: the power, its reciprocal, the products.
    close = roundings("float32", 16)
    turns = [trained * f / (2 * math.pi) for f in default]
    assert grown["linear (position interpolation)"] == pytest.approx(
        [factor] * len(turns), rel=close
    )
    ntk = grown["dynamic NTK"]
    assert ntk[0] == 1 and ntk == sorted(ntk)
    for name, stays, stretched in (("YaRN", 32, 1), ("llama3", 4, 1)):
        for turn, growth in zip(turns, grown[name], strict=True):
            assert 1 - close <= growth <= factor * (1 + close)
            if turn > 2 * stays:
                assert growth == pytest.approx(1, rel=close)
            if turn < stretched / 2:
                assert growth == pytest.approx(factor, rel=close)
    assert found["YaRN"].amplitude == pytest.approx(0.1 * math.log(factor) + 1, rel=close)
    assert found["llama3"].amplitude == 1


def test_longrope_and_ntk_at_the_ends(configs):
    config = json.loads((configs / "phi-3.5-mini.json").read_text())
    found = schedules(config, 32.0)
    own = next(plan for name, plan in found.items() if "own" in name)
    factors = config["rope_scaling"]["long_factor"]
    close = roundings("float32", 16)
    default = found["default"].frequencies
    growth = [d / f for d, f in zip(default, own.frequencies, strict=True)]
    assert growth == pytest.approx(factors, rel=close)
