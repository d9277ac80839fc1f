"""Compiles a shim of this folder around other people's files, at benchmark time."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

from ..packages import Unavailable

_SHIMS = Path(__file__).parent / "shims"


def architecture(device: torch.device) -> str:
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


@functools.cache
def compiled(name: str, include: Path, arch: str) -> ctypes.CDLL:
    """shims/<name>/rotary.cu as a library, with ``include`` on the include path.

    Raises Unavailable where there is no nvcc, or it refuses the files.
    """
    compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if compiler is None:
        raise Unavailable(f"{name} is not installed, and its files need nvcc, which is missing")
    library = Path(tempfile.mkdtemp(prefix=f"ropewalk-{name}-")) / "librotary.so"
    shim = _SHIMS / name
    command = [compiler, "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-arch", arch,
               "-I", str(include), "-I", str(shim), str(shim / "rotary.cu"), "-o", str(library)]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "error" in line]
        raise Unavailable(f"its files do not compile: {(lines or ['nvcc failed'])[0]}")
    return ctypes.CDLL(str(library))


def pointer(x: torch.Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if x is None else x.data_ptr())


def stream() -> ctypes.c_void_p:
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
