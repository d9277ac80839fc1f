"""``python -m ropewalk`` and the installed ``ropewalk``: the bundled command line, and the commands
that live in Python."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

_BINARY = Path(__file__).parent / "bin" / "ropewalk"

#: Commands that live in Python: module ropewalk.commands.<name> with main(arguments) -> int.
_PYTHON_COMMANDS = ("plot", "profile", "lab")

#: Options of `bench` that compare with other implementations, which lives in Python too.
_PEER_OPTIONS = ("--against", "--fetch", "--list-peers")


def _asks_for_peers(arguments: list[str]) -> bool:
    return any(word.split("=")[0] in _PEER_OPTIONS for word in arguments)


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["bench"] and _asks_for_peers(arguments):
        from .bench.cli import main as bench

        return bench(arguments[1:])
    if arguments and arguments[0] in _PYTHON_COMMANDS:
        name = f"ropewalk.commands.{arguments[0].replace('-', '_')}"
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            print(f"ropewalk: {arguments[0]}: not part of this version", file=sys.stderr)
            return 2
        return importlib.import_module(name).main(arguments[1:])
    if not _BINARY.exists():
        print(f"ropewalk: the command line was not built into this package ({_BINARY})",
              file=sys.stderr)  # fmt: skip
        return 2
    os.execv(_BINARY, [str(_BINARY), *arguments])


if __name__ == "__main__":
    sys.exit(main())
