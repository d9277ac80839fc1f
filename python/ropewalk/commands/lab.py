"""``ropewalk lab``: experiments on this machine's GPU; l2-illusion also on its CPU."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys

#: Its cache shows the illusion on a CPU too.
ON_CPU = ("l2-illusion",)
LABS = {
    "l2-illusion": "how a benchmark shows more bandwidth than the memory has",
    "waves": "time against the number of blocks: the steps between waves",
    "launch": "what launching costs, against replaying a graph",
}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("ropewalk lab", description="Experiments on this machine.")
    kinds = p.add_subparsers(dest="lab", required=True, metavar="LAB")
    for name, text in LABS.items():
        added = kinds.add_parser(name, help=text, description=text)
        added.add_argument("--json", action="store_true", help="print JSON")
    return p


def to_text(result: dict) -> str:
    table = [list(result["columns"])]
    table += [[c if isinstance(c, str) else f"{c:.6g}" for c in row] for row in result["rows"]]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in table)
    return "\n".join(line.rstrip() for line in lines) + "\n\n" + result["explanation"]


def main(words: list[str]) -> int:
    arguments = parser().parse_args(words)
    import torch

    problem = None
    on_gpu = torch.cuda.is_available()
    if not on_gpu and arguments.lab not in ON_CPU:
        problem = "needs a CUDA device, and PyTorch finds none here"
    elif arguments.lab == "waves" and importlib.util.find_spec("triton") is None:
        problem = "needs triton, which is not installed"
    if problem:
        print(f"ropewalk: lab: {arguments.lab} {problem}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"ropewalk.labs.{arguments.lab.replace('-', '_')}")
    device = torch.device("cuda" if on_gpu else "cpu")
    result = module.run(device)
    if arguments.json:
        from ..bench.machine import facts

        print(json.dumps({"lab": arguments.lab, "machine": facts(device)} | result, indent=1))
    else:
        print(to_text(result))
    return 0
