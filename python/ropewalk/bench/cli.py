"""``ropewalk bench --against …`` and ``ropewalk bench --fetch DIR``."""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path
from typing import NoReturn

import torch

from . import cases as axes
from . import report
from .field import FAILED, WRONG, Options, run
from .machine import facts
from .packages import Packages, fetch
from .peers import all_peers
from .peers.peer import Peer

EPILOG = """\
Each result is compared with the reference in float64 before it is timed; wrong ones are not timed.
The fixed cases are always run unless --no-fixed; the axes (lists a,b,c) add every combination.
Examples:
  ropewalk bench --against all --json
  ropewalk bench --against ropewalk,eager,torch-compile --no-fixed --tokens 1,4096
  ropewalk bench --fetch packages        then, offline: ropewalk bench --against all --packages packages
  ropewalk bench --against all --report my-card.csv
Exit status: 0 ok, 1 a result of Ropewalk's is wrong or failed, 2 wrong usage."""


class _WrongUsage(Exception):
    """One sentence about the arguments."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _WrongUsage(message)


def parser() -> argparse.ArgumentParser:
    p = _Parser(
        "ropewalk bench", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=EPILOG,
        description="Ropewalk beside other implementations: verified, then timed beside copying.",
    )  # fmt: skip
    p.add_argument("--against", metavar="LIST", help="peers, or all; see --list-peers")
    p.add_argument("--list-peers", action="store_true", help="name the peers and what they are")
    p.add_argument(
        "--fetch", type=Path, metavar="DIR", help="download with pip what --packages reads"
    )
    p.add_argument("--packages", type=Path, metavar="DIR", help="a folder made by --fetch")
    p.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one")
    p.add_argument("--no-fixed", action="store_true", help="leave the fixed cases out")
    p.add_argument("--verify-only", action="store_true",
                   help="tiny cases of every kind, verified and not timed")  # fmt: skip
    p.add_argument("--seconds", type=float, default=0.2, help="for each measurement, about")
    p.add_argument("--max-bytes", type=int, help="leave out cases that move more")
    for name, default in (("tokens", None), ("batch", 1), ("heads", 32), ("kv-heads", 8),
                          ("head-dim", 128)):  # fmt: skip
        p.add_argument(f"--{name}", type=_counts, default=[default], metavar="LIST")
    p.add_argument("--base", type=float, default=10000.0)
    for name, values in (("dtype", tuple(axes.DTYPES)), ("layout", axes.LAYOUTS),
                         ("pairing", axes.PAIRINGS), ("direction", axes.DIRECTIONS),
                         ("positions", axes.POSITIONS)):  # fmt: skip
        default = ["bfloat16"] if name == "dtype" else [values[0]]
        p.add_argument(f"--{name}", type=_names(values), default=default, metavar="LIST",
                       help=", ".join(values))  # fmt: skip
    shape = p.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true")
    shape.add_argument("--csv", action="store_true")
    shape.add_argument("--markdown", action="store_true")
    p.add_argument(
        "--output", type=Path, metavar="FILE", help=".json, .csv or .md, besides printing"
    )
    p.add_argument("--report", type=Path, metavar="FILE",
                   help="one CSV with the machine's facts in every line, to send")  # fmt: skip
    return p


def _counts(text: str) -> list[int]:
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers of at least 1, got {text!r}")
    return values


def _names(allowed: tuple[str, ...]):
    def parse(text: str) -> list[str]:
        values = text.split(",")
        for value in values:
            if value not in allowed:
                raise argparse.ArgumentTypeError(
                    f"expected some of {', '.join(allowed)}, got {value!r}"
                )
        return values

    return parse


def _fail(message: str) -> int:
    print(f"ropewalk: bench: {message}", file=sys.stderr)
    return 2


def chosen_cases(arguments: argparse.Namespace) -> list[axes.Case]:
    if arguments.verify_only:
        return axes.tiny_cases()
    found = [] if arguments.no_fixed else axes.fixed_cases()
    if arguments.tokens != [None]:
        names = ("tokens", "batch", "heads", "kv_heads", "head_dim", "dtype", "layout", "pairing",
                 "direction", "positions")  # fmt: skip
        asked = {name: getattr(arguments, name) for name in names}
        found += axes.product(asked | {"base": [arguments.base]})
    return list(dict.fromkeys(found))


def chosen_peers(text: str) -> list[Peer]:
    """Raises ValueError with the sentence for the user."""
    peers = all_peers()
    if text == "all":
        return peers
    names = {peer.name: peer for peer in peers}
    wanted = text.split(",")
    for name in wanted:
        if name not in names:
            raise ValueError(f"--against: expected all or some of {', '.join(names)}, got {name!r}")
    return [names[name] for name in wanted]


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:110]}", end="", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    try:
        arguments = parser().parse_args(words)
    except _WrongUsage as error:
        return _fail(str(error))
    if arguments.list_peers:
        for peer in all_peers():
            print(f"{peer.name:24} {peer.what}")
        return 0
    if arguments.fetch is not None:
        sources = (source for peer in all_peers() for source in peer.sources)
        return 1 if fetch(arguments.fetch, sources) else 0
    if arguments.packages is not None and not arguments.packages.is_dir():
        return _fail(f"--packages: {arguments.packages} is not a folder")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        return _fail("--device: there is no CUDA device")
    suffixes = {".json": report.to_json, ".csv": report.to_csv, ".md": report.to_markdown}
    if arguments.output is not None and arguments.output.suffix not in suffixes:
        return _fail(f"--output: expected a name in .json, .csv or .md, got {arguments.output}")
    try:
        peers = chosen_peers(arguments.against)
    except ValueError as error:
        return _fail(str(error))
    cases = chosen_cases(arguments)
    if not cases:
        return _fail("--no-fixed: then --tokens has to say what to rotate")
    device = torch.device(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    options = Options(device, Packages(arguments.packages), secrets.randbelow(1 << 31),
                      arguments.seconds, arguments.verify_only, arguments.max_bytes)  # fmt: skip
    machine = facts(device)
    rows = list(run(cases, peers, options, _progress))
    _progress("")
    asked = {"json": report.to_json, "csv": report.to_csv, "markdown": report.to_markdown}
    write = next((f for name, f in asked.items() if getattr(arguments, name)), report.to_text)
    print(write(rows, machine))
    if arguments.output is not None:
        text = suffixes[arguments.output.suffix](rows, machine)
        arguments.output.write_text(text, encoding="utf-8")
    if arguments.report is not None:
        arguments.report.write_text(report.to_report(rows, machine), encoding="utf-8")
    ours = [row for row in rows if row.peer.name.startswith("ropewalk")]
    return 1 if any(row.status in (WRONG, FAILED) for row in ours) else 0
