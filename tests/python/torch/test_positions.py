"""Every kind of position, masks, packed batches, bad positions."""

import pytest
import torch

import ropewalk
from ropewalk import positions_from_cu_seqlens, positions_from_mask
from tolerance import near

BAD = [2**36, -(2**36), 2**62, -(2**63)]


def test_kinds_agree(rotary, device):
    x = torch.randn(2, 3, 5, 16, device=device)
    starts = torch.tensor([3, 900], device=device)
    token = torch.arange(5, device=device)
    spelled_out = rotary(x, positions=starts[:, None] + token)
    assert torch.equal(rotary(x, offset=starts), spelled_out)
    assert torch.equal(rotary(x, offset=starts.int()), spelled_out)
    assert torch.equal(rotary(x[:1], offset=3), spelled_out[:1])
    assert torch.equal(rotary(x[:1], offset=torch.tensor(3, device=device)), spelled_out[:1])
    assert torch.equal(rotary(x[:1], positions=token + 3), spelled_out[:1])
    wide = torch.stack([token + 3, token + 900], 1).t()  # token stride 2
    assert torch.equal(rotary(x, positions=wide), spelled_out)


@pytest.mark.parametrize("integer", [torch.int32, torch.int64])
def test_packed_sequences(integer, device):
    rotary = ropewalk.RotaryEmbedding(16, layout="thd")
    x = torch.randn(9, 3, 16, device=device)
    cu_seqlens = torch.tensor([0, 4, 4, 9], dtype=integer, device=device)
    y = rotary(x, cu_seqlens=cu_seqlens)
    assert torch.equal(y, torch.cat([rotary(x[:4]), rotary(x[4:])]))
    assert torch.equal(y, rotary(x, positions=positions_from_cu_seqlens(cu_seqlens, 9)))
    starts = torch.tensor([10, 20, 30], dtype=integer, device=device)
    y = rotary(x, cu_seqlens=cu_seqlens, offset=starts)
    assert torch.equal(y, torch.cat([rotary(x[:4], offset=10), rotary(x[4:], offset=30)]))
    positions = positions_from_cu_seqlens(cu_seqlens, 9, starts)
    assert torch.equal(y, rotary(x, positions=positions))


def test_several_axes(configs, device):
    rotary = ropewalk.RotaryEmbedding.from_config(configs / "qwen2-vl-7b.json")
    plan = rotary.plan
    x = torch.randn(2, 3, 5, plan.head_dim, device=device)
    positions = torch.randint(0, 1000, (plan.axes, 2, 5), device=device)
    y = rotary(x, positions=positions)
    axis = torch.tensor(plan.axis)
    for component in range(plan.axes):
        one = rotary(x, positions=positions[component])
        pair = torch.nonzero(axis == component).flatten()
        channels = torch.cat([pair, pair + plan.pairs]).to(device)
        assert torch.equal(y[..., channels], one[..., channels])


def test_fractional_positions(rotary, device):
    x = torch.randn(1, 2, 3, 16, device=device, dtype=torch.float64)
    positions = torch.tensor([0.5, 1.25, -3.0], device=device)
    with pytest.raises(RuntimeError, match="positions: expected int32 or int64"):
        rotary(x, positions=positions)
    y = rotary(x, positions=positions, fractional=True)
    twice = rotary(y, positions=positions.double(), fractional=True)
    expected = rotary(x, positions=(positions * 2).double(), fractional=True)
    torch.testing.assert_close(twice, expected, **near(torch.float64, size=5.0, rotations=2))
    assert torch.equal(y[:, :, 2:], rotary(x[:, :, 2:], offset=-3))
    with pytest.raises(RuntimeError, match="fractional=True expects float"):
        rotary(x, positions=torch.arange(3, device=device), fractional=True)


def test_padding_rows_are_passed_through(rotary, device):
    x = torch.randn(2, 3, 4, 16, device=device)
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]], device=device)
    positions = positions_from_mask(mask, padding=-1)
    y = rotary(x, positions=positions, padding=-1)
    assert torch.equal(y[0, :, :2], x[0, :, :2])
    assert torch.equal(y[0, :, 2:], rotary(x[:1, :, 2:])[0])
    assert torch.equal(y[1], rotary(x[1:])[0])


def test_positions_from_mask():
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, 2, 2, 0], [3, 0, 3, 5, 5]])
    expected = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 0, 2, 3], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1]])
    assert torch.equal(positions_from_mask(mask), expected)
    assert torch.equal(positions_from_mask(mask[:2].bool()), expected[:2])
    assert positions_from_mask(mask, padding=-7)[0, 0] == -7
    with pytest.raises(ValueError, match="mask"):
        positions_from_mask(mask.float())


@pytest.mark.parametrize("position", BAD)
def test_bad_positions_are_refused_before_anything_is_written(rotary, position):
    x = torch.randn(1, 2, 3, 16)
    before = x.clone()
    positions = torch.tensor([0, 1, position])
    with pytest.raises(RuntimeError, match=f"positions: {position} is outside the limit"):
        rotary(x, positions=positions, inplace=True)
    assert torch.equal(x, before)
    with pytest.raises(RuntimeError, match=r"outside the limit \|position\| < 2\^36"):
        rotary(x, offset=position)
    if abs(position) < 2**53:
        rotary(x.double(), positions=positions)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("position", BAD)
def test_bad_positions_on_the_gpu_make_the_row_nan(rotary, position):
    x = torch.randn(1, 2, 3, 16, device="cuda")
    y = rotary(x, positions=torch.tensor([0, 1, position], device="cuda"))
    assert y[:, :, 2].isnan().all() and torch.equal(y[:, :, :2], rotary(x[:, :, :2]))
