"""Which tokens each rank holds, and that the ranks together are one process, without processes."""

import pytest
import torch

import ropewalk
from ropewalk.parallel import (
    contiguous_tokens,
    join_tokens,
    packed_tokens,
    split_tensor,
    zigzag_tokens,
)

TOTAL = 48
CU_SEQLENS = [0, 16, 16, 48]
SPLITS = {
    "contiguous": lambda r, n: contiguous_tokens(TOTAL, r, n),
    "zigzag": lambda r, n: zigzag_tokens(TOTAL, r, n),
    "packed": lambda r, n: packed_tokens(CU_SEQLENS, r, n, order="contiguous"),
    "packed zigzag": lambda r, n: packed_tokens(torch.tensor(CU_SEQLENS), r, n),
}


def test_the_tokens_of_small_splits():
    assert contiguous_tokens(6, 1, 3).tolist() == [2, 3]
    assert [zigzag_tokens(8, r, 2).tolist() for r in (0, 1)] == [[0, 1, 6, 7], [2, 3, 4, 5]]
    assert packed_tokens([0, 4, 12], 0, 2).tolist() == [0, 3, 4, 5, 10, 11]
    assert packed_tokens([0, 4, 12], 1, 2, order="contiguous").tolist() == [2, 3, 8, 9, 10, 11]
    assert packed_tokens([0], 0, 2).tolist() == []


@pytest.mark.parametrize("world", [1, 2, 4, 8])
@pytest.mark.parametrize("name", SPLITS)
def test_the_ranks_together_rotate_the_bits_of_one(name, world, device, configs):
    all_tokens = [SPLITS[name](rank, world).to(device) for rank in range(world)]
    bounds = torch.tensor(CU_SEQLENS, device=device)
    of_sequence = ropewalk.positions_from_cu_seqlens(bounds, TOTAL)
    mrope = ropewalk.RotaryEmbedding.from_config(configs / "qwen2-vl-7b.json")
    plain = ropewalk.RotaryEmbedding(16)
    x = torch.randn(2, 3, TOTAL, mrope.plan.head_dim, device=device)
    for rotary, positions in (
        (plain, torch.arange(TOTAL, device=device) + 2**20),
        (plain, of_sequence),
        (plain, torch.randint(2**30, (2, TOTAL), device=device)),
        (mrope, torch.randint(2**20, (3, 2, TOTAL), device=device)),
    ):
        data = x[..., : rotary.plan.head_dim]
        parts = [
            rotary(split_tensor(data, tokens, 2), positions=split_tensor(positions, tokens))
            for tokens in all_tokens
        ]
        assert torch.equal(join_tokens(parts, all_tokens, 2), rotary(data, positions=positions))


@pytest.mark.parametrize("world", [1, 2, 4])
def test_packed_boundaries_on_a_rank(world):
    """cu_seqlens // world, as the docstring says."""
    cu_seqlens = torch.tensor(CU_SEQLENS)
    sequence = torch.searchsorted(cu_seqlens, torch.arange(TOTAL), right=True)
    for rank in range(world):
        mine = split_tensor(sequence, packed_tokens(cu_seqlens, rank, world))
        local = torch.searchsorted(cu_seqlens // world, torch.arange(mine.numel()), right=True)
        assert torch.equal(mine, local)


def test_zigzag_balances_causal_attention():
    work = [int((zigzag_tokens(TOTAL, r, 4) + 1).sum()) for r in range(4)]
    assert len(set(work)) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: contiguous_tokens(7, 0, 2), "total: expected a multiple of 2, got 7"),
        (lambda: zigzag_tokens(6, 0, 2), "total: expected a multiple of 4, got 6"),
        (lambda: contiguous_tokens(8, 2, 2), "rank: expected 0 to world - 1 = 1, got 2"),
        (lambda: packed_tokens([0, 4, 10], 0, 2), "sequence 1: expected a multiple of 4, got 6"),
        (lambda: packed_tokens([0, 4], 0, 2, order="random"), "order: expected zigzag"),
        (
            lambda: join_tokens([torch.zeros(2)], [torch.tensor([0, 2])], 0),
            "tokens: expected every",
        ),
    ],
)
def test_wrong_splits_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
