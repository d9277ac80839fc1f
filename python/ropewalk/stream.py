"""``stream_rotate``: safetensors to safetensors, larger than memory, resumable."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from .errors import RopewalkError
from .functional import rotate_
from .plans import Plan, _core

_INVALID, _BAD_POSITION, _IO, _OUT_OF_MEMORY = 1, 3, 4, 100

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_POSITION_TYPES = (torch.int32, torch.int64, torch.float32, torch.float64)


class StreamError(RopewalkError, OSError):
    """A file that cannot be read, written, trusted or gone on from."""


@dataclass(frozen=True)
class StreamProgress:
    """Bytes of tensor data, and the tensor being worked on. ``halved_to`` is not 0 where memory was
    short and pieces are of that many bytes at most from now on."""

    done: int
    total: int
    tensor: str
    halved_to: int


@dataclass(frozen=True)
class StreamResult:
    rotated: list[str]
    copied: list[str]
    bytes: int
    resumed_at: int
    chunk_bytes: int


class _Piece(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
        ("size", ctypes.c_int64 * 4),
        ("heads_outside", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("position_type", ctypes.c_int32),
        ("has_positions", ctypes.c_int32),
        ("start", ctypes.c_int64),
        ("positions", ctypes.c_void_p),
        ("axes", ctypes.c_int64),
        ("axis_stride", ctypes.c_int64),
        ("batch_stride", ctypes.c_int64),
    )


_PROGRESS = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64
)
_ROTATOR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Piece))


def _tensor_at(address: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    memory = (ctypes.c_byte * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(memory, dtype=dtype, count=count)


def _positions_of(piece: _Piece) -> torch.Tensor:
    batch, tokens = piece.size[0], piece.size[1]
    strides = (piece.axis_stride, piece.batch_stride, 1)
    last = (piece.axes - 1) * strides[0] + (batch - 1) * strides[1] + tokens
    flat = _tensor_at(piece.positions, last, _POSITION_TYPES[piece.position_type])
    return flat.as_strided((piece.axes, batch, tokens), strides)


def rotate_piece(piece: _Piece, plan: Plan, device: torch.device, inverse: bool) -> None:
    """Rotates a piece of host memory on a device."""
    batch, tokens, heads, channels = piece.size
    shape = (batch, heads, tokens, channels) if piece.heads_outside else tuple(piece.size)
    count = batch * tokens * heads * channels
    host = _tensor_at(piece.data, count, _DTYPES[piece.dtype]).view(shape)
    where = {"offset": piece.start}
    if piece.has_positions:
        positions = _positions_of(piece).to(device)
        where = {
            "positions": positions if piece.axes > 1 else positions[0],
            "fractional": positions.is_floating_point(),
        }
    x = host.to(device, copy=True)
    rotate_(
        x, plan=plan, layout="bhtd" if piece.heads_outside else "bthd", inverse=inverse, **where
    )
    host.copy_(x)


def load_plan(plan: Plan, device: torch.device) -> None:
    """Brings the plan and the kernels to a device while it has memory: without them no piece is small
    enough."""
    nothing = torch.empty(1, 0, 1, plan.head_dim, device=device)
    rotate_(nothing, plan=plan, layout="bthd")


def stream_rotate(
    plan: Plan,
    input: str | os.PathLike,
    output: str | os.PathLike,
    *,
    tensors: Sequence[str] = (),
    positions: int | str = 0,
    layout: str = "bthd",
    fractional: bool = False,
    inverse: bool = False,
    chunk_bytes: int = 64 << 20,
    resume: bool = False,
    table_file: str | os.PathLike | None = None,
    threads: int = 0,
    kernel: str = "",
    device: torch.device | str = "cpu",
    progress: Callable[[StreamProgress], None] | None = None,
) -> StreamResult:
    """Rotates tensors of one safetensors file into another, ``chunk_bytes`` in memory at a time.

    The same as the command ``ropewalk rotate``; the output's bytes are those of rotating every
    tensor at once.

    Args:
        tensors: names; none: all of 3 or 4 dimensions, a floating dtype and head_dim channels. The
            others are copied.
        positions: of the first token, or the name of a tensor of the file: (token),
            (batch, token) or (axes, batch, token).
        layout: ``bthd``, ``bhtd`` or ``thd``.
        resume: keep ``<output>.partial`` and ``<output>.journal`` when interrupted, and go on from
            them. A journal of another job, or a partial file that differs from its journal, raises
            :class:`StreamError` and stays as it is.
        table_file: for a parity arithmetic: read the table from this file, or make it and save it
            there.
        device: where pieces are rotated. Other than the CPU: exact arithmetic alone. Where the
            device's memory is short, pieces are halved, and ``progress`` is told.
        progress: called before each piece and after each tensor.
    """
    device = torch.device(device)
    if device.type != "cpu" and not plan.is_exact:
        raise ValueError(f"device: a parity arithmetic streams on the CPU alone, got {device}")
    options = {
        "tensors": list(tensors), "positions": str(positions), "layout": layout,
        "fractional": fractional, "inverse": inverse, "chunk_bytes": int(chunk_bytes),
        "resume": resume, "table_file": os.fspath(table_file or ""), "threads": threads,
        "kernel": kernel,
    }  # fmt: skip
    if device.type != "cpu":
        load_plan(plan, device)
    raised: list[BaseException] = []

    def guarded(body: Callable[[], None]) -> int:
        try:
            body()
        except torch.OutOfMemoryError:
            return 1
        except BaseException as error:  # noqa: BLE001 - raised again once the core has returned
            raised.append(error)
            return 2
        return 0

    def on_progress(done: int, total: int, tensor: bytes, halved_to: int) -> int:
        return guarded(
            lambda: progress(StreamProgress(done, total, tensor.decode(), halved_to))
        )  # fmt: skip

    def on_piece(piece) -> int:
        return guarded(lambda: rotate_piece(piece.contents, plan, device, inverse))

    call = _core().ropewalk_python_stream_rotate
    call.argtypes = [*[ctypes.c_char_p] * 4, _PROGRESS, _ROTATOR]
    status = call(
        plan.text.encode(), os.fsencode(input), os.fsencode(output), json.dumps(options).encode(),
        _PROGRESS() if progress is None else _PROGRESS(on_progress),
        _ROTATOR() if device.type == "cpu" else _ROTATOR(on_piece),
    )  # fmt: skip
    answer = _core().ropewalk_python_text().decode()
    if raised:
        raise raised[0]
    if status == 0:
        return StreamResult(**json.loads(answer))
    if status in (_INVALID, _BAD_POSITION):
        raise ValueError(answer)
    if status == _IO:
        raise StreamError(answer)
    if status == _OUT_OF_MEMORY:
        raise MemoryError(answer)
    raise RopewalkError(answer)
