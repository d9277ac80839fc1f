"""Fixtures for the command line: the built program, and files made for a test."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_support import CLI, CONFIG, ROOT

Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def cli() -> Run:
    """Runs the built `ropewalk`; the tests fail, not skip, where it was not built."""
    assert CLI.exists(), f"{CLI} is not built (make build, or set ROPEWALK_CLI)"

    def run(*arguments: object, **options) -> subprocess.CompletedProcess:
        command = [str(CLI), *map(str, arguments)]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=300, **options
        )

    return run


@pytest.fixture(scope="session")
def shipped_configs() -> list[Path]:
    return sorted((ROOT / "configs").glob("*.json"))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path
