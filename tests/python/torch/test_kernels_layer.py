"""The rotary_pos_emb layer, loaded from a local path by the `kernels` package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

kernels = pytest.importorskip("kernels", reason="the kernels package is not installed")

ROOT = Path(__file__).resolve().parents[3]

# In a process of its own: kernelize changes transformers' functions for all models of the process.
PROGRAM = """
import pathlib
import sys

import torch
import hf_models
from kernels import LocalLayerRepository, Mode, kernelize, use_kernel_mapping

layer = LocalLayerRepository(pathlib.Path(sys.argv[1]), layer_name="apply_rotary_transformers")
ids = torch.randint(3, 99, (2, 21))


def counted(model):
    with torch.no_grad(), torch.profiler.profile() as profile:
        logits = model(ids).logits
    return logits, sum(event.name == "ropewalk::_rotate" for event in profile.events())


cases = [
    (model_type, dtype) for model_type in ("llama", "cohere", "glm4", "gpt_neox", "gpt_oss")
    for dtype in (torch.float32, torch.bfloat16)
]
before = {case: counted(hf_models.decoder(*case)) for case in cases}
for case in cases:
    model = hf_models.decoder(*case)
    with use_kernel_mapping({"rotary_pos_emb": {"cpu": layer}}):
        kernelize(model, mode=Mode.INFERENCE, device="cpu")
    counted(model)  # the first call finds out what the model's function does
    after, operators = counted(model)
    logits, none = before[case]
    print(*case, none, operators, torch.equal(logits, after))
"""


def test_models_take_the_layer_and_keep_their_bits(tmp_path):
    assemble = [sys.executable, ROOT / "integrations/kernels/assemble.py", "--target", tmp_path]
    variants = subprocess.run(assemble, capture_output=True, text=True, check=True).stdout.split()
    assert [Path(variant).name for variant in variants] == ["torch-cpu", "torch-cuda"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=False,
        env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 10
    for model_type, dtype, *found in lines:
        assert found == ["0", "2", "True"], (model_type, dtype)
