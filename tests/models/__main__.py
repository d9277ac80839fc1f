"""python tests/models: compares ropewalk with every rotating model folder of transformers."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here is fetched

import torch
import transformers
from catalogue import folders
from page import page
from run import FAILED, Row, run_folder

_DOCS = Path(__file__).parents[2] / "docs" / "models.md"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tests/models", description=__doc__.split(": ")[1].capitalize(),
        epilog="Exit status: 0 all as expected, 1 a difference or a stale page, 2 wrong usage. "
        "Example: python tests/models llama gemma3 --json",
    )  # fmt: skip
    parser.add_argument("folder", nargs="*", help="folders to run (default: all)")
    parser.add_argument(
        "--seed", type=int, default=None, help="of the random tensors (default: fresh)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per folder")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write the page, e.g. docs/models.md"
    )
    parser.add_argument("--check", action="store_true", help=f"compare with {_DOCS.name} in docs/")
    return parser.parse_args()


def _progress(done: int, total: int, name: str) -> None:
    if sys.stderr.isatty():
        bar = "█" * (30 * done // total)
        print(
            f"\r{bar:30} {done}/{total} {name:30}",
            end="\n" if done == total else "",
            file=sys.stderr,
        )


def _failed(folder, error: Exception) -> Row:
    traceback.print_exception(error)
    return Row(folder, FAILED, (), 0, (0.0, 0.0), (f"{type(error).__name__}: {error}",))


def main() -> int:
    arguments = _arguments()
    chosen = folders()
    unknown = set(arguments.folder) - {folder.name for folder in chosen}
    if unknown:
        print(f"folder: unknown: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if arguments.folder:
        if arguments.write or arguments.check:
            print("--write, --check: the page has all folders; name none", file=sys.stderr)
            return 2
        chosen = [folder for folder in chosen if folder.name in arguments.folder]
    seed = torch.seed() % 2**31 if arguments.seed is None else arguments.seed
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    rows = []
    for n, folder in enumerate(chosen):
        try:
            rows.append(run_folder(folder, seed + n))
        except Exception as error:  # noqa: BLE001  one folder's failure is a row
            rows.append(_failed(folder, error))
        _progress(n + 1, len(chosen), folder.name)
    failures = [row for row in rows if row.status == FAILED]
    for row in rows if arguments.json else failures:
        fields = {"folder": row.folder.name, "status": row.status, "cases": row.cases,
                  "ulps": row.ulps, "notes": row.notes}  # fmt: skip
        print(json.dumps(fields))
    stale = False
    if arguments.write or arguments.check:
        text = page(rows, transformers.__version__, torch.__version__.split("+")[0])
        stale = arguments.check and text != _DOCS.read_text(encoding="utf-8")
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    if stale:
        print(f"{_DOCS}: differs from this run; python tests/models --write it", file=sys.stderr)
    if not arguments.json:
        print(f"seed {seed}: {len(rows)} folders, {len(failures)} failures", file=sys.stderr)
    return 1 if failures or stale else 0


if __name__ == "__main__":
    sys.exit(main())
