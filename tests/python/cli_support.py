"""What the command line's tests share."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLI = Path(os.environ.get("ROPEWALK_CLI", ROOT / "build" / "cli" / "ropewalk")).absolute()

CONFIG = {
    "model_type": "llama",
    "hidden_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 3,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
}


def assert_one_sentence(result, status: int, *names: str) -> None:
    assert result.returncode == status, (
        result.returncode,
        result.stdout,
        result.stderr,
    )
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("ropewalk: "), result.stderr
    for name in names:
        assert name in lines[0], lines[0]
