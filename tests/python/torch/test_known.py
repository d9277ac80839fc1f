"""The lean way by number gives what the general way gives, and stays out of what records calls."""

import copy
import pickle

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.fx.experimental.proxy_tensor import make_fx

import ropewalk
from ropewalk import known


def tensors(device, layout="bhtd", dtype=torch.float32):
    shapes = {"bhtd": ((2, 4, 5, 16), (2, 2, 5, 16)), "bthd": ((2, 5, 4, 16), (2, 5, 2, 16)),
              "htd": ((4, 5, 16), (2, 5, 16)), "thd": ((5, 4, 16), (5, 2, 16))}  # fmt: skip
    return [torch.randn(shape, device=device).to(dtype) for shape in shapes[layout]]


def by_text(q, k, plan, layout, start=0, positions=None):
    """What the operators compute when they are given the plan's text."""
    token_dim = -3 if layout in ("bthd", "thd") else -2
    return torch.ops.ropewalk._rotate(q, k, plan.text, token_dim, start, positions)


def learned(device, layout="bhtd", **arguments):
    plan = ropewalk.make_plan(16, **arguments)
    q, k = tensors(device, layout)
    assert known.rotate(q, k, plan, layout, 0, None) is None
    ropewalk.rotate(q, k, plan=plan, layout=layout)
    assert (plan.numbers_cuda if device == "cuda" else plan.numbers_cpu)[layout] > 0
    return plan


