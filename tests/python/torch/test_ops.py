"""The raw operators: opcheck for each overload, fake strides, refusal of derivatives."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.library import opcheck

import ropewalk

PLAN = ropewalk.make_plan(16).text


def inputs(device):
    return torch.randn(2, 4, 5, 16, device=device), torch.randn(2, 2, 5, 16, device=device)


def cases(device):
    long = torch.arange(10, device=device).view(2, 5)
    table = torch.rand(12, 8, device=device)
    yield "offset", (-2, 3), {}
    yield "tokens", (), {"positions": long[0]}
    yield "batch tokens", (), {"positions": long}
    yield "starts", (), {"starts": torch.tensor([4, 9], device=device)}
    yield "table", (), {"positions": long, "cos": table, "sin": table, "inverse": True}


@pytest.mark.parametrize("name", ["rotate", "_rotate"])
def test_opcheck(name, device):
    functional = getattr(torch.ops.ropewalk, name).default
    out = getattr(torch.ops.ropewalk, name).out
    inplace = getattr(torch.ops.ropewalk, name + "_").default
    q, k = inputs(device)
    for _, args, kwargs in cases(device):
        opcheck(functional, (q, k, PLAN, *args), kwargs)
        opcheck(inplace, (q.clone(), k.clone(), PLAN, *args), kwargs)
        outs = {"q_out": torch.empty_like(q), "k_out": torch.empty_like(k)}
        opcheck(out, (q, k, PLAN, *args), {**kwargs, **outs})
    opcheck(functional, (q, None, PLAN))
    opcheck(inplace, (q.clone(), None, PLAN))
    opcheck(out, (q, None, PLAN), {"q_out": torch.empty_like(q)})


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(32, 1, 6144)[:, :, :4096].unflatten(-1, (32, 128)),
        lambda: torch.randn(2, 5, 3, 128).transpose(1, 2),
        lambda: torch.randn(1, 1, 1, 128).expand(2, 3, 5, 128),
        lambda: torch.randn(2, 3, 5, 256)[..., ::2],
        lambda: torch.randn(0, 3, 5, 128),
    ],
    ids=["packed qkv", "transposed", "expanded", "channel stride 2", "empty"],
)
def test_fake_strides_are_the_real_ones(make):
    plan = ropewalk.make_plan(128).text
    x = make()
    real = torch.ops.ropewalk.rotate(x, None, plan)[0]
    with torch._subclasses.FakeTensorMode() as mode:
        fake = torch.ops.ropewalk.rotate(mode.from_tensor(x), None, plan)[0]
    assert (real.shape, real.stride(), real.dtype) == (fake.shape, fake.stride(), fake.dtype)
    meta = torch.ops.ropewalk.rotate(x.to("meta"), None, plan)[0]
    assert meta.shape == real.shape and meta.is_meta


def test_raw_operators_refuse_derivatives():
    q, k = inputs("cpu")
    op = torch.ops.ropewalk
    with pytest.raises(RuntimeError, match="requires grad"):
        op.rotate(q.requires_grad_(), k, PLAN)
    with pytest.raises(RuntimeError, match="requires grad"):
        op.rotate_(q * 1, k, PLAN)
    with torch.no_grad():
        op.rotate(q, k, PLAN)
    with forward_ad.dual_level(), torch.no_grad():
        dual = forward_ad.make_dual(q.detach(), torch.ones_like(q))
        with pytest.raises(RuntimeError, match="tangent"):
            op.rotate(dual, None, PLAN)


def test_raw_in_place_counts():
    q, k = inputs("cpu")
    versions = q._version, k._version
    torch.ops.ropewalk.rotate_(q, k, PLAN)
    assert (q._version, k._version) == (versions[0] + 1, versions[1] + 1)
    out = torch.empty_like(q)
    version = out._version
    torch.ops.ropewalk.rotate.out(q, None, PLAN, q_out=out)
    assert out._version == version + 1


def test_no_autocast_rule(device):
    x = torch.randn(1, 2, 3, 16, device=device)
    with torch.autocast(device, torch.bfloat16):
        y = torch.ops.ropewalk.rotate(x, None, PLAN)[0]
    assert y.dtype == torch.float32 and torch.equal(y, torch.ops.ropewalk.rotate(x, None, PLAN)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda q, k: (q[0, 0], None, PLAN), "q: expected 3 or 4 dimensions, got 2"),
        (lambda q, k: (q.int(), None, PLAN), "q: expected float"),
        (lambda q, k: (q[..., :8], None, PLAN), "q: expected heads of 16 channels"),
        (lambda q, k: (q, k[..., :8], PLAN), "k: expected heads of 16 channels"),
        (lambda q, k: (q, k.double(), PLAN), "k: expected the dtype of q"),
        (lambda q, k: (q, k[:, :, :3], PLAN), "k: expected batch 2 and 5 tokens"),
        (lambda q, k: (q, k, "{}"), "plan: not the text of a Ropewalk plan"),
        (lambda q, k: (q, k, PLAN.replace("head_dim", "dim_head")), "plan: "),
        (lambda q, k: (q, k, PLAN, -2, 1, torch.arange(5)), "positions: given together"),
        (lambda q, k: (q, k, PLAN, -2, 0, torch.arange(4)), "positions: expected one per token"),
        (
            lambda q, k: (q, k, PLAN, -2, 0, torch.arange(15).view(3, 5)),
            "positions: expected 1 or 2",
        ),
        (
            lambda q, k: (q, k, PLAN, -2, 0, torch.arange(5).to(torch.uint8)),
            "positions: expected int32",
        ),
        (
            lambda q, k: (q, k, PLAN, -2, 0, None, torch.arange(3)),
            "starts|positions: expected one start",
        ),
        (lambda q, k: (q, k, PLAN, -2, 0, None, None, torch.tensor([0, 5])), "positions: packed"),
    ],
)
def test_refusals_name_the_argument(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        torch.ops.ropewalk.rotate(*arguments(*inputs("cpu")))


def test_calls_leak_nothing(configs):
    """The stable ABI's own reading of a string argument leaks it; 50 000 calls would show."""
    resource = pytest.importorskip("resource")
    plan = ropewalk.plan_from_config(configs / "llama-3.1-8b.json")
    x = torch.randn(1, 1, 1, plan.head_dim)

    def peak_after(calls):
        for _ in range(calls):
            torch.ops.ropewalk._rotate_(x, None, plan.text)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    before = peak_after(1000)
    leaked_text = 50_000 * len(plan.text)
    assert peak_after(50_000) - before < leaked_text // 4
