"""Lays the kernel repository out as the ``kernels`` package loads it: one folder per backend.

python integrations/kernels/assemble.py  # writes rotary/build/torch-cpu and rotary/build/torch-cuda
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import tomllib

_REPOSITORY = Path(__file__).parent / "rotary"


def assemble(target: Path) -> list[Path]:
    """Writes the variants below ``target``; returns their folders."""
    general = tomllib.loads((_REPOSITORY / "build.toml").read_text(encoding="utf-8"))["general"]
    package = general["name"].replace("-", "_")
    variants = []
    for backend in general["backends"]:
        variant = target / "build" / f"torch-{backend}"
        shutil.rmtree(variant, ignore_errors=True)
        shutil.copytree(_REPOSITORY / "torch-ext" / package, variant)
        metadata = {
            "id": f"_{package}_{backend}_{general['version']}", "name": general["name"],
            "version": general["version"], "license": general["license"], "python-depends": [],
            "backend": {"type": backend},
        }  # fmt: skip
        (variant / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
        variants.append(variant)
    return variants


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--target", type=Path, default=_REPOSITORY, help="default: %(default)s")
    for variant in assemble(parser.parse_args().target):
        print(variant)
    return 0


if __name__ == "__main__":
    sys.exit(main())
