"""Tables the user brings, half or full width, with gradients; and the parity arithmetics."""

import numpy as np
import pytest
import torch

import ropewalk
from oracle import channels
from tolerance import table_bound

ROWS = 12


def tables(dtype=torch.float64, columns=4, grad=True, device="cpu"):
    return [
        torch.rand(ROWS, columns, dtype=dtype, device=device).requires_grad_(grad) for _ in "cs"
    ]


def doubled(table, pairing):
    if pairing == "interleaved":
        return table.repeat_interleave(2, 1)
    return torch.cat([table, table], dim=1)


KINDS = {
    "offset": {"offset": 3},
    "tokens": {"positions": torch.tensor([4, 0, 11])},
    "batch tokens": {"positions": torch.tensor([[4, 0, 4], [4, 11, 3]])},
    "starts": {"offset": torch.tensor([5, 9])},
    "padding": {"positions": torch.tensor([[-1, 0, 4], [-1, -1, 3]]), "padding": -1},
}


@pytest.mark.parametrize("pairing", ["half", "interleaved", "interleaved_to_half"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_to_q_k_cos_and_sin(kind, pairing):
    plan = ropewalk.make_plan(10, rotary_dim=8, pairing=pairing, offset=1)
    q = torch.randn(2, 3, 3, 10, dtype=torch.float64, requires_grad=True)
    k = torch.randn(2, 1, 3, 10, dtype=torch.float64, requires_grad=True)

    def rotate(q, k, cos, sin):
        return ropewalk.rotate(q, k, plan=plan, cos=cos, sin=sin, **KINDS[kind])

    inputs = (q, k, *tables())
    assert torch.autograd.gradcheck(rotate, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(rotate, inputs, check_fwd_over_rev=kind == "offset")


ROWS_READ = {
    "offset": ({"offset": 3}, [[3, 4, 5]] * 2),
    "tokens": ({"positions": torch.tensor([4, 0, 4])}, [[4, 0, 4]] * 2),
    "batch tokens": ({"positions": torch.tensor([[4, 0, 4], [4, 11, 3]])}, [[4, 0, 4], [4, 11, 3]]),
    "starts": ({"offset": torch.tensor([5, 4])}, [[5, 6, 7], [4, 5, 6]]),
}


@pytest.mark.parametrize("case", ROWS_READ)
def test_gradients_to_tables_sum_over_rows_and_heads(case, device):
    # Small integers: every product and sum is exact, whatever the order.
    options, rows = ROWS_READ[case]
    options = {n: v.to(device) if isinstance(v, torch.Tensor) else v for n, v in options.items()}
    plan = ropewalk.make_plan(8)
    q, gq, k, gk = (
        torch.randint(-8, 9, (2, heads, 3, 8)).float().to(device) for heads in (3, 3, 1, 1)
    )
    cos, sin = tables(torch.float32, device=device)
    rotated = ropewalk.rotate(q, k, plan=plan, cos=cos, sin=sin, **options)
    torch.autograd.backward(rotated, (gq, gk))
    dcos, dsin = np.zeros((ROWS, 4)), np.zeros((ROWS, 4))
    for x, g in ((q, gq), (k, gk)):
        x, g = x.double().cpu().numpy(), g.double().cpu().numpy()
        for b, row_of_token in enumerate(rows):
            for t, row in enumerate(row_of_token):
                for x_h, g_h in zip(x[b, :, t], g[b, :, t], strict=True):
                    dcos[row] += g_h[:4] * x_h[:4] + g_h[4:] * x_h[4:]
                    dsin[row] += g_h[4:] * x_h[:4] - g_h[:4] * x_h[4:]
    assert np.array_equal(cos.grad.double().cpu().numpy(), dcos)
    assert np.array_equal(sin.grad.double().cpu().numpy(), dsin)


def test_gradients_of_the_inverse_and_of_packed_sequences():
    plan = ropewalk.make_plan(8)
    x = torch.randn(1, 2, 3, 8, dtype=torch.float64, requires_grad=True)
    cu_seqlens = torch.tensor([0, 2, 3])

    def rotate(x, cos, sin):
        return ropewalk.rotate(x, plan=plan, cos=cos, sin=sin, cu_seqlens=cu_seqlens, inverse=True)

    assert torch.autograd.gradcheck(rotate, (x, *tables()))


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_full_width_tables(pairing, device):
    plan = ropewalk.make_plan(8, pairing=pairing)
    q = torch.randn(2, 3, 5, 8, device=device)
    half = tables(torch.float32, device=device)
    full = [doubled(t.detach(), pairing).requires_grad_() for t in half]
    y_half = ropewalk.rotate(q, plan=plan, cos=half[0], sin=half[1], offset=2)
    y_full = ropewalk.rotate(q, plan=plan, cos=full[0], sin=full[1], offset=2)
    assert torch.equal(y_half, y_full)
    weight = torch.randn_like(q)
    (y_half * weight).sum().backward()
    (y_full * weight).sum().backward()
    for h, f in zip(half, full, strict=True):
        torch.testing.assert_close(f.grad, doubled(h.grad / 2, pairing))
    # Through doubled() the whole gradient comes back to the half table.
    cos = half[0].detach().requires_grad_()
    y = ropewalk.rotate(q, plan=plan, cos=doubled(cos, pairing), sin=full[1].detach(), offset=2)
    (y * weight).sum().backward()
    torch.testing.assert_close(cos.grad, half[0].grad)


def test_full_width_tables_whose_copies_differ_are_refused():
    plan = ropewalk.make_plan(8)
    cos = torch.rand(ROWS, 8)
    sin = doubled(torch.rand(ROWS, 4), "half")
    with pytest.raises(RuntimeError, match="cos: columns 0 and 4 of row 2 differ"):
        ropewalk.rotate(torch.randn(1, 1, 3, 8), plan=plan, cos=cos, sin=sin, offset=2)


@pytest.mark.parametrize("columns", [3, 5, 9])
def test_tables_of_another_width_are_refused(columns):
    with pytest.raises(RuntimeError, match="cos: expected"):
        table = torch.rand(ROWS, columns)
        ropewalk.rotate(torch.randn(1, 1, 3, 8), plan=ropewalk.make_plan(8), cos=table, sin=table)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("table_dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_values(dtype, table_dtype, pairing, device):
    cos, sin = (t.to(table_dtype) for t in tables(grad=False, device=device))
    x = torch.randn(2, 3, 5, 8, device=device).to(dtype)
    positions = torch.randint(0, ROWS, (2, 5), device=device)
    y = ropewalk.rotate(x, plan=ropewalk.make_plan(8, pairing=pairing), cos=cos, sin=sin,
                        positions=positions)  # fmt: skip
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    c, s = (t[positions].to(compute).double().cpu().numpy()[:, None] for t in (cos, sin))
    xs, ys = x.double().cpu().numpy(), y.double().cpu().numpy()
    first, second = channels(8, pairing)
    x0, x1 = xs[..., first], xs[..., second]
    for got, x_cos, x_sin, sign in ((ys[..., first], x0, x1, -1), (ys[..., second], x1, x0, 1)):
        exact = x_cos * c + sign * x_sin * s
        assert (np.abs(got - exact) <= table_bound(dtype, exact, x_cos, x_sin, c, s)).all()


def test_one_row_per_token(device):
    plan = ropewalk.make_plan(8)
    cos, sin = torch.rand(2, 2, 5, 4, device=device)
    q = torch.randn(2, 3, 5, 8, device=device)
    y = ropewalk.rotate(q, plan=plan, cos=cos, sin=sin)
    for b in range(2):
        expected = ropewalk.rotate(q[b : b + 1], plan=plan, cos=cos[b], sin=sin[b])
        assert torch.equal(y[b : b + 1], expected)


def test_learned_frequencies_learn():
    """Frequencies fitted through the table: the gradient reaches them and the loss falls."""
    plan = ropewalk.make_plan(8)
    target = ropewalk.RotaryEmbedding(8, base=50.0)
    x = torch.randn(1, 2, 6, 8)
    start = torch.tensor([1.0, 0.3, 0.1, 0.02])
    frequencies = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Adam([frequencies], lr=0.02)
    losses = []
    for _ in range(120):
        angles = torch.outer(torch.arange(6.0), frequencies)
        y = ropewalk.rotate(x, plan=plan, cos=angles.cos(), sin=angles.sin())
        losses.append((y - target(x)).square().mean())
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 1000
    wanted = 50.0 ** (-torch.arange(0, 8, 2) / 8)
    assert (frequencies.detach() - wanted).abs().max() < (start - wanted).abs().max() / 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-8b"])
def test_parity_reaches_the_bits_of_transformers(name, dtype, configs):
    """P0: tables rounded to the dtype, every product and sum rounded, as eager Llama does."""
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = transformers.AutoConfig.from_pretrained(configs / f"{name}.json")
    rotary = ropewalk.RotaryEmbedding.from_config(config, arithmetic="parity_p0")
    q = torch.randn(2, 4, 9, rotary.plan.head_dim).to(dtype)
    k = torch.randn(2, 2, 9, rotary.plan.head_dim).to(dtype)
    positions = torch.randint(0, 4000, (2, 9))
    theirs = LlamaRotaryEmbedding(config)
    cos, sin = theirs(q, positions)
    expected = apply_rotary_pos_emb(q, k, cos, sin)
    from_table = ropewalk.rotate(q, k, plan=rotary.plan, cos=cos, sin=sin)
    assert torch.equal(from_table[0], expected[0]) and torch.equal(from_table[1], expected[1])
    # From the plan alone, wherever the power function gave the same frequency: 1 ulp is allowed.
    ours = torch.tensor(rotary.plan.model_frequencies)
    assert (
        (ours - theirs.inv_freq).abs() <= torch.finfo(torch.float32).eps * theirs.inv_freq
    ).all()
    pair = torch.nonzero(ours == theirs.inv_freq).flatten()
    assert len(pair) > 0.9 * len(ours)
    channels = torch.cat([pair, pair + rotary.plan.pairs])
    from_plan = rotary(q, k, positions)
    for got, wanted in zip(from_plan, expected, strict=True):
        assert torch.equal(got[..., channels], wanted[..., channels])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("arithmetic", ropewalk.plans.ARITHMETICS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_gpu_kernels_read_tables_with_the_bits_of_the_cpu(dtype, arithmetic, configs):
    """Half and full width, gaps between rows, several types, padding; forward, inverse, in place,
    and the gradients of q and of the table."""
    plan = ropewalk.plan_from_config(configs / "llama-3.1-8b.json", arithmetic=arithmetic)
    q = torch.randn(2, 3, 5, plan.head_dim).to(dtype)
    k = torch.randn(2, 1, 5, plan.head_dim).to(dtype)
    positions = torch.tensor([[-1, 0, 4, 11, 3], [2, 2, -1, 7, 9]])
    wide = torch.rand(2, ROWS, 2 * plan.pairs)
    for cos, sin in (
        wide[:, :, : plan.pairs],  # rows with gaps
        wide[:, :, : plan.pairs].repeat(1, 1, 2),  # full width
        wide[:, :, : plan.pairs].bfloat16(),
    ):
        on_cpu = {"cos": cos, "sin": sin, "positions": positions}
        on_gpu = {name: tensor.cuda() for name, tensor in on_cpu.items()}
        for inverse in (False, True):
            more = {"plan": plan, "padding": -1, "inverse": inverse}
            expected = ropewalk.rotate(q, k, **on_cpu, **more)
            got = ropewalk.rotate(q.cuda(), k.cuda(), **on_gpu, **more)
            inplace = ropewalk.rotate_(q.cuda(), k.cuda(), **on_gpu, **more)
            for e, g, i in zip(expected, got, inplace, strict=True):
                assert torch.equal(e, g.cpu()) and torch.equal(e, i.cpu())
    with pytest.raises(RuntimeError, match="cos: expected"):
        ropewalk.rotate(q.cuda(), plan=plan, cos=wide[0, :, :3].cuda(), sin=wide[1, :, :3].cuda())
