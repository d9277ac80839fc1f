"""Checkpoints of a KV cache in segments: each file holds the keys and values of the tokens since the
one before, so that saving costs the same however long the context is.

A segment is written under a temporary name, synchronised, and renamed, and carries what it belongs
to (the job: model and tokens; the plan's fingerprint), its first and last position, and a SHA-256 of its
data.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
from model import Cache
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

#: What a cache belongs to: names and values that a segment carries.
Job = dict[str, str]


class CheckpointError(RuntimeError):
    """A segment that is damaged or belongs to another job."""


def digest_of(tensors: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        data = tensors[name].contiguous().flatten().view(torch.uint8)
        digest.update(data.numpy())
    return digest.hexdigest()


def save_segment(folder: Path, cache: Cache, begin: int, end: int, job: Job) -> int:
    """Returns the bytes written."""
    part = {
        "keys": cache.keys[:, :, begin:end].cpu().contiguous(),
        "values": cache.values[:, :, begin:end].cpu().contiguous(),
    }
    path = folder / f"tokens-{begin:012d}.safetensors"
    temporary = path.with_suffix(".tmp")
    metadata = {
        **job, "begin": str(begin), "end": str(end), "sha256": digest_of(part),
    }  # fmt: skip
    save_file(part, temporary, metadata)
    for name in (temporary, folder):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        if name is temporary:
            temporary.rename(path)
    return path.stat().st_size


def load_segments(folder: Path, cache: Cache, job: Job) -> int:
    """Fills the cache from the segments that follow each other from token 0; returns where they
    end. CheckpointError for one that is not what it says, or not of this job."""
    while (path := folder / f"tokens-{cache.tokens:012d}.safetensors").exists():
        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata()
                part = {name: file.get_tensor(name) for name in ("keys", "values")}
        except (SafetensorError, KeyError, OSError) as error:
            raise CheckpointError(f"{path}: not a segment: {error}") from None
        for name, value in job.items():
            if metadata.get(name) != value:
                raise CheckpointError(f"{path}: belongs to another {name}")
        begin, end = int(metadata["begin"]), int(metadata["end"])
        if begin != cache.tokens or digest_of(part) != metadata["sha256"]:
            raise CheckpointError(f"{path}: its data does not match its checksum")
        for name, tensor in part.items():
            getattr(cache, name)[:, :, begin:end] = tensor
        cache.tokens = end
    return cache.tokens
