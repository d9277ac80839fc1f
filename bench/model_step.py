"""What Ropewalk is worth to a user: steps of a Llama-shaped transformers model (random weights) with
transformers' own rotation and with Ropewalk's, time and peak memory.

    python bench/model_step.py --output model_step.json                     # Llama-3.1-8B's widths, 4 layers
    python bench/model_step.py --device cpu --small --output model_step.json

A training step is forward, loss and backward; prefill a forward of one text without gradients, its
logits for the last token; decode one token behind a cache of --cached tokens. Peak memory is what PyTorch's allocator had at most on the
GPU, above what stood before the step; on the CPU it is not measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import ropewalk
from ropewalk.bench.machine import facts

ROTATIONS = ("transformers", "parity", "exact")
#: Llama-3.1-8B's widths, and small ones for a CPU.
LARGE = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 128256}  # fmt: skip
SMALL = {"hidden_size": 256, "intermediate_size": 896, "num_attention_heads": 8,
         "num_key_value_heads": 2, "vocab_size": 1024}  # fmt: skip


def build(options, rotation: str):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        **(SMALL if options.small else LARGE), num_hidden_layers=options.layers,
        max_position_embeddings=131072, attn_implementation="sdpa",
        rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                         "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192},
    )  # fmt: skip
    torch.manual_seed(0)
    dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    with torch.device(options.device):
        model = LlamaForCausalLM(config).to(dtype)
    if rotation != "transformers":
        ropewalk.patch(model, arithmetic=rotation)
    return model


def steps(model, options) -> dict[str, Callable[[], object]]:
    """Each step by its name; the cache of decode is made at once."""
    batch, tokens = options.batch, options.tokens
    vocabulary = model.config.vocab_size
    ids = torch.randint(vocabulary, (batch, tokens), device=options.device)
    one = ids[:1, :1]
    at = torch.tensor([[options.cached]], device=options.device)
    with torch.no_grad():
        cached = torch.randint(vocabulary, (1, options.cached), device=options.device)
        cache = model.model(cached, use_cache=True).past_key_values

    def train() -> None:
        model(ids, labels=ids, use_cache=False).loss.backward()
        model.zero_grad(set_to_none=True)

    @torch.no_grad()
    def prefill() -> object:
        return model(ids[:1], use_cache=False, logits_to_keep=1).logits

    @torch.no_grad()
    def decode() -> object:
        logits = model(one, past_key_values=cache, position_ids=at, logits_to_keep=1).logits
        cache.crop(-1)  # the next call is the same token again
        return logits

    return {"train": train, "prefill": prefill, "decode": decode}


def measure(step: Callable[[], object], device: str, seconds: float) -> dict[str, float | int]:
    """Median milliseconds with the distance of the quartiles, and peak bytes above the start."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(2):
        step()
    wait()
    before = 0
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 5 or (time.perf_counter() < end and len(samples) < 200):
        start = time.perf_counter()
        step()
        wait()
        samples.append((time.perf_counter() - start) * 1e3)
    first, middle, third = statistics.quantiles(samples, n=4, method="inclusive")
    found: dict[str, float | int] = {
        "ms": middle, "spread": (third - first) / middle, "samples": len(samples),
    }  # fmt: skip
    if device == "cuda":
        found["peak_bytes"] = torch.cuda.max_memory_allocated() - before
    return found


def run(options, say=print) -> dict:
    rows = []
    for rotation in options.rotations:
        model = build(options, rotation)
        for compiled in [False, True] if options.compile else [False]:
            if compiled:
                torch._dynamo.reset()
                model.forward = torch.compile(model.forward)
            for name, step in steps(model, options).items():
                row = {"rotation": rotation, "compiled": compiled, "step": name}
                try:
                    row |= measure(step, options.device, options.seconds)
                except Exception as error:  # noqa: BLE001 - what compilation raises is a result
                    row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
                rows.append(row)
                time_ms = row.get("ms")
                say(f"{rotation}{' compiled' if compiled else ''} {name}: "
                    f"{row['failed'] if time_ms is None else f'{time_ms:.2f} ms'}")  # fmt: skip
        del model
    shape = {k: v for k, v in vars(options).items() if k not in ("output", "rotations")}
    command = "python bench/model_step.py " + " ".join(sys.argv[1:])
    machine = facts(torch.device(options.device))
    import transformers

    machine["transformers"] = transformers.__version__
    return {"command": command, "machine": machine, "options": shape, "rows": rows}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description="Steps of a Llama-shaped model, with either rotation.")
    p.add_argument("--output", type=Path, required=True, metavar="FILE")
    p.add_argument("--device", choices=("cpu", "cuda"),
                   default="cuda" if torch.cuda.is_available() else "cpu")  # fmt: skip
    p.add_argument("--small", action="store_true", help="small widths, for a CPU")
    p.add_argument("--compile", action="store_true", help="also with torch.compile")
    p.add_argument("--rotations", nargs="+", choices=ROTATIONS, default=list(ROTATIONS))
    for name, value in (("layers", 4), ("batch", 4), ("tokens", 8192), ("cached", 4096)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--seconds", type=float, default=3.0, help="for each measurement, about")
    return p


def main() -> int:
    options = parser().parse_args()
    result = run(options, lambda text: print(text, file=sys.stderr, flush=True))
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
