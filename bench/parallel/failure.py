"""A rank is killed in the middle of a long context; the others must end with a clear error within the
time-out, and all of them, started again, go on from the last chunk that every rank had finished."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from setting import ROOT, Rank

sys.path.insert(0, str(ROOT / "examples" / "python" / "long_context"))

from checkpoint import load_segments, save_segment
from model import TINY, Llama, random_model
from prefill import job_of

TOKENS, CHUNK, KILLED_AT = 256, 32, 160
_ROWS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
_COLUMNS = ("o_proj", "down_proj")


class SplitLlama(Llama):
    """Every rank holds its heads and channels of each layer, and the keys and values of its heads."""

    def __init__(self, whole: Llama, rank: Rank) -> None:
        def part(name: str, weight: torch.Tensor) -> torch.Tensor:
            kind = name.split(".")[-2]
            dim = 0 if kind in _ROWS else 1 if kind in _COLUMNS else None
            return weight if dim is None else weight.chunk(rank.world, dim)[rank.rank].contiguous()

        super().__init__(whole.config, {n: part(n, w) for n, w in whole.weights.items()})
        self.kv_heads //= rank.world

    def summed(self, part: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(part)
        return part


def split_model(rank: Rank) -> SplitLlama:
    heads = 2 * rank.world
    config = TINY | {
        "hidden_size": 16 * heads, "intermediate_size": 32 * heads,
        "num_attention_heads": heads, "num_key_value_heads": heads,
    }  # fmt: skip
    return SplitLlama(random_model(config, str(rank.device), torch.float32), rank)


def prefill_in_chunks(rank: Rank, folder: str, kill: bool) -> dict:
    """Takes the context in, each rank with checkpoints of its own in ``folder``; where ``kill``, the
    last rank ends itself at KILLED_AT. What the others then report is an error."""
    model = split_model(rank)
    tokens = torch.arange(TOKENS, device=rank.device) * 7919 % model.config["vocab_size"]
    job = job_of(model, tokens, CHUNK)
    mine = Path(folder) / str(rank.rank)
    mine.mkdir(parents=True, exist_ok=True)
    cache = model.cache(TOKENS)
    # The last chunk is always taken in again: its logits are the result.
    finished = min(load_segments(mine, cache, job), TOKENS - CHUNK)
    everywhere = torch.tensor(finished, device=rank.device)
    dist.all_reduce(everywhere, op=dist.ReduceOp.MIN)
    cache.tokens = resumed_at = int(everywhere)
    began = time.monotonic()
    try:
        while cache.tokens < TOKENS:
            begin = cache.tokens
            if kill and begin >= KILLED_AT and rank.rank == rank.world - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            logits = model.prefill(tokens[begin : begin + CHUNK], cache).cpu()
            save_segment(mine, cache, begin, cache.tokens, job)
            began = time.monotonic()
    except (RuntimeError, dist.DistError) as error:
        return {
            "error": str(error).splitlines()[0], "type": type(error).__name__,
            "seconds_until_error": time.monotonic() - began,
        }  # fmt: skip
    digest = hashlib.sha256(logits.numpy().tobytes()).hexdigest()
    return {"error": None, "resumed_at": resumed_at, "logits_sha256": digest}