@pytest.mark.parametrize("layout", ["bhtd", "bthd", "htd", "thd"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_same_bits_as_by_text(layout, dtype, device):
    plan = learned(device, layout, rotary_dim=8, pairing="interleaved")
    q, k = tensors(device, layout, dtype)
    tokens = torch.randint(0, 10**6, (5,), device=device)
    for start, positions in ((0, None), (10**9, None), (0, tokens)):
        expected = by_text(q, k, plan, layout, start, positions)
        got = known.rotate(q, k, plan, layout, start, positions)
        alone = known.rotate(q, None, plan, layout, start, positions)
        q_in, k_in = q.clone(), k.clone()
        inplace = known.rotate(q_in, k_in, plan, layout, start, positions, inplace=True)
        assert inplace[0] is q_in and inplace[1] is k_in
        for i in range(2):
            assert torch.equal(got[i], expected[i]) and torch.equal(inplace[i], expected[i])
            assert got[i].stride() == expected[i].stride()
        assert torch.equal(alone, expected[0])


def test_strides_are_those_of_empty_like(device):
    plan = learned(device)
    base = torch.randn(2, 5, 4, 32, device=device)
    for q in (base.transpose(1, 2)[..., :16], base[..., ::2].transpose(1, 2),
              base[..., :16].contiguous().transpose(1, 2), base[:1, :1, :, :16],
              base[..., :16].permute(2, 1, 0, 3).contiguous().permute(2, 0, 1, 3),
              base[:, :, :1, :16].expand(2, 5, 3, 16), base[:0, ..., :16]):  # fmt: skip
        y = known.rotate(q, None, plan, "bhtd", 0, None)
        assert y.stride() == torch.empty_like(q).stride()


def test_versions_count_and_inference_tensors_work(device):
    plan = learned(device)
    q, k = tensors(device)
    known.rotate(q, k, plan, "bhtd", 0, None, inplace=True)
    assert (q._version, k._version) == (1, 1)
    with torch.inference_mode():
        q, k = tensors(device)
        expected = by_text(q, k, plan, "bhtd")
        assert torch.equal(known.rotate(q, k, plan, "bhtd", 0, None, inplace=True)[0], expected[0])


def test_a_version_change_is_seen_by_autograd(device):
    plan = learned(device)
    q, k = tensors(device)
    w = torch.randn_like(q, requires_grad=True)
    product = w * q
    ropewalk.rotate_(q, k, plan=plan)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


@pytest.mark.parametrize("which", ["both", "q", "k", "q alone"])
@pytest.mark.parametrize("use_positions", [False, True])
def test_gradients(which, use_positions, device):
    plan = learned(device)
    q, k = tensors(device, dtype=torch.float64)
    q.requires_grad_(which != "k")
    k.requires_grad_(which in ("both", "k"))
    positions = torch.randint(0, 1000, (2, 5), device=device) if use_positions else None
    result = known.rotate(q, None if which == "q alone" else k, plan, "bhtd", 0, positions)
    outputs = [result] if which == "q alone" else list(result)
    wanted = [which != "k"] if which == "q alone" else [q.requires_grad, k.requires_grad]
    assert [y.requires_grad for y in outputs] == wanted
    seeds = [torch.randn_like(y) for y in outputs]
    sum((y * g).sum() for y, g in zip(outputs, seeds, strict=True)).backward()
    for x, g in zip((q, k), seeds, strict=False):
        if x.requires_grad:
            back = ropewalk.rotate(g, plan=plan, positions=positions, inverse=True)
            assert torch.equal(x.grad, back)


def test_second_derivatives_and_batched_gradients():
    plan = learned("cpu")
    q, k = (t[:1, :1, :2].double().requires_grad_() for t in tensors("cpu"))

    def rotate(q, k):
        result = known.rotate(q, k, plan, "bhtd", 7, None)
        assert result is not None
        return result

    assert torch.autograd.gradcheck(rotate, (q, k))
    assert torch.autograd.gradgradcheck(rotate, (q, k))


def test_numbers_stay_out_of_graphs():
    plan = learned("cpu")
    q, k = tensors("cpu")

    def rotate(q, k):
        return ropewalk.rotate(q, k, plan=plan)

    graph = make_fx(rotate)(q, k)
    exported = torch.export.export(
        torch.nn.ModuleList([ropewalk.RotaryEmbedding.from_plan(plan)])[0], (q, k), strict=False
    )
    for recorded in (graph, exported.module()):
        names = str(recorded.graph)
        assert "_rotate" in names and "known" not in names
    assert torch.equal(graph(q, k)[0], rotate(q, k)[0])


def test_learning_does_not_recompile():
    plan = ropewalk.make_plan(16)
    q, k = tensors("cpu")
    counter = CompileCounter()
    compiled = torch.compile(lambda q, k: ropewalk.rotate(q, k, plan=plan), backend=counter)
    compiled(q, k)
    ropewalk.rotate(q, k, plan=plan)
    assert plan.numbers_cpu
    compiled(q, k)
    assert counter.frame_count == 1


def test_transforms_go_the_general_way():
    plan = learned("cpu")
    q, _ = tensors("cpu")
    tangent = torch.randn_like(q)
    expected = ropewalk.rotate(tangent, plan=plan)
    _, pushed = torch.func.jvp(lambda x: ropewalk.rotate(x, plan=plan), (q,), (tangent,))
    assert torch.equal(pushed, expected)
    stacked = torch.func.vmap(lambda x: ropewalk.rotate(x, plan=plan))(torch.stack([q, q + 1]))
    assert torch.equal(stacked[1], ropewalk.rotate(q + 1, plan=plan))


def test_numbers_are_not_copied_to_other_processes():
    plan = learned("cpu")
    assert pickle.loads(pickle.dumps(plan)).numbers_cpu == {}
    module = ropewalk.RotaryEmbedding.from_plan(plan)
    assert copy.deepcopy(module).plan is plan


@pytest.mark.parametrize("number", [0, -1, 1024, 2**40])
def test_a_number_nobody_gave_is_refused(number):
    q, k = tensors("cpu")
    with pytest.raises(RuntimeError, match="call: expected a number of this process"):
        torch.ops.ropewalk._rotate_known(q, k, number, 0, None)


def test_bad_input_is_refused_as_by_text(device):
    plan = learned(device)
    q, k = tensors(device)
    with pytest.raises(RuntimeError, match="positions: expected one per token"):
        ropewalk.rotate(q, k, plan=plan, positions=torch.arange(4, device=device))
    with pytest.raises(RuntimeError, match="positions: given together with start"):
        ropewalk.rotate(q, k, plan=plan, offset=1, positions=torch.arange(5, device=device))
    with pytest.raises(RuntimeError, match="k: expected the dtype of q"):
        ropewalk.rotate_(q, k.double(), plan=plan)
    with pytest.raises(RuntimeError, match="q: expected heads of 16 channels"):
        ropewalk.rotate(q[..., :8], plan=plan)


def test_in_place_on_a_lazy_copy_leaves_the_original(device):
    plan = learned(device)
    q, _ = tensors(device)
    original = q.clone()
    lazy = torch._lazy_clone(q)
    ropewalk.rotate_(lazy, plan=plan)
    assert torch.equal(q, original) and not torch.equal(lazy, original)
