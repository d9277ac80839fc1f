"""The comparison with transformers' model folders, on one folder of many families.

`python tests/models` runs them all (under a minute) and writes docs/models.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = tomllib.loads((ROOT / "tests/models/folders.toml").read_text(encoding="utf-8"))
#: The first folder of every family but the complex one, and the common models.
FOLDERS = sorted(
    {entry["folders"][0] for name, entry in FAMILIES.items() if name not in ("special", "F")}
    | {"llama", "gemma3", "phi3", "gpt_oss", "deepseek_v3", "qwen2_vl", "cohere", "modernbert"}
)


def test_folders_of_many_families_give_the_bits_of_their_own_code():
    result = subprocess.run(
        [sys.executable, "tests/models", "--json", *FOLDERS],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    rows = result.stdout.strip().splitlines()
    assert len(rows) == len(FOLDERS)
    assert all('"status": "same bits"' in row for row in rows), result.stdout
