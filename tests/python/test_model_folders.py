"""The comparison with transformers' model folders, on one folder of many families.

`python tests/models` runs them all (under a minute) and writes docs/models.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [
    "llama", "gemma3", "phi3", "gpt_oss", "deepseek_v3", "glm4", "gpt_neox", "gptj", "cohere",
    "qwen2_vl", "qwen3_vl", "ernie4_5_vl_moe", "modernbert", "sam3", "vjepa2", "gemma4",
]  # fmt: skip


def test_folders_of_many_families_give_the_bits_of_their_own_code():
    result = subprocess.run(
        [sys.executable, "tests/models", "--json", *FOLDERS],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    rows = result.stdout.strip().splitlines()
    assert len(rows) == len(FOLDERS)
    assert all('"status": "same bits"' in row for row in rows), result.stdout
