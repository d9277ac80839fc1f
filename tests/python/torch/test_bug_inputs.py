"""Inputs behind public bugs of other libraries, with right values derived in 50 digits."""

import itertools

import pytest
import torch

import ropewalk
from tolerance import TRIG_ERROR_32, near

TRIG = TRIG_ERROR_32 + 2.0**-24  # and a float32 rounding of the value to compare with


def pair_zero(rotary, positions, device="cpu"):
    cos, sin = rotary.cos_sin(torch.tensor(positions, device=device))
    return cos[:, 0].cpu(), sin[:, 0].cpu()


# Bug1
def test_integer_positions_stay_integers(device):
    rotary = ropewalk.RotaryEmbedding(128, base=1e6)
    with torch.autocast(device, torch.bfloat16):
        cos, sin = pair_zero(rotary, [257, 15962, 65535, 131071], device)
    expected = torch.tensor([0.819305529145, -0.908015901251, 0.192344018606, -0.817983499388])
    assert (cos - expected).abs().max() < TRIG
    assert abs(sin[1] - 0.418935702794) < TRIG and abs(sin[3] + 0.575241683755) < TRIG
    rows = torch.cat(rotary.cos_sin(65536), dim=1)
    assert rows.unique(dim=0).size(0) == 65536


# Bug2
def test_frequencies_and_products_stay_exact_in_half_modules():
    rotary = ropewalk.RotaryEmbedding(32).half()
    cos, _ = rotary.cos_sin(2048)
    assert abs(cos[1857, 1] - 0.3066928098) < TRIG
    positions = torch.arange(2048, dtype=torch.float64)
    angles = torch.outer(positions, 10000.0 ** (-torch.arange(0, 32, 2, dtype=torch.float64) / 32))
    assert (cos.double() - angles.cos()).abs().max() < TRIG


# Bug3
def test_autocast_does_not_touch_angles(device):
    rotary = ropewalk.RotaryEmbedding(64)
    x = torch.randn(1, 2, 512, 64, device=device)
    positions = 65536 + torch.arange(512, device=device)
    with torch.autocast(device, torch.bfloat16):
        inside = rotary(x, positions=positions)
    assert torch.equal(inside, rotary(x, positions=positions))
    cos, sin = pair_zero(rotary, positions.tolist(), device)
    step = torch.atan2(sin, cos).double().diff().remainder(2 * torch.pi)
    assert (step - 1).abs().max() < 4 * TRIG


# Bug14
def test_axes_of_size_one(device):
    rotary = ropewalk.RotaryEmbedding(256)
    y = rotary(torch.ones(2, 16, 1, 256, device=device), offset=6)
    wanted = torch.tensor([1.23959, 1.40903, 1.35021, 1.11484], device=device)
    five_digits = near(torch.float32, digits=5)
    torch.testing.assert_close(y[..., :4], wanted.expand(2, 16, 1, 4), **five_digits)
    wanted = torch.tensor([0.68075, 0.12097, -0.42063, -0.87013], device=device)
    torch.testing.assert_close(y[..., 128:132], wanted.expand(2, 16, 1, 4), **five_digits)
    assert torch.equal(y[0], y[1]) and (y != 0).all()


# Bug14
@pytest.mark.parametrize("layout", ["bhtd", "bthd"])
def test_small_sizes_and_shared_keys(layout, device):
    rotary = ropewalk.RotaryEmbedding(16, layout=layout)
    for batch, heads, key_heads, tokens in itertools.product((1, 2, 3, 5), repeat=4):
        q, k = torch.randn(batch, heads, tokens, 16), torch.randn(batch, key_heads, tokens, 16)
        q, k = q.to(device), k.to(device)
        if layout == "bthd":
            q, k = q.transpose(1, 2), k.transpose(1, 2)
        starts = torch.arange(batch, device=device) * 11 + 1
        got_q, got_k = rotary(q, k, offset=starts)
        assert torch.equal(got_q, rotary(q.contiguous(), offset=starts))
        assert torch.equal(got_k, rotary(k.contiguous(), offset=starts))
        assert not torch.equal(got_k, k)
        joined = rotary(torch.cat([k] * 2, dim=1 if layout == "bhtd" else 2), offset=starts)
        assert torch.equal(joined, torch.cat([got_k] * 2, dim=1 if layout == "bhtd" else 2))


# Bug15
def test_strided_views(device):
    rotary = ropewalk.RotaryEmbedding(64, layout="thd")
    parent_q = torch.randn(8 * 16384, device=device)
    parent_k = torch.randn(8 * 2624, device=device)
    q = parent_q.as_strided((8, 64, 64), (16384, 256, 1), 0)
    k = parent_k.as_strided((8, 1, 64), (2624, 64, 1), 192)
    expected = rotary(q.contiguous(), k.contiguous())
    got = rotary(q, k)
    assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])
    assert torch.equal(rotary(q), expected[0]) and torch.equal(rotary(k), expected[1])
    want_q, want_k = parent_q.clone(), parent_k.clone()
    want_q.as_strided(q.shape, q.stride(), 0).copy_(expected[0])
    want_k.as_strided(k.shape, k.stride(), 192).copy_(expected[1])
    rotary(q, k, inplace=True)
    assert torch.equal(parent_q, want_q) and torch.equal(parent_k, want_k)
    wide = torch.randn(8, 2, 128, device=device)[..., ::2]
    assert torch.equal(rotary(wide), rotary(wide.contiguous()))
    expanded = torch.randn(8, 1, 64, device=device).expand(8, 3, 64)
    assert torch.equal(rotary(expanded), rotary(expanded.contiguous()))


