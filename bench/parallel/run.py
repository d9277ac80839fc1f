"""Checks and times rotation over several processes: heads split (tensor parallelism), tokens split
(context parallelism), a CUDA graph with its collectives, a rank that dies
and a long context that goes on from its last finished chunk.

    python bench/parallel/run.py --backend gloo --world 2            # CPU, what the tests run
    python bench/parallel/run.py --backend nccl                      # 1, 2, 4, 8 … GPUs: all there are
    python bench/parallel/run.py --backend nccl --world 8 --output bench/results/parallel.json

Prints and writes JSON: the machine, the command, every check and every time. Exit status 0 where all
checks passed, 1 where one did not, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch
import torch.multiprocessing as mp

sys.path.insert(0, str(Path(__file__).parent))

from checks import run_checks
from failure import prefill_in_chunks
from setting import start_rank
from timing import run_timings


def worker(
    rank: int, world: int, options: argparse.Namespace, what: str, folder: str, job: tuple = ()
) -> None:
    result = Path(folder) / f"{what}-{rank}.json"
    try:
        place = start_rank(
            rank, world, options.backend, f"{folder}/{what}", options.timeout,
            blocking=what == "failure",
        )  # fmt: skip
        if what == "checks":
            answer = run_checks(place, options.dtypes)
        elif what == "timings":
            answer = run_timings(place, options.tokens)
        else:
            answer = prefill_in_chunks(place, *job)
    except Exception:  # noqa: BLE001 - whatever it is, the parent reports it
        answer = {"error": traceback.format_exc()}
    result.write_text(json.dumps(answer))
    if what == "failure":
        os._exit(0)  # a group with a dead rank may never be taken down
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def launch(world: int, options: argparse.Namespace, what: str, *job) -> list:
    """Starts the ranks, waits, and returns what each wrote; None for a rank that died."""
    # A forked CUDA context does not work; a fork saves the CPU runs the import of torch.
    context = mp.get_context("spawn" if options.backend == "nccl" else "fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(
                target=worker, args=(rank, world, options, what, folder, job), daemon=True
            )
            for rank in range(world)
        ]
        for process in ranks:
            process.start()
        deadline = time.monotonic() + options.limit
        for process in ranks:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
        files = [Path(folder) / f"{what}-{rank}.json" for rank in range(world)]
        return [json.loads(f.read_text()) if f.exists() else None for f in files]


def checks_and_timings(world: int, options: argparse.Namespace) -> dict:
    result = {"world": world}
    for what in ("checks", "timings"):
        if what not in options.what:
            continue
        answers = launch(world, options, what)
        broken = [
            {"rank": r, "error": (a or {"error": "no answer"})["error"]}
            for r, a in enumerate(answers) if not isinstance(a, list)
        ]  # fmt: skip
        result[what] = broken or answers[0]
        passed = not broken and all(item.get("passed", True) for item in answers[0])
        result[f"{what}_passed"] = passed
    if "failure" in options.what and world > 1:
        result["failure"], result["failure_passed"] = failure_and_resumption(world, options)
    return result


def failure_and_resumption(world: int, options: argparse.Namespace) -> tuple[dict, bool]:
    """A prefill whose last rank is killed, the same one again, and one that nothing interrupts."""
    with tempfile.TemporaryDirectory() as folder:
        *others, killed = launch(world, options, "failure", f"{folder}/killed", True)
        resumed = launch(world, options, "failure", f"{folder}/killed", False)
        whole = launch(world, options, "failure", f"{folder}/whole", False)
    ends = [bool(o) and o["error"] is not None for o in others]
    within = [bool(o) and o.get("seconds_until_error", 1e9) <= options.timeout + 5 for o in others]
    finished = [bool(a) and a["error"] is None for a in (*resumed, *whole)]
    same = all(finished) and len({a["logits_sha256"] for a in (*resumed, *whole)}) == 1
    report = {
        "killed_rank": world - 1, "others": others, "resumed": resumed, "uninterrupted": whole,
        "same_logits_bits": same,
    }  # fmt: skip
    goes_on = same and all(a["resumed_at"] == resumed[0]["resumed_at"] > 0 for a in resumed)
    return report, killed is None and all(ends) and all(within) and goes_on


def machine(options: argparse.Namespace) -> dict:
    facts = {"cpu": platform.processor() or platform.machine(), "torch": torch.__version__}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            facts["cpu"] = line.split(": ", 1)[1]
            break
    if options.backend == "nccl":
        facts["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        facts["cuda"] = torch.version.cuda
        facts["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return facts


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo")
    parser.add_argument("--world", type=int, nargs="*", default=None,
                        help="process counts; default: 2 (gloo), or 1, 2, 4 … all GPUs (nccl)")  # fmt: skip
    parser.add_argument(
        "--dtypes", nargs="*", default=None, choices=["float64", "float32", "bfloat16"]
    )
    parser.add_argument("--what", nargs="*", default=["checks", "timings", "failure"],
                        choices=["checks", "timings", "failure"])  # fmt: skip
    parser.add_argument(
        "--tokens", type=int, nargs="*", default=None, help="lengths that are timed"
    )
    parser.add_argument("--timeout", type=float, default=20.0, help="of a collective, in seconds")
    parser.add_argument("--limit", type=float, default=240.0, help="of each part, in seconds")
    parser.add_argument("--output", type=Path, help="also write the JSON to this file")
    options = parser.parse_args()
    gpus = torch.cuda.device_count() if options.backend == "nccl" else 0
    if options.backend == "nccl" and gpus == 0:
        parser.error("--backend: nccl needs a GPU, and PyTorch sees none")
    if options.world is None:
        options.world = [n for n in (1, 2, 4, 8, 16) if n <= gpus] or [2]
    if any(n < 1 or (gpus and n > gpus) for n in options.world):
        parser.error(f"--world: expected 1 to {gpus or 'any number'}, got {options.world}")
    if options.dtypes is None:
        options.dtypes = ["float64", "float32", "bfloat16"] if not gpus else ["float32", "bfloat16"]
    if options.tokens is None:
        options.tokens = [8192, 32768, 131072] if gpus else [256]
    return options


def main() -> int:
    options = parse()
    results = {
        "command": "python " + " ".join(sys.argv),
        "date": datetime.date.today().isoformat(),
        "machine": machine(options),
        "backend": options.backend,
        "results": [checks_and_timings(world, options) for world in options.world],
    }
    text = json.dumps(results, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")
    passed = all(
        value for result in results["results"] for key, value in result.items()
        if key.endswith("_passed")
    )  # fmt: skip
    return 0 if passed else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
