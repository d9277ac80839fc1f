"""The same small model trained with each position encoding, evaluated at and beyond its length.

    python bench/lengths/encodings.py --jobs 12 --output encodings.json   # two minutes on an H200
    ropewalk plot lengths encodings.json --out encodings.png

The text is the Python files of the standard library, in order of their names; every tenth file is
held out. A value is the mean over the held-out texts of the bits that the bytes of a bucket of
positions cost, each predicted from all bytes before it in one pass over the longest length.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import sysconfig
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch
from tiny_model import ENCODINGS, TinyModel
from torch import Tensor
from torch.nn.functional import cross_entropy


def texts() -> tuple[Tensor, Tensor]:
    """(bytes to train on, bytes held out), uint8."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    files += sorted(Path(sysconfig.get_path("stdlib")).glob("[a-z]*/*.py"))
    files = [file for file in files if "packages" not in str(file)]
    train, held = bytearray(), bytearray()
    for i, file in enumerate(files):
        (held if i % 10 == 0 else train).extend(file.read_bytes())
    return tuple(torch.frombuffer(data, dtype=torch.uint8) for data in (train, held))


def batch(data: Tensor, count: int, length: int, generator: torch.Generator) -> Tensor:
    starts = torch.randint(len(data) - length, (count,), generator=generator)
    return torch.stack([data[s : s + length + 1] for s in starts.tolist()]).long()


def autocast(device: torch.device):
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def train(model: TinyModel, data: Tensor, options, seed: int) -> float:
    """The mean loss, in bits per byte, of the last tenth of the steps."""
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=options.rate, weight_decay=0.1, fused=device.type == "cuda"
    )
    warm = max(1, options.steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min((s + 1) / warm, 0.05 + 0.95 * math.cos(math.pi / 2 * s / options.steps) ** 2),
    )
    last: list[Tensor] = []
    for step in range(options.steps):
        tokens = batch(data, options.batch, options.length, generator).to(device)
        with autocast(device):
            logits = model(tokens[:, :-1])
        loss = cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step >= options.steps * 9 // 10:
            last.append(loss.detach())
    return float(torch.stack(last).mean()) / math.log(2)


def edges(length: int, longest: int) -> list[int]:
    """Ends of the buckets: a quarter and half of the trained length, then twice each time."""
    found = [max(1, length // 4)]
    while found[-1] < longest:
        found.append(min(2 * found[-1], longest))
    return found


@torch.no_grad()
def evaluate(model: TinyModel, held: Tensor, options) -> list[dict[str, float]]:
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(1)
    longest = options.length * options.times
    total = torch.zeros(longest, dtype=torch.float64, device=device)
    for _ in range(options.texts):
        tokens = batch(held, 1, longest, generator).to(device)
        with autocast(device):
            logits = model(tokens[:, :-1])
        total += cross_entropy(logits[0].float(), tokens[0, 1:], reduction="none").double()
    bits = total / options.texts / math.log(2)
    found, start = [], 0
    for end in edges(options.length, longest):
        found.append({"end": end, "bits_per_byte": float(bits[start:end].mean())})
        start = end
    return found


def one(options, encoding: str, seed: int) -> dict:
    """Trains one model and evaluates it."""
    torch.set_num_threads(max(1, torch.get_num_threads() // options.jobs))
    torch.manual_seed(seed)
    data, held = texts()
    longest = options.length * options.times
    model = TinyModel(encoding, options.width, options.heads, options.layers, longest)
    model.to(options.device)
    start = time.perf_counter()
    loss = train(model, data, options, seed)
    buckets = evaluate(model, held, options)
    return {"seed": seed, "train_bits_per_byte": loss, "buckets": buckets,
            "seconds": round(time.perf_counter() - start, 1)}  # fmt: skip


def run(options, say=print) -> dict:
    """Every encoding with every seed, ``--jobs`` of them at once, each in a process of its own."""
    data, held = texts()
    result = {
        "command": "python bench/lengths/encodings.py " + " ".join(sys.argv[1:]),
        "trained": options.length, "train_bytes": len(data), "held_out_bytes": len(held),
        "python": sys.version.split()[0], "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else "CPU",
        "options": {k: v for k, v in vars(options).items() if k != "output"},
        "encodings": {encoding: [] for encoding in options.encodings},
    }  # fmt: skip
    runs = [(encoding, seed) for encoding in options.encodings for seed in range(options.seeds)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        waiting = {pool.submit(one, options, *run): run for run in runs}
        for done in as_completed(waiting):
            encoding, seed = waiting[done]
            curve = done.result()
            result["encodings"][encoding].append(curve)
            say(f"{encoding}, seed {seed}: {curve['train_bits_per_byte']:.3f} bits, then "
                f"{', '.join(format(b['bits_per_byte'], '.2f') for b in curve['buckets'])} "
                f"({curve['seconds']:.0f} s)")  # fmt: skip
    for curves in result["encodings"].values():
        curves.sort(key=lambda curve: curve["seed"])
    return result


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--output", type=Path, required=True, metavar="FILE")
    p.add_argument("--encodings", nargs="+", choices=ENCODINGS, default=list(ENCODINGS))
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value, text in (
        ("steps", 2000, ""), ("batch", 64, "texts a step"), ("length", 256, "trained length"),
        ("times", 16, "evaluate to so many times the length"), ("width", 256, ""), ("heads", 4, ""),
        ("layers", 4, ""), ("seeds", 2, ""), ("texts", 64, "held-out texts"),
        ("jobs", 1, "models at once"),
    ):  # fmt: skip
        p.add_argument(f"--{name}", type=int, default=value, help=text)
    p.add_argument("--rate", type=float, default=1e-3)
    return p


def main() -> int:
    options = parser().parse_args()
    result = run(options, lambda text: print(text, file=sys.stderr, flush=True))
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
