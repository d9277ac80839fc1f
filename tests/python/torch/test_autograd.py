"""First and second derivatives, forward mode, torch.func, strided and expanded gradients."""

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

import ropewalk
from tolerance import near

KINDS = {
    "offset": lambda: {"offset": 3},
    "starts": lambda: {"offset": torch.tensor([5, 900])},
    "tokens": lambda: {"positions": torch.tensor([4, 0, 131_071])},
    "batch tokens": lambda: {"positions": torch.tensor([[4, 0, 9], [1, 2, 3]])},
}


def q_and_k(device="cpu", batch=2):
    q = torch.randn(batch, 3, 3, 8, dtype=torch.float64, device=device, requires_grad=True)
    k = torch.randn(batch, 1, 3, 8, dtype=torch.float64, device=device, requires_grad=True)
    return q, k


def moved(kind, device):
    return {name: v.to(device) if isinstance(v, torch.Tensor) else v for name, v in kind().items()}


# Bug21
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind, pairing, device):
    rotary = ropewalk.RotaryEmbedding(8, rotary_dim=6, pairing=pairing)
    arguments = moved(KINDS[kind], device)

    def rotate(q, k):
        return rotary(q, k, **arguments)

    assert gradcheck(rotate, q_and_k(device), check_forward_ad=True)
    assert gradgradcheck(rotate, q_and_k(device), check_fwd_over_rev=True, check_rev_over_rev=True)


def test_gradcheck_of_packed_sequences_and_one_tensor(device):
    rotary = ropewalk.RotaryEmbedding(8)
    cu_seqlens = torch.tensor([0, 2, 3], device=device)
    q, _ = q_and_k(device, batch=1)

    def rotate(q):
        return rotary(q, cu_seqlens=cu_seqlens)

    assert gradcheck(rotate, q, check_forward_ad=True)
    assert gradgradcheck(rotate, q)


def test_gradcheck_of_several_axes(configs):
    plan = ropewalk.plan_from_config(configs / "qwen2-vl-7b.json")
    positions = torch.randint(0, 50, (3, 1, 2))
    x = torch.randn(1, 1, 2, plan.head_dim, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: ropewalk.rotate(x, plan=plan, positions=positions), x)


# Bug21
def test_known_gradients():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 1, 4)
    expected = {
        "half": [1.381773, 1.009950, -0.301169, 0.989950],
        "interleaved": [1.381773, -0.301169, 1.009950, 0.989950],
    }
    for pairing, values in expected.items():
        x.requires_grad_().grad = None
        y = ropewalk.RotaryEmbedding(4, pairing=pairing)(x, offset=1)
        before = x.detach().clone()
        y.sum().backward()
        near_values = near(torch.float32, size=2.0, digits=6)
        torch.testing.assert_close(x.grad.flatten(), torch.tensor(values), **near_values)
        assert torch.equal(x, before)
        assert torch.equal(y, ropewalk.RotaryEmbedding(4, pairing=pairing)(x, offset=1))


# Bug21
def test_strided_and_expanded_gradients(rotary, device):
    x = torch.randn(2, 4, 5, 16, device=device, requires_grad=True)
    gradients = {
        "expanded": torch.randn(1, 1, 1, 1, device=device).expand(2, 4, 5, 16),
        "transposed": torch.randn(2, 5, 4, 16, device=device).transpose(1, 2),
        "channel stride 2": torch.randn(2, 4, 5, 32, device=device)[..., ::2],
    }
    for gradient in gradients.values():
        (got,) = torch.autograd.grad(rotary(x), x, gradient)
        (expected,) = torch.autograd.grad(rotary(x), x, gradient.contiguous())
        assert torch.equal(got, expected)


def test_only_what_needs_a_gradient_gets_one(rotary):
    q, k = torch.randn(1, 2, 3, 16, requires_grad=True), torch.randn(1, 1, 3, 16)
    rotated_q, rotated_k = rotary(q, k)
    assert rotated_q.requires_grad and not rotated_k.requires_grad
    (rotated_q.sum() + rotated_k.sum()).backward()
    assert q.grad is not None
    rotated_q, rotated_k = rotary(k, q)
    assert not rotated_q.requires_grad and rotated_k.requires_grad


