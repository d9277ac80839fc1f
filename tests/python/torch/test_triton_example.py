"""examples/triton_rope.py: against the reference; on the CPU through Triton's interpreter."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
import torch

from oracle import assert_rotated, frequencies
from tolerance import near

pytest.importorskip("triton")
PATH = Path(__file__).parents[3] / "examples" / "triton_rope.py"
POSITIONS = [[0, 1, 131071], [4095, 39001, 2]]


@pytest.fixture(scope="module")
def example():
    """Triton reads the environment when a kernel is decorated."""
    interpret = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    before = {name: os.environ.get(name) for name in interpret}
    os.environ.update(interpret)
    try:
        spec = importlib.util.spec_from_file_location("triton_rope", PATH)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@pytest.fixture(scope="module")
def where():
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def table(example, where):
    return example.tables(131072, 12, device=where)


def positions(where) -> torch.Tensor:
    return torch.tensor(POSITIONS, device=where)


def check(y, x, inverse=False):
    for b in range(2):
        assert_rotated(y[b : b + 1], x[b : b + 1], POSITIONS[b], frequencies(12, 10000.0),
                       layout="bthd", inverse=inverse)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("inverse", [False, True])
def test_both_directions_in_every_dtype(example, where, table, dtype, inverse):
    # 3 heads and 6 pairs are no powers of two, and 4 channels lie behind the rotated ones.
    x = torch.randn(2, 3, 3, 16, device=where).to(dtype)
    if dtype == torch.bfloat16 and where == "cpu":
        # Through a float32 output, as the interpreter stores bfloat16 inexactly; see as_stored.
        x = x.float()
    out = torch.full_like(x, float("nan"))
    example.rotate(x, *table, positions(where), inverse=inverse, out=out)
    check(out, x, inverse)


def test_strides_and_in_place(example, where, table):
    # q as a slice of a packed buffer, heads before tokens in memory.
    packed = torch.randn(2, 5, 3, 40, device=where)
    x = packed[:, :3, :, 8:24].transpose(1, 2)
    before, around = x.clone(), packed.clone()
    got = example.rotate(x, *table, positions(where), out=x)
    assert got is x
    check(x, before)
    around[:, :3, :, 8:24] = packed[:, :3, :, 8:24]
    assert torch.equal(packed, around)


def as_stored(y: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """float32 values as a kernel stores them: rounded; Triton's interpreter truncates to bfloat16."""
    if dtype == torch.bfloat16 and not y.is_cuda:
        y = (y.view(torch.int32) & -65536).view(torch.float32)
    return y.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_cast_is_in_the_same_pass(example, where, table, dtype):
    x = torch.randn(2, 3, 3, 16, device=where)
    for given in (x, x.to(dtype)):
        out = torch.empty(x.shape, device=where, dtype=dtype)
        example.rotate(given, *table, positions(where), out=out)
        wide = torch.empty_like(x)
        example.rotate(given, *table, positions(where), out=wide)
        assert torch.equal(out, as_stored(wide, dtype))


def test_the_gradient_is_the_rotation_back(example, where, table):
    x = torch.randn(2, 3, 3, 16, device=where, requires_grad=True)
    weights = torch.randn(2, 3, 3, 16, device=where)
    y = example.TritonRope.apply(x, *table, positions(where))
    (y * weights).sum().backward()
    check(x.grad, weights, inverse=True)
    back = example.rotate(y.detach(), *table, positions(where), inverse=True)
    size = float(x.detach().abs().max())
    torch.testing.assert_close(back, x.detach(), **near(torch.float32, size, rotations=2))


def test_an_expanded_gradient(example, where, table):
    x = torch.randn(2, 3, 3, 16, device=where, requires_grad=True)
    example.TritonRope.apply(x, *table, positions(where)).sum().backward()
    check(x.grad, torch.ones_like(x), inverse=True)


def test_it_allocates_nothing_beside_a_missing_output(example, where, table, monkeypatch):
    x, out = (torch.randn(2, 3, 3, 16, device=where) for _ in range(2))
    made = []
    real = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: made.append(1) or real(*a, **k))
    example.rotate(x, *table, positions(where), out=out)
    assert not made
    example.rotate(x, *table, positions(where))
    assert made == [1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": torch.zeros(2, 3, 16)}, "x: expected"),
        ({"cos": torch.zeros(4, 9), "sin": torch.zeros(4, 9)}, "cos, sin: expected"),
        ({"positions": torch.zeros(3, 2, dtype=torch.int64)}, "positions: expected"),
        ({"out": torch.zeros(2, 3, 3, 8)}, "out: expected"),
    ],
)
def test_bad_arguments(example, change, words):
    arguments = {
        "x": torch.zeros(2, 3, 3, 16), "cos": torch.zeros(4, 6), "sin": torch.zeros(4, 6),
        "positions": torch.zeros(2, 3, dtype=torch.int64),
    }  # fmt: skip
    with pytest.raises(ValueError, match=words):
        example.rotate(**(arguments | change))
