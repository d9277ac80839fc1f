"""Wave quantisation: time against the number of blocks, around multiples of what runs at once."""

from __future__ import annotations

import torch

from ..bench.timing import time_calls

#: Blocks of 1024 threads: two of them fill a multiprocessor of 2048.
WARPS = 32
CHUNK = 1 << 16


def block_counts(at_once: int, waves: int = 4) -> list[int]:
    """Around every multiple of ``at_once``: one less, it, one more, and the middle between."""
    counts = set()
    for wave in range(1, waves + 1):
        full = wave * at_once
        counts |= {full - at_once // 2, full - 1, full, full + 1}
    return sorted(counts)


def _kernel():
    import triton
    import triton.language as tl

    @triton.jit
    def sums(x_ptr, y_ptr, CHUNK: tl.constexpr, STEP: tl.constexpr):
        block = tl.program_id(0)
        total = tl.zeros((STEP,), tl.float32)
        for start in range(0, CHUNK, STEP):
            total += tl.sin(tl.load(x_ptr + start + tl.arange(0, STEP)) + block)
        tl.store(y_ptr + block * STEP + tl.arange(0, STEP), total)

    return sums


def run(device: torch.device) -> dict[str, object]:
    properties = torch.cuda.get_device_properties(device)
    per_multiprocessor = properties.max_threads_per_multi_processor // (32 * WARPS)
    at_once = properties.multi_processor_count * per_multiprocessor
    sums, step = _kernel(), 32 * WARPS
    x = torch.zeros(CHUNK, device=device)
    rows = []
    for blocks in block_counts(at_once):
        y = torch.empty(blocks * step, device=device)

        def launch(x, y, blocks=blocks):
            sums[(blocks,)](x, y, CHUNK=CHUNK, STEP=step, num_warps=WARPS)

        timing = time_calls(launch, [(x, y)], 0.05)
        rows.append((blocks, blocks / at_once, timing.median_us, timing.median_us / blocks * 1e3))
    return {
        "columns": ["blocks", "waves", "µs", "ns a block"],
        "rows": rows,
        "explanation": (
            f"{properties.multi_processor_count} multiprocessors run {per_multiprocessor} blocks of "
            f"{step} threads each, {at_once} at once. One block more than a multiple of that starts "
            f"another wave, in which nearly all multiprocessors idle: the time steps up, and the "
            f"time a block is worst just behind the step. Small blocks and many waves make it small."
        ),
    }