def test_nothing_of_x_is_saved(rotary):
    saved = []
    q, k = (
        torch.randn(1, 2, 3, 16, requires_grad=True),
        torch.randn(1, 1, 3, 16, requires_grad=True),
    )
    positions = torch.arange(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        rotary(q, k, positions)
    assert [t.data_ptr() for t in saved] == [positions.data_ptr()]


def test_forward_mode_gives_the_rotated_tangent(rotary, device):
    x, t = torch.randn(2, 1, 2, 3, 16, device=device)
    with forward_ad.dual_level():
        q, k = rotary(forward_ad.make_dual(x, t), t)
        assert torch.equal(forward_ad.unpack_dual(q).tangent, rotary(t))
        k_tangent = forward_ad.unpack_dual(k).tangent
        assert k_tangent is None or not k_tangent.any()


def test_torch_func(rotary, device):
    x = torch.randn(1, 2, 3, 16, device=device, dtype=torch.float64)
    weight = torch.randn_like(x)

    def loss(x):
        return (rotary(x) * weight).sum()

    expected = ropewalk.rotate(weight, plan=rotary.plan, inverse=True)
    torch.testing.assert_close(torch.func.grad(loss)(x), expected)
    torch.testing.assert_close(torch.func.jvp(rotary, (x,), (weight,))[1], rotary(weight))
    small = ropewalk.RotaryEmbedding(4)
    y = torch.randn(1, 1, 2, 4, device=device, dtype=torch.float64)
    reverse, forward = torch.func.jacrev(small)(y), torch.func.jacfwd(small)(y)
    torch.testing.assert_close(reverse, forward)
    torch.testing.assert_close(torch.einsum("bhtdBHTD,BHTD->bhtd", forward, y), small(y))
    hessian = torch.func.hessian(lambda y: (small(y) ** 2).sum())(y)
    torch.testing.assert_close(hessian.view(8, 8), 2 * torch.eye(8, dtype=y.dtype, device=device))


@pytest.mark.parametrize("dims", [(0, 0), (2, 0), (0, None), (None, 1), (-1, 4)])
@pytest.mark.parametrize("layout", ["bhtd", "bthd"])
def test_vmap_over_data(dims, layout, device):
    rotary = ropewalk.RotaryEmbedding(16, layout=layout)
    shapes = (2, 3, 5, 16) if layout == "bhtd" else (2, 5, 3, 16)
    samples = [torch.randn(7, *shapes, device=device) for _ in range(2)]
    inputs = [s[0] if d is None else s.movedim(0, d) for s, d in zip(samples, dims, strict=True)]
    got = torch.func.vmap(lambda q, k: rotary(q, k, offset=4), in_dims=dims)(*inputs)
    for i in range(7):
        expected = rotary(
            *(s[0 if d is None else i] for s, d in zip(samples, dims, strict=True)), offset=4
        )
        assert torch.equal(got[0][i], expected[0]) and torch.equal(got[1][i], expected[1])


def test_vmap_over_positions_and_tables(rotary, device):
    q = torch.randn(4, 1, 2, 3, 16, device=device)
    positions = torch.randint(0, 100, (4, 3), device=device)
    got = torch.func.vmap(rotary, in_dims=(0, None, 0))(q, None, positions)
    assert torch.equal(got, torch.stack([rotary(q[i], None, positions[i]) for i in range(4)]))
    cos, sin = torch.rand(2, 4, 3, 8, device=device)
    got = torch.func.vmap(lambda c, s: ropewalk.rotate(q[0], plan=rotary.plan, cos=c, sin=s))(
        cos, sin
    )
    expected = [ropewalk.rotate(q[0], plan=rotary.plan, cos=cos[i], sin=sin[i]) for i in range(4)]
    assert torch.equal(got, torch.stack(expected))


def test_per_sample_gradients(rotary, device):
    x = torch.randn(4, 1, 2, 3, 16, device=device)
    got = torch.func.vmap(torch.func.grad(lambda x: (rotary(x) ** 3).sum()))(x)
    for i in range(4):
        leaf = x[i].clone().requires_grad_()
        (rotary(leaf) ** 3).sum().backward()
        torch.testing.assert_close(got[i], leaf.grad)


def test_checkpoint(rotary):
    from torch.utils.checkpoint import checkpoint

    x = torch.randn(1, 2, 3, 16, requires_grad=True)
    checkpoint(lambda x: rotary(x * 2).square(), x, use_reentrant=False).sum().backward()
    got, x.grad = x.grad, None
    rotary(x * 2).square().sum().backward()
    assert torch.equal(got, x.grad)
