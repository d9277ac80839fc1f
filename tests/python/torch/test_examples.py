"""Every Python example runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES_DIR = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted(
    [*(EXAMPLES_DIR / "python").glob("*.py"), *(EXAMPLES_DIR / "pitfalls").glob("*.py")]
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_pitfall_has_its_demonstration():
    text = (EXAMPLES_DIR.parent / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    names = sorted(path.name for path in (EXAMPLES_DIR / "pitfalls").glob("*.py"))
    assert sorted(set(re.findall(r"examples/pitfalls/(\w+\.py)", text))) == names