# Bug15
def test_expanded_tensors_cannot_be_written(rotary):
    x = torch.randn(1, 1, 3, 16).expand(1, 2, 3, 16)
    with pytest.raises(RuntimeError, match="overlap"):
        torch.ops.ropewalk.rotate_(x, None, rotary.plan.text)


# Bug16
@pytest.mark.parametrize("position", [-1, 8, 2**31, -(2**31), 2**32])
def test_positions_outside_a_table(position):
    plan = ropewalk.make_plan(16)
    table = torch.rand(8, 8)
    x, out = torch.randn(1, 2, 2, 16), torch.full((1, 2, 2, 16), 7.0)
    with pytest.raises(RuntimeError, match=f"positions: {position} is outside the table of 8 rows"):
        ropewalk.rotate(x, plan=plan, positions=torch.tensor([0, position]), cos=table, sin=table,
                        out=out)  # fmt: skip
    assert (out == 7.0).all()


# Bug16
def test_offsets_outside_a_table_and_other_integers():
    plan = ropewalk.make_plan(16)
    table = torch.rand(8, 8)
    for offset, tokens in ((7, 2), (8, 1)):
        with pytest.raises(RuntimeError, match="positions: 8 is outside the table of 8 rows"):
            ropewalk.rotate(
                torch.randn(1, 1, tokens, 16), plan=plan, cos=table, sin=table, offset=offset
            )
    x = torch.randn(1, 1, 3, 16)
    wide = torch.tensor([5, 0, 7])
    y = ropewalk.rotate(x, plan=plan, cos=table, sin=table, positions=wide)
    assert torch.equal(y, ropewalk.rotate(x, plan=plan, cos=table, sin=table, positions=wide.int()))
    for refused in (torch.uint64, torch.float32, torch.bool):
        with pytest.raises(RuntimeError, match="positions: expected int32 or int64"):
            ropewalk.rotate(x, plan=plan, cos=table, sin=table, positions=wide.to(refused))


# Bug23
def test_head_counts_and_canaries(device):
    rotary = ropewalk.RotaryEmbedding(16, layout="bthd")
    for heads, key_heads in itertools.product((1, 3, 5, 6, 7, 12, 63), (1, 3)):
        buffer = torch.full((2, 6, heads + key_heads, 16), 9.0, device=device)
        buffer[:, :5] = torch.randn(2, 5, heads + key_heads, 16)
        q, k = buffer[:, :5, :heads], buffer[:, :5, heads:]
        expected = [
            torch.cat([rotary(x[:, :, h : h + 1]) for h in range(x.size(2))], 2) for x in (q, k)
        ]
        rotary(q, k, inplace=True)
        assert torch.equal(q, expected[0]) and torch.equal(k, expected[1])
        assert (buffer[:, 5] == 9.0).all()


# Bug24
def test_both_sides_of_every_size_switch(device):
    """One row more or less, in the batch or alone, gives the same bits."""
    rotary = ropewalk.RotaryEmbedding(64, layout="thd")
    for tokens in (1, 8, 9, 16, 17, 128, 129, 256, 257, 512, 1024, 1025, 2048, 4096, 4097):
        x = torch.randn(tokens + 1, 10, 64, device=device)
        assert torch.equal(rotary(x)[:tokens], rotary(x[:tokens]))


# Bug25
def test_shifts_compose(device):
    rotary = ropewalk.RotaryEmbedding(64)
    x = torch.randn(1, 2, 4, 64, device=device)
    for first, second in ((5, 11), (100_000, 31_071), (131_071, -131_071)):
        twice = rotary(rotary(x, positions=torch.full((4,), first, device=device)),
                       positions=torch.full((4,), second, device=device))  # fmt: skip
        once = rotary(x, positions=torch.full((4,), first + second, device=device))
        torch.testing.assert_close(twice, once, **near(torch.float32, size=5.0, rotations=2))
    keys = torch.randn(1, 2, 4, 64, device=device).half()
    one = torch.full((4,), -1, device=device)
    total = rotary(keys, positions=one * 1000)
    exact = rotary(keys.double(), positions=one * 1000)
    step = keys
    for _ in range(1000):
        step = rotary(step, positions=one)
    spacing = torch.finfo(torch.float16).eps * keys.abs().max().double() * 2
    assert (total - exact).abs().max() <= spacing < (step - exact).abs().max()
