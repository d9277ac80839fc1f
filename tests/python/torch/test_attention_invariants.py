"""Attention's view of the rotation, in a reduced form of bench/attention_invariants.py."""

import math
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend

from tolerances import unit_input_bound

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))

import attention_invariants as invariants

SHIFTS = (0, 4096, 2**20)


@pytest.fixture(scope="module")
def data():
    return invariants.inputs(heads=1, tokens=48, device="cpu")


def score_bound(dtype: torch.dtype, head_dim: int) -> float:
    """Rotated values are at most sqrt(2) and off by at most b: so is a sum of head_dim products."""
    b = unit_input_bound(str(dtype).removeprefix("torch."))
    return math.sqrt(head_dim) * (2 * math.sqrt(2) * b + b * b)


@pytest.mark.parametrize("dtype", invariants.DTYPES, ids=str)
def test_scores_depend_on_the_distance_alone(data, dtype):
    q, k, *_ = data
    moved = {a: invariants.score_deviation(q, k, dtype, a, SHIFTS) for a in invariants.ARITHMETICS}
    assert 0 < moved["exact"] <= 2 * score_bound(dtype, q.size(-1))
    assert moved["exact"] < moved["parity_p0"]
    assert moved["exact"] < moved["bfloat16 table"]


@pytest.mark.parametrize("dtype", invariants.DTYPES, ids=str)
def test_attention_is_that_of_float64(data, dtype):
    q, k, v, gradient = data
    errors = {
        a: invariants.attention_errors(q, k, v, gradient, dtype, a, SDPBackend.MATH, SHIFTS)
        for a in ("exact", "bfloat16 table")
    }
    for name in ("out", "dq", "dk"):
        assert errors["exact"][name] < errors["bfloat16 table"][name]


@pytest.mark.parametrize("dtype", invariants.DTYPES, ids=str)
def test_the_rotation_moves_attention_no_more_than_its_bound_allows(data, dtype):
    """Attention in float64 of values rotated in dtype: where every score moves by at most d, every
    weight changes by a factor between exp(-2d) and exp(2d)."""
    q, k, v, gradient = data
    d = score_bound(dtype, q.size(-1))
    for shift in SHIFTS:
        rotated = [invariants.rotated(x.to(dtype), shift, "exact").double() for x in (q, k)]
        out = torch.nn.functional.scaled_dot_product_attention(*rotated, v, is_causal=True)
        want = invariants.attention(q, k, v, gradient, 0, "exact", SDPBackend.MATH)["out"]
        assert (out - want).abs().max() <= v.abs().max() * math.expm1(2 * d)
