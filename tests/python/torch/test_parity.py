"""Forward and backward against the oracle and the reference."""

import numpy as np
import pytest
import torch

import ropewalk
from oracle import assert_rotated, frequencies
from ropewalk.reference import apply_rope_reference, precompute_freqs_cis

SHAPES = [(1, 4, 128, 64), (2, 8, 512, 128), (4, 16, 2048, 64)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
FAR = [0, 1, 499, 4095, 39_001, 131_071, 2**20, 2**24 - 1, 2**24 + 1, 2**31 - 1, -1, -131_071]


def randn(*shape, dtype, device):
    return torch.randn(*shape, device=device).to(dtype)


@pytest.mark.parametrize("layout", ["bhtd", "bthd"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward_and_backward(shape, dtype, layout, device):
    batch, heads, tokens, dim = shape
    if layout == "bthd":
        shape = (batch, tokens, heads, dim)
    rotary = ropewalk.RotaryEmbedding(dim, layout=layout)
    x = randn(*shape, dtype=dtype, device=device).requires_grad_()
    y = rotary(x)
    upstream = randn(*shape, dtype=dtype, device=device)
    y.backward(upstream)
    positions, omega = np.arange(tokens), frequencies(dim, 10000.0)
    assert_rotated(y, x, positions, omega, layout=layout)
    assert_rotated(x.grad, upstream, positions, omega, layout=layout, inverse=True)


@pytest.mark.parametrize("dtype", [torch.float64, *DTYPES])
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("window", [(64, 64), (128, 32), (80, 20), (66, 64)])
def test_grouped_heads_pairings_and_partial_rotation(window, pairing, dtype, device):
    dim, rotary_dim = window
    rotary = ropewalk.RotaryEmbedding(dim, base=5e5, rotary_dim=rotary_dim, pairing=pairing)
    q = randn(2, 6, 37, dim, dtype=dtype, device=device)
    k = randn(2, 2, 37, dim, dtype=dtype, device=device)
    omega = frequencies(rotary_dim, 5e5)
    for got, x in zip(rotary(q, k, offset=1000), (q, k), strict=True):
        assert_rotated(got, x, 1000 + np.arange(37), omega, pairing)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("integer", [torch.int32, torch.int64])
def test_far_positions(dtype, integer, device):
    positions = torch.tensor(FAR, dtype=integer, device=device)
    rotary = ropewalk.RotaryEmbedding(128, base=5e5)
    x = randn(1, 3, len(FAR), 128, dtype=dtype, device=device)
    y = rotary(x, positions=positions)
    assert_rotated(y, x, np.array(FAR), frequencies(128, 5e5))
    assert torch.equal(y, rotary(x, positions=positions[None]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_interleaved_agrees_with_the_reference(dtype, device):
    x = randn(2, 4, 100, 64, dtype=dtype, device=device)
    y = ropewalk.RotaryEmbedding(64, pairing="interleaved")(x)
    expected = apply_rope_reference(x, precompute_freqs_cis(64, 100))
    spacing = torch.finfo(dtype).eps * x.float().abs().max().item() * 2
    assert (y.float() - expected.float()).abs().max() <= spacing
    share = (y == expected).float().mean().item()
    assert share > (0.999 if dtype != torch.float32 else 0.3)


def test_result_does_not_depend_on_threads():
    rotary = ropewalk.RotaryEmbedding(64)
    x = torch.randn(2, 8, 500, 64)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = rotary(x)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(one, rotary(x))


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-neox-20b", "gpt-j-6b", "glm-4-9b-0414"])
def test_models_from_their_configs(name, configs, device):
    rotary = ropewalk.RotaryEmbedding.from_config(configs / f"{name}.json")
    plan = rotary.plan
    x = randn(1, 2, len(FAR), plan.head_dim, dtype=torch.float32, device=device)
    y = rotary(x, positions=torch.tensor(FAR, device=device))
    assert_rotated(y, x, np.array(FAR), plan.frequencies, plan.pairing, offset=plan.offset,
                   amplitude=plan.amplitude)  # fmt: skip
