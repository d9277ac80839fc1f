"""examples/rope_from_scratch.ipynb runs from its first cell to its last; its cells assert."""

from __future__ import annotations

import pytest

pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

from pathlib import Path

import ropewalk

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_notebook_runs(monkeypatch):
    pytest.importorskip("transformers")
    # Its kernel starts in the folder of the notebook.
    monkeypatch.setenv("PYTHONPATH", str(Path(ropewalk.__file__).absolute().parents[1]))
    notebook = nbformat.read(EXAMPLES / "rope_from_scratch.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}
    )
    client.execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    assert "the rotation back is the gradient" in printed
    assert "distance alone:" in printed
