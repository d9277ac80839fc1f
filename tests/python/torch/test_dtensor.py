"""DTensor's rule for the operators, over two processes (gloo)."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import ropewalk
from ropewalk.parallel import register_dtensor_rules

WORLD = 2

MROPE = {
    "model_type": "qwen2_vl", "hidden_size": 32, "num_attention_heads": 2,
    "num_key_value_heads": 2, "num_hidden_layers": 1, "max_position_embeddings": 64,
    "rope_theta": 1e4, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
}  # fmt: skip


def check(rotary, q, k, positions, placement, position_placement, mesh, **call):
    """The whole result, and where it lies."""
    q = q.clone().requires_grad_()
    want_q, want_k = rotary(q, k, positions, **call)
    (want,) = torch.autograd.grad(want_q.square().sum() + want_q.sum(), q)
    spread_q = distribute_tensor(q.detach(), mesh, [placement]).requires_grad_()
    spread_k = distribute_tensor(k, mesh, [placement])
    if positions is not None:
        positions = distribute_tensor(positions, mesh, [position_placement])
    got_q, got_k = rotary(spread_q, spread_k, positions, **call)
    assert isinstance(got_q, DTensor)
    assert torch.equal(got_q.full_tensor(), want_q) and torch.equal(got_k.full_tensor(), want_k)
    (got_q.square().sum() + got_q.sum()).backward()
    assert torch.equal(spread_q.grad.full_tensor(), want)
    return got_q.placements[0], spread_q.grad.placements[0]


def worker(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=WORLD
    )
    try:
        run(init_device_mesh("cpu", (WORLD,)))
        dist.barrier()  # neither leaves while the other still talks
    finally:
        dist.destroy_process_group()


def run(mesh):
    register_dtensor_rules()
    register_dtensor_rules()
    torch.manual_seed(0)
    rotary = ropewalk.RotaryEmbedding(16)
    q, k = torch.randn(4, 6, 8, 16), torch.randn(4, 2, 8, 16)
    by_token, by_row = torch.randint(2**30, (8,)), torch.randint(2**30, (4, 8))
    batch, head, token, channel = (Shard(i) for i in range(4))
    everywhere = Replicate()

    stays = {
        "replicated": (by_token, everywhere, everywhere),
        "heads": (by_row, head, everywhere),
        "heads from the start": (None, head, None),
        "batch": (by_row, batch, Shard(0)),
        "batch, positions for all": (by_token, batch, everywhere),
        "batch from the start": (None, batch, None),
        "tokens": (by_token, token, Shard(0)),
        "tokens, positions by row": (by_row, token, Shard(1)),
    }
    for name, (positions, placement, position_placement) in stays.items():
        places = check(rotary, q, k, positions, placement, position_placement, mesh)
        assert places == (placement, placement), (name, places)

    # The other layout: heads are the third dimension.
    other = [x.transpose(1, 2).contiguous() for x in (q, k)]
    places = check(rotary, *other, by_row, Shard(2), everywhere, mesh, layout="bthd")
    assert places[0] == Shard(2)

    # Never the channel, and no tokens without their positions: gathered first.
    for positions, placement in ((by_token, channel), (None, token)):
        places = check(rotary, q, k, positions, placement, everywhere, mesh)
        assert places[0] not in (channel, token), places

    # Three axes.
    mrope = ropewalk.RotaryEmbedding.from_config(MROPE)
    axes = torch.randint(2**20, (3, 4, 8))
    for placement, position_placement in ((token, Shard(2)), (batch, Shard(1)), (head, everywhere)):
        places = check(mrope, q, k, axes, placement, position_placement, mesh)
        assert places[0] == placement

    parity(mesh, q, k, by_token, by_row)

    # q alone, and in place.
    spread = distribute_tensor(q, mesh, [head])
    assert torch.equal(rotary(spread).full_tensor(), rotary(q))
    rotary(spread, inplace=True)
    assert torch.equal(spread.full_tensor(), rotary(q))


def parity(mesh, q, k, by_token, by_row):
    """Tables, one row a token: bits of one process wherever the data are split."""
    batch, head, token, channel = (Shard(i) for i in range(4))
    everywhere = Replicate()
    llama = {
        "model_type": "llama", "hidden_size": 96, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "rope_theta": 1e4,
    }  # fmt: skip
    for arithmetic in ("parity_p0", "parity_p1", "parity_p2", "parity_p3", "parity_p4"):
        rotary = ropewalk.RotaryEmbedding.from_config(llama, arithmetic=arithmetic)
        for dtype in (torch.float32, torch.bfloat16):
            both = q.to(dtype), k.to(dtype)
            for placement, positions, where in (
                (head, by_row, everywhere), (head, None, None), (batch, by_row, batch),
                (batch, by_token, everywhere), (token, by_token, Shard(0)),
                (token, by_row, Shard(1)), (token, None, None),
            ):  # fmt: skip
                places = check(rotary, *both, positions, placement, where, mesh)
                assert places == (placement, placement), (arithmetic, placement, places)
    assert check(rotary, q, k, by_token, channel, everywhere, mesh)[0] != channel

    padded = by_row.masked_fill(by_row % 3 == 0, -1)
    places = check(rotary, q, k, padded, token, Shard(1), mesh, padding=-1)
    assert places[0] == token
    starts = torch.tensor([3, 1000, 2**20, 5])
    for placement in (batch, token, head):
        spread_q = distribute_tensor(q, mesh, [placement])
        y = rotary(spread_q, offset=distribute_tensor(starts, mesh, [Shard(0)]))
        assert y.placements == (placement,)
        assert torch.equal(y.full_tensor(), rotary(q, offset=starts))
        rotary(spread_q, offset=7, inplace=True)
        assert torch.equal(spread_q.full_tensor(), rotary(q, offset=7))

    mrope = ropewalk.RotaryEmbedding.from_config(MROPE, arithmetic="parity")
    axes = torch.randint(2**20, (3, 4, 8))
    for placement, where in ((token, Shard(2)), (batch, Shard(1)), (head, everywhere)):
        assert check(mrope, q, k, axes, placement, where, mesh)[0] == placement


def test_dtensor(tmp_path):
    mp.start_processes(worker, (str(tmp_path),), nprocs=WORLD, start_method="spawn")
