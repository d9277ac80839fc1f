"""Cached keys that move: one more rotation, whatever the plan, layout and number of shifts."""

import pytest
import torch

import ropewalk
from ropewalk import CacheShift, move_keys
from tolerance import near

CONFIGS = [
    "llama-3.1-8b",
    "gpt-j-6b",
    "gpt-neox-20b",
    "glm-4-9b-0414",
    "deepseek-v3",
    "gpt-oss-20b",
]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def keys(shape, dtype, device):
    return (torch.rand(shape, dtype=torch.float64, device=device) * 2 - 1).to(dtype)


def twice(plan, dtype):
    """Two rotations against one, of inputs up to 1: amplitude once."""
    return near(dtype, size=2 * max(1.0, plan.amplitude), rotations=2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CONFIGS)
def test_moved_keys_are_keys_rotated_at_the_new_positions(configs, name, dtype, device):
    plan = ropewalk.plan_from_config(configs / f"{name}.json")
    x = keys((2, 3, 7, plan.head_dim), dtype, device)
    old = torch.randint(0, 2**31, (2, 7), device=device)
    new = torch.randint(0, 2**31, (2, 7), device=device)
    cached = ropewalk.rotate(x, plan=plan, positions=old)
    moved = move_keys(cached, plan=plan, old=old, new=new)
    expected = ropewalk.rotate(x, plan=plan, positions=new)
    torch.testing.assert_close(moved, expected, **twice(plan, dtype))
    back = move_keys(moved, plan=plan, old=new, new=old, inplace=True)
    assert back is moved
    torch.testing.assert_close(back, cached, **near(dtype, 2 * max(1.0, plan.amplitude), 3))


def test_amplitude_is_not_applied_twice(configs):
    plan = ropewalk.plan_from_config(configs / "gpt-oss-20b.json")
    assert plan.amplitude > 1.3 and plan.relative().amplitude == 1.0
    assert plan.relative().frequencies == plan.frequencies


def test_pairs_that_are_written_elsewhere(configs):
    plan = ropewalk.plan_from_config(configs / "deepseek-v3.json")
    assert plan.pairing == "interleaved_to_half" and plan.relative().pairing == "half"


@pytest.mark.parametrize("arithmetic", ["parity_p0", "parity_p3", "parity_p4"])
def test_the_relative_plan_needs_no_table(configs, arithmetic):
    plan = ropewalk.plan_from_config(configs / "llama-3.1-8b.json", arithmetic=arithmetic)
    assert plan.relative().is_exact
    assert plan.relative() == ropewalk.plan_from_config(configs / "llama-3.1-8b.json").relative()


def test_layouts_and_packed_sequences_move_alike(device):
    plan = ropewalk.make_plan(16)
    x = keys((1, 3, 9, 16), torch.float32, device)
    cu_seqlens = torch.tensor([0, 4, 4, 9], dtype=torch.int32, device=device)
    positions = ropewalk.positions_from_cu_seqlens(cu_seqlens, 9)
    cached = ropewalk.rotate(x, plan=plan, positions=positions)
    results = {}
    for layout, form in (
        ("bhtd", lambda t: t), ("bthd", lambda t: t.transpose(1, 2)),
        ("thd", lambda t: t[0].transpose(0, 1)), ("htd", lambda t: t[0]),
    ):  # fmt: skip
        shift = CacheShift(plan, positions, layout=layout)
        shift.add_to_sequences(torch.tensor([100, 7, -3], device=device), cu_seqlens)
        results[layout] = shift.moved(form(cached))
        assert torch.equal(results[layout], form(results["bhtd"]))
    delta = torch.tensor([100] * 4 + [-3] * 5, device=device)
    expected = ropewalk.rotate(x, plan=plan, positions=positions + delta)
    torch.testing.assert_close(results["bhtd"], expected, **twice(plan, torch.float32))


