"""The libraries use nothing of PyTorch but its stable ABI, and of that nothing newer than 2.10."""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import ropewalk

LIBRARIES = sorted((Path(ropewalk.__file__).parent / "lib").glob("libropewalk_torch_*.so"))


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_only_the_stable_abi(library):
    audit = shutil.which("torch-abi-audit", path=sysconfig.get_path("scripts"))
    if audit is None:
        pytest.skip("torch-abi-audit is not installed (requirements-dev.txt)")
    run = subprocess.run([audit, "--json", library], capture_output=True, text=True, check=True)
    (report,) = json.loads(run.stdout)["bundled_libs"]
    torch_abi = report["torch"]
    assert torch_abi["uses_torch"] and torch_abi["stable"], torch_abi["unstable_symbols"]
    assert torch_abi["min_torch_version"] == "2.10.0"
    # It is declared for CUDA builds of PyTorch alone, which the audit's list does not cover.
    known_here = {"aoti_torch_get_current_cuda_stream"}
    assert set(torch_abi["unknown_shim_symbols"]) <= known_here
    # No Python symbol either: one wheel serves every Python.
    assert not report["cpython"]["intent"] and not report["cpython"]["violations"]
