"""The C ABI through ctypes, against a float64 reference in numpy. Needs only the shared library."""

import ctypes
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tolerances import roundings, unit_input_bound

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "llama-3.1-8b.json"
FLOAT64, FLOAT32 = 1, 2


class View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("size", ctypes.c_int64 * 4),
        ("stride", ctypes.c_int64 * 4),
    ]


class Rotation(ctypes.Structure):
    _fields_ = [("in_", View), ("out", View)]


class Positions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("start", ctypes.c_int64),
        ("data", ctypes.c_void_p),
        ("axes", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("axis_stride", ctypes.c_int64),
        ("batch_stride", ctypes.c_int64),
        ("token_stride", ctypes.c_int64),
        ("cu_seqlens", ctypes.c_void_p),
        ("cu_type", ctypes.c_int32),
        ("has_padding", ctypes.c_int32),
        ("padding", ctypes.c_int64),
        ("sequences", ctypes.c_int64),
        ("batches", ctypes.c_int64),
    ]


def library_path() -> Path:
    return Path(os.environ.get("ROPEWALK_LIB", ROOT / "build" / "src" / "libropewalk.so"))


@pytest.fixture(scope="module")
def library():
    path = library_path()
    if not path.exists():
        pytest.skip(f"no shared library at {path}; set ROPEWALK_LIB")
    loaded = ctypes.CDLL(str(path))
    loaded.ropewalk_last_error.restype = ctypes.c_char_p
    loaded.ropewalk_plan_frequencies.restype = ctypes.POINTER(ctypes.c_double)
    loaded.ropewalk_plan_destroy.argtypes = [ctypes.c_void_p]
    loaded.ropewalk_plan_destroy.restype = None
    return loaded


@pytest.fixture
def plan(library):
    text = CONFIG.read_bytes()
    handle = ctypes.c_void_p()
    status = library.ropewalk_plan_from_config(
        text, ctypes.c_size_t(len(text)), None, ctypes.byref(handle)
    )
    assert status == 0, library.ropewalk_last_error()
    yield handle
    library.ropewalk_plan_destroy(handle)


def view_of(array: np.ndarray, dtype: int) -> View:
    """A view of an array of shape (batch, token, head, channel), of any strides."""
    strides = [s // array.itemsize for s in array.strides]
    return View(
        array.ctypes.data, dtype, (ctypes.c_int64 * 4)(*array.shape), (ctypes.c_int64 * 4)(*strides)
    )


def llama3_frequencies() -> np.ndarray:
    """The llama3 schedule in float64, written from its definition."""
    config = json.loads(CONFIG.read_text())
    scaling = config["rope_scaling"]
    dim = config["hidden_size"] // config["num_attention_heads"]
    frequencies = config["rope_theta"] ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return frequencies * (kept + (1 - kept) / scaling["factor"])


def rotated(x: np.ndarray, frequencies: np.ndarray, positions: np.ndarray) -> np.ndarray:
    angle = positions[None, :, None, None].astype(np.float64) * frequencies
    first, second = np.split(x.astype(np.float64), 2, axis=-1)
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def test_frequencies_follow_the_config(library, plan):
    count = ctypes.c_size_t()
    pointer = library.ropewalk_plan_frequencies(plan, ctypes.byref(count))
    frequencies = np.ctypeslib.as_array(pointer, (count.value,))
    # The plan holds the fp32 values of the model's own code, which rounds about this often.
    np.testing.assert_allclose(frequencies, llama3_frequencies(), rtol=roundings("float32", 6))


@pytest.mark.parametrize(("name", "dtype"), [("float32", FLOAT32), ("float64", FLOAT64)])
def test_rotates_strided_views_at_large_positions(library, plan, name, dtype):
    count = ctypes.c_size_t()
    pointer = library.ropewalk_plan_frequencies(plan, ctypes.byref(count))
    frequencies = np.ctypeslib.as_array(pointer, (count.value,)).copy()
    positions = np.array([0, 1, 4095, 131071, 2**20 - 3], dtype=np.int64)
    rng = np.random.default_rng(7)
    # q and k are slices of one packed buffer.
    packed = rng.uniform(-1, 1, (2, len(positions), 6, 128)).astype(name)
    source = packed.copy()
    views = (Rotation * 2)()
    for i, part in enumerate((packed[:, :, :4], packed[:, :, 4:5])):
        views[i].in_ = views[i].out = view_of(part, dtype)
    where = Positions(struct_size=ctypes.sizeof(Positions), kind=2, token_stride=1)
    where.data, where.count = positions.ctypes.data, len(positions)
    status = library.ropewalk_rotate(plan, views, ctypes.c_size_t(2), ctypes.byref(where), None)
    assert status == 0, library.ropewalk_last_error()

    expected = rotated(source[:, :, :5], frequencies, positions)
    error = np.abs(packed[:, :, :5].astype(np.float64) - expected).max()
    # The reference rounds the angle once, and each result moves by at most √2 times as much.
    of_reference = 2**0.5 * roundings("float64", 1) * positions.max()
    assert error <= unit_input_bound(name) + of_reference
    np.testing.assert_array_equal(packed[:, :, 5:], source[:, :, 5:])


def test_a_bad_config_is_an_error_with_a_sentence(library):
    handle = ctypes.c_void_p()
    text = b'{"model_type": "llama", "rope_theta": "many"}'
    status = library.ropewalk_plan_from_config(
        text, ctypes.c_size_t(len(text)), None, ctypes.byref(handle)
    )
    assert status == 2
    assert not handle.value
    assert library.ropewalk_last_error()


def test_the_library_exports_the_whole_header_and_nothing_foreign(library):
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", "-C", str(library_path())],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    header = (ROOT / "include" / "ropewalk" / "capi.h").read_text()
    declared = set(re.findall(r"\b(ropewalk_\w+)\(", header))
    exported = set(re.findall(r" T (ropewalk_\w+)$", listing, re.MULTILINE))
    assert exported == declared
    assert "nlohmann" not in listing
    assert "fmt::" not in listing
