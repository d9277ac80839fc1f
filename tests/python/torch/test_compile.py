"""torch.compile, torch.export and AOTInductor."""

import os
import shutil
import subprocess
import sys

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

import ropewalk

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="Inductor needs a C++ compiler")


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def step(rotary, q, k, offset):
    q, k = rotary(q * 2, k * 2, offset=offset)
    return q + 1, k + 1


def data(tokens, device, grad=False):
    q = torch.randn(2, 4, tokens, 16, device=device, requires_grad=grad)
    k = torch.randn(2, 2, tokens, 16, device=device, requires_grad=grad)
    return q, k


# Bug22
@pytest.mark.parametrize("grad", [False, True])
def test_one_compilation_over_lengths_and_offsets(rotary, grad, device):
    counter = CompileCounterWithBackend("inductor")
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend=counter)
    for n in range(100, 111):
        q, k = data(n, device, grad)
        got, expected = compiled(rotary, q, k, n + 7), step(rotary, q, k, n + 7)
        assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])
        if grad:
            weights = torch.randn_like(q), torch.randn_like(k)
            gradients = [torch.autograd.grad(y, (q, k), weights) for y in (got, expected)]
            for g, e in zip(*gradients, strict=True):
                torch.testing.assert_close(g, e)
    assert counter.frame_count == 1


def test_default_settings_compile_once_more_at_the_first_change(rotary):
    """Lengths and offsets are static at first and dynamic from the second value on; then no more."""
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(step, fullgraph=True, backend=counter)
    for n in range(100, 111):
        compiled(rotary, *data(n, "cpu"), 3 * n)
    assert counter.frame_count <= 2
    counter.clear()
    torch._dynamo.reset()
    for n in range(100, 111):  # decoding: one token, the offset moves
        compiled(rotary, *data(1, "cpu"), n)
    assert counter.frame_count <= 2


def test_in_place(rotary, device):
    def mutate(q, k, offset):
        q, k = q * 2, k * 2
        rotary(q, k, offset=offset, inplace=True)
        return (q * k.mean()).square().mean()

    compiled = torch.compile(mutate, fullgraph=True)
    q, k = data(5, device)
    torch.testing.assert_close(compiled(q, k, 4), mutate(q, k, 4))
    q, k = data(5, device, grad=True)
    gradients = [torch.autograd.grad(f(q, k, 4), (q, k)) for f in (compiled, mutate)]
    for g, e in zip(*gradients, strict=True):
        torch.testing.assert_close(g, e)

    def mutate_inputs(q, k):
        rotary(q, k, inplace=True)

    q, k = data(5, device)
    expected = rotary(q, k)
    torch.compile(mutate_inputs, fullgraph=True)(q, k)
    assert torch.equal(q, expected[0]) and torch.equal(k, expected[1])


def test_positions_and_learned_tables(rotary, device):
    def loss(q, k, cos, sin, positions):
        q, k = ropewalk.rotate(q, k, plan=rotary.plan, cos=cos, sin=sin, positions=positions)
        return q.square().sum() + k.pow(3).sum()

    q, k = data(5, device, grad=True)
    cos, sin = (torch.rand(20, 8, device=device, requires_grad=True) for _ in "cs")
    positions = torch.randint(0, 20, (2, 5), device=device)
    inputs = (q, k, cos, sin)
    compiled = torch.compile(loss, fullgraph=True)
    for g, e in zip(
        torch.autograd.grad(compiled(*inputs, positions), inputs),
        torch.autograd.grad(loss(*inputs, positions), inputs),
        strict=True,
    ):
        torch.testing.assert_close(g, e)


@pytest.mark.parametrize("arguments", [{"offset": 3}, {"cu_seqlens": torch.tensor([0, 2, 5])}])
def test_other_arguments(rotary, arguments):
    x = torch.randn(1, 2, 5, 16)
    compiled = torch.compile(lambda x: rotary(x, **arguments), fullgraph=True)
    assert torch.equal(compiled(x), rotary(x, **arguments))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = ropewalk.RotaryEmbedding(16)

    def forward(self, q, k):
        return self.rotary(q, k)


def exported(tmp_path):
    tokens = torch.export.Dim("tokens", min=2, max=4096)
    shapes = {"q": {2: tokens}, "k": {2: tokens}}
    program = torch.export.export(Model(), data(10, "cpu"), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    return torch.export.load(tmp_path / "model.pt2")


# Bug22
def test_export_with_dynamic_length(tmp_path):
    program = exported(tmp_path)
    for tokens in (2, 33, 1000):
        q, k = data(tokens, "cpu")
        got, expected = program.module()(q, k), Model()(q, k)
        assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])


RUNNER = r"""
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>
#include <dlfcn.h>
#include <cstdio>
#include <fstream>

int main(int, char** argv) {
  if (dlopen(argv[1], RTLD_NOW) == nullptr) { std::puts(dlerror()); return 2; }
  torch::inductor::AOTIModelPackageLoader loader(argv[2]);
  const auto read = [](const char* path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    return torch::jit::pickle_load(bytes).toTensor();
  };
  const auto outputs = loader.run(std::vector<at::Tensor>{read(argv[3]), read(argv[4])});
  const bool same = at::equal(outputs.at(0), read(argv[5])) && at::equal(outputs.at(1), read(argv[6]));
  std::puts(same ? "same" : "different");
  return same ? 0 : 1;
}
"""


def test_aotinductor_package_runs_from_cpp(tmp_path):
    with torch.no_grad():
        package = torch._inductor.aoti_compile_and_package(
            exported(tmp_path), package_path=str(tmp_path / "package.pt2")
        )
    q, k = data(77, "cpu")
    names = []
    for i, tensor in enumerate((q, k, *Model()(q, k))):
        names.append(str(tmp_path / f"{i}.pt"))
        torch.save(tensor, names[-1])
    source, program = tmp_path / "runner.cpp", tmp_path / "runner"
    source.write_text(RUNNER)
    root = os.path.dirname(torch.__file__)
    subprocess.run(
        ["c++", "-std=c++20", "-O0", str(source), "-o", str(program), f"-isystem{root}/include",
         f"-isystem{root}/include/torch/csrc/api/include", f"-L{root}/lib", f"-Wl,-rpath,{root}/lib",
         "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10", "-ldl"], check=True,
    )  # fmt: skip
    library = os.path.join(os.path.dirname(ropewalk.__file__), "lib", "libropewalk_torch_cpu.so")
    result = subprocess.run(
        [program, library, package, *names], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr + sys.version


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_graphs(rotary):
    q, k = data(64, "cuda")
    positions = torch.arange(64, device="cuda")
    rotary(q, k, positions)  # the plan's device copy is made by the first call, outside the capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = rotary(q, k, positions)
    q.copy_(torch.randn_like(q))
    positions.add_(5)
    graph.replay()
    expected = rotary(q, k, positions)
    assert torch.equal(captured[0], expected[0]) and torch.equal(captured[1], expected[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_reduce_overhead_mode(rotary):
    compiled = torch.compile(step, fullgraph=True, mode="reduce-overhead")
    for n in (4, 4, 4, 5):
        q, k = data(64, "cuda")
        got, expected = compiled(rotary, q, k, n), step(rotary, q, k, n)
        assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])
    assert torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_first_use_of_a_plan_during_a_capture_raises():
    rotary = ropewalk.RotaryEmbedding(16, base=12345.0)
    q, _ = data(64, "cuda")
    with pytest.raises(RuntimeError, match="capture"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        rotary(q)