def test_several_axes(configs, device):
    plan = ropewalk.plan_from_config(configs / "qwen2-vl-7b.json")
    x = keys((2, 2, 5, plan.head_dim), torch.float32, device)
    old, new = torch.randint(0, 4096, (2, 3, 2, 5), device=device)
    new[:, 0, 0] = old[:, 0, 0]
    new[1:, 0, 1] = old[1:, 0, 1]  # one axis alone moves
    cached = ropewalk.rotate(x, plan=plan, positions=old)
    moved = move_keys(cached, plan=plan, old=old, new=new)
    expected = ropewalk.rotate(x, plan=plan, positions=new)
    torch.testing.assert_close(moved, expected, **twice(plan, torch.float32))
    assert torch.equal(moved[0, :, 0], cached[0, :, 0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_thousand_shifts_of_one_are_one_shift_of_a_thousand(dtype, device):
    plan = ropewalk.make_plan(64)
    x = keys((1, 2, 11, 64), dtype, device)
    positions = torch.arange(5000, 5011, device=device)
    cached = ropewalk.rotate(x, plan=plan, positions=positions)
    many, once = CacheShift(plan, positions), CacheShift(plan, positions)
    for _ in range(1000):
        many.add(-1)
    once.add(-1000)
    assert torch.equal(many.moved(cached), once.moved(cached))
    in_place = cached.clone()
    many.materialise_(in_place)
    assert torch.equal(in_place, once.moved(cached))
    assert not many.pending.any() and torch.equal(many.positions, positions - 1000)
    expected = ropewalk.rotate(x, plan=plan, positions=positions - 1000)
    torch.testing.assert_close(in_place, expected, **twice(plan, dtype))


def test_a_context_shift_with_its_eviction(device):
    """llama.cpp's shift: the first `kept` tokens stay, `gone` are evicted, the rest moves down."""
    plan, kept, gone = ropewalk.make_plan(32), 2, 3
    x = keys((1, 2, 12, 32), torch.float64, device)
    cached = ropewalk.rotate(x[:, :, :10], plan=plan)
    shift = CacheShift(plan, torch.arange(10, device=device))
    index = torch.tensor([0, 1, *range(kept + gone, 10)], device=device)
    cached = cached[:, :, index]
    shift.keep(index)
    shift.add(-gone, slice(kept, None))
    late = torch.arange(7, 9, device=device)
    cached = torch.cat([cached, ropewalk.rotate(x[:, :, 10:], plan=plan, positions=late)], dim=2)
    shift.append(late)
    assert shift.positions.tolist() == list(range(9))
    before = cached.clone()
    second_layer = cached.clone()
    shift.materialise_(cached, second_layer)
    assert torch.equal(cached, second_layer)
    rows = torch.cat([index, torch.tensor([10, 11], device=device)])
    expected = ropewalk.rotate(x[:, :, rows], plan=plan)
    torch.testing.assert_close(cached, expected, **twice(plan, torch.float64))
    stayed = [0, 1, 7, 8]
    assert torch.equal(cached[:, :, stayed], before[:, :, stayed])
    again = cached.clone()
    shift.materialise_(again)
    assert torch.equal(again, cached)


def test_masks_choose_tokens():
    shift = CacheShift(ropewalk.make_plan(8), torch.arange(6).expand(2, 6))
    shift.add(torch.tensor([[10], [20]]), torch.arange(6) >= 4)
    assert shift.pending.tolist() == [[0] * 4 + [10] * 2, [0] * 4 + [20] * 2]


def test_gradients_pass_through_moved_keys():
    plan = ropewalk.make_plan(8)
    shift = CacheShift(plan, torch.arange(3))
    shift.add(1000)
    k = torch.randn(1, 1, 3, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(shift.moved, (k,))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: s.add(0.5), TypeError, "delta: expected integers"),
        (lambda s: s.add(torch.tensor(1.0)), TypeError, "delta: expected int32 or int64"),
        (lambda s: s.add(1, torch.arange(3)), TypeError, "tokens: expected a bool mask"),
        (lambda s: s.add_to_sequences(torch.tensor([1]), torch.tensor([0, 1, 3])), ValueError,
         r"delta: expected one per sequence \(2\)"),
        (lambda s: s.moved(torch.zeros(1, 1, 4, 8)), ValueError, "k: expected layout bhtd with 3"),
        (lambda s: s.moved(torch.zeros(1, 1, 3, 6)), ValueError, "k: expected .* 8 channels"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call(CacheShift(ropewalk.make_plan(8), torch.arange(3)))


def test_a_wrong_layer_stops_all_layers():
    shift = CacheShift(ropewalk.make_plan(8), torch.arange(3))
    shift.add(5)
    good, wrong = torch.randn(1, 1, 3, 8), torch.randn(1, 1, 3, 6)
    before = good.clone()
    with pytest.raises(ValueError, match=r"keys\[1\]"):
        shift.materialise_(good, wrong)
    assert torch.equal(good, before) and shift.pending.tolist() == [5] * 3
    with pytest.raises(TypeError, match="positions: expected int32 or int64"):
        CacheShift(ropewalk.make_plan(8), torch.zeros(3))
