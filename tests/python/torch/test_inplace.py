"""In place and out=: results, version counters, views, and what is refused."""

import pytest
import torch

import ropewalk


def test_in_place_equals_out_of_place_and_counts(rotary, device):
    q, k = torch.randn(2, 4, 5, 16, device=device), torch.randn(2, 1, 5, 16, device=device)
    expected = rotary(q, k, offset=7)
    versions = q._version, k._version
    got = rotary(q, k, offset=7, inplace=True)
    assert got[0] is q and got[1] is k
    assert torch.equal(q, expected[0]) and torch.equal(k, expected[1])
    assert (q._version, k._version) == (versions[0] + 1, versions[1] + 1)


def test_inference_mode(rotary):
    with torch.inference_mode():
        x = torch.randn(1, 2, 3, 16)
        expected = rotary(x)
        assert torch.equal(rotary(x, inplace=True), expected)


def test_out_variant(rotary, device):
    q, k = torch.randn(2, 4, 5, 16, device=device), torch.randn(2, 1, 5, 16, device=device)
    out = torch.empty_like(q), torch.empty_like(k)
    version = out[0]._version
    assert ropewalk.rotate(q, k, plan=rotary.plan, out=out) is out
    assert torch.equal(out[0], rotary(q, k)[0]) and torch.equal(out[1], rotary(q, k)[1])
    assert out[0]._version == version + 1
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        ropewalk.rotate(q.requires_grad_(), k, plan=rotary.plan, out=out)


def test_saved_tensors_notice_the_mutation(rotary):
    x = torch.randn(1, 2, 3, 16, requires_grad=True)
    y = x * 1
    z = y.square()  # saves y
    with torch.no_grad():
        rotary(y, inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_gradient_of_in_place(rotary, device):
    q = torch.randn(1, 4, 3, 16, device=device, requires_grad=True)
    k = torch.randn(1, 2, 3, 16, device=device, requires_grad=True)

    def loss(inplace):
        q.grad = k.grad = None
        a, b = rotary(q * 1, k * 1, inplace=inplace)
        (a.square().sum() + (b * a.sum()).sum()).backward()
        return q.grad, k.grad

    for got, expected in zip(loss(True), loss(False), strict=True):
        torch.testing.assert_close(got, expected)


def test_in_place_version_with_grad(rotary):
    y = torch.randn(1, 2, 3, 16, requires_grad=True) * 1
    version = y._version
    rotary(y, inplace=True)
    assert y._version == version + 1


def test_leaf_is_refused(rotary):
    q = torch.randn(1, 2, 3, 16, requires_grad=True)
    before = q.detach().clone()
    with pytest.raises(RuntimeError, match="leaf"):
        rotary(q, inplace=True)
    with pytest.raises(RuntimeError, match="leaf"):
        rotary(q, torch.randn(1, 2, 3, 16) * 1, inplace=True)
    assert q.requires_grad and q.is_leaf and before.shape == q.shape


@pytest.mark.parametrize("inplace", [False, True])
def test_views_of_one_qkv_buffer(inplace, device):
    rotary = ropewalk.RotaryEmbedding(16, layout="bthd")
    weight = torch.randn(2, 5, 8, 16, device=device, requires_grad=True)

    def loss(inplace):
        weight.grad = None
        qkv = weight * 2
        q, k, v = qkv[:, :, :4], qkv[:, :, 4:6], qkv[:, :, 6:]
        q, k = rotary(q, k, inplace=inplace)
        (q.square().sum() + (k * 3).sum() * v.sum() + (q[:, :, :2] * k).sum()).backward()
        return weight.grad

    torch.testing.assert_close(loss(inplace), loss(False))


def test_views_with_a_create_graph_backward():
    rotary = ropewalk.RotaryEmbedding(4, layout="bthd")

    def rotate(x):
        qkv = x * 2
        rotary(qkv[:, :, :2], qkv[:, :, 2:3], inplace=True)
        return qkv

    x = torch.randn(1, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(rotate, x)
    assert torch.autograd.gradgradcheck(rotate, x)


def test_views_of_different_buffers(rotary):
    a, b = torch.randn(2, 1, 4, 3, 16).unbind(0)
    a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
    q, k = (a * 1)[:, :2], (b * 1)[:, 2:]
    rotary(q, k, inplace=True)
    (q.sum() + k.sum()).backward()
    expected = ropewalk.rotate(torch.ones(1, 2, 3, 16), plan=rotary.plan, inverse=True)
    torch.testing.assert_close(a.grad[:, :2], expected)
    assert not a.grad[:, 2:].any() and not b.grad[:, :2].any()
    torch.testing.assert_close(b.grad[:, 2:], expected)


def test_several_views_from_one_function_are_refused():
    rotary = ropewalk.RotaryEmbedding(16, layout="bthd")
    qkv = torch.randn(1, 3, 6, 16, requires_grad=True) * 1
    q, k, _ = qkv.split(2, dim=2)
    with pytest.raises(RuntimeError, match="multiple views"):
        rotary(q, k, inplace=True)[0].sum().backward()


def test_a_strided_buffer_is_refused_with_the_reason():
    rotary = ropewalk.RotaryEmbedding(16, layout="bthd")
    qkv = (torch.randn(6, 3, 1, 16, requires_grad=True) * 1).transpose(0, 2)
    base = qkv.clone(memory_format=torch.preserve_format)
    q, k = base[:, :, :4], base[:, :, 4:]
    with pytest.raises(RuntimeError, match="a Function cannot return two views"):
        rotary(q, k, inplace=True)


def test_tables_that_learn_are_refused_in_place(rotary):
    x = torch.randn(1, 2, 3, 16)
    cos = torch.rand(3, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match="in place is not possible"):
        ropewalk.rotate_(x, plan=rotary.plan, cos=cos, sin=torch.rand(3, 8))


def test_in_place_under_transforms(rotary):
    x = torch.randn(4, 1, 2, 3, 16)
    got = torch.func.vmap(lambda x: rotary(x.clone(), inplace=True))(x)
    assert torch.equal(got, torch.stack([rotary(row) for row in x]))
    t = torch.randn_like(x[0])
    tangent = torch.func.jvp(lambda x: rotary(x * 1, inplace=True), (x[0],), (t,))[1]
    assert torch.equal(tangent, rotary(t))
