"""How models make positions: one small function per name of :attr:`Plan.position_recipe`.

Every function gives positions of shape (axes, tokens), the components in the order of the plan's
axes, as numpy arrays: int64, or float64 where positions are no integers (pass ``fractional=True``
to :func:`ropewalk.rotate` then). Rows count downwards, columns to the right, both from 0 unless
the name says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["RECIPES", "chunked_query_positions", "positions"]

Grid = tuple[int, int]


def _mesh(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    if rows < 1 or columns < 1:
        raise ValueError(f"grid: expected at least one row and column, got {rows} and {columns}")
    row, column = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return row, column


def token(tokens: int, start: int = 0) -> np.ndarray:
    """The index of the token in its sequence."""
    return np.arange(start, start + tokens, dtype=np.int64)[None]


def head(tokens: int, heads: int) -> np.ndarray:
    """The index of the head, the same for every token (XCodec2, NeuCodec): position h belongs to
    head h. Rotate with heads and tokens exchanged in the layout; ``tokens`` plays no part.
    """
    del tokens
    return np.arange(heads, dtype=np.int64)[None]


def multimodal(tokens: int, start: int = 0) -> np.ndarray:
    """Text tokens of a model with axes t, h, w: the index on each. Images and videos have
    :func:`multimodal_image`."""
    return np.repeat(token(tokens, start), 3, axis=0)


def multimodal_image(frames: int, rows: int, columns: int, start: int = 0) -> np.ndarray:
    """An image or video after spatial merging, in a sequence at ``start``: t, h, w count from
    there. The next token stands at the largest component plus one."""
    frame = np.repeat(np.arange(frames), rows * columns)
    row, column = (np.tile(part.ravel(), frames) for part in _mesh(rows, columns))
    return start + np.stack([frame, row, column]).astype(np.int64)


def multimodal_four(tokens: int, start: int = 0) -> np.ndarray:
    """Text tokens of HunYuan-VL, whose axes are the index, w, h and t."""
    return np.repeat(token(tokens, start), 4, axis=0)


def row_column(rows: int, columns: int) -> np.ndarray:
    """Two axes, row by row (NeoMME; also plain patches)."""
    return np.stack([part.ravel() for part in _mesh(rows, columns)]).astype(np.int64)


def patch(rows: int, columns: int) -> np.ndarray:
    """Patches row by row: row, column."""
    return row_column(rows, columns)


def patch_from_one(rows: int, columns: int) -> np.ndarray:
    """Row and column counted from 1 (EfficientLoFTR)."""
    return row_column(rows, columns) + 1


def patch_column_row(rows: int, columns: int) -> np.ndarray:
    """Column before row (SAM's memory attention, Gemma 4)."""
    return row_column(rows, columns)[::-1].copy()


def patch_column_row_from_one(rows: int, columns: int) -> np.ndarray:
    """Column and row counted from 1; the class token, last, at (0, 0) (Llama 4)."""
    patches = patch_column_row(rows, columns) + 1
    return np.concatenate([patches, np.zeros((2, 1), dtype=np.int64)], axis=1)


def patch_merged(rows: int, columns: int, merge: int = 2, frames: int = 1) -> np.ndarray:
    """Row and column, block by block of merge × merge patches that become one token (Qwen-VL)."""
    if rows % merge or columns % merge:
        raise ValueError(f"merge: expected a divisor of {rows} and {columns}, got {merge}")
    blocks = (rows // merge, merge, columns // merge, merge)
    parts = [p.reshape(blocks).transpose(0, 2, 1, 3).ravel() for p in _mesh(rows, columns)]
    return np.tile(np.stack(parts), frames).astype(np.int64)


def patch_merged_frames(rows: int, columns: int, merge: int = 2, frames: int = 1) -> np.ndarray:
    """Frame, row and column in the same order (MiniMax-M3-VL)."""
    frame = np.repeat(np.arange(frames), rows * columns)[None]
    return np.concatenate([frame, patch_merged(rows, columns, merge, frames)]).astype(np.int64)


def patch_frames(rows: int, columns: int, frames: int = 1) -> np.ndarray:
    """Frame, row and column, row by row (V-JEPA 2)."""
    return multimodal_image(frames, rows, columns)


def patch_normalised(rows: int, columns: int, dtype: type = np.float64) -> np.ndarray:
    """2π times the centre of the patch in coordinates from −1 to 1, row and column (DINOv3). The
    plan's frequencies are the model's, without the 2π. ``np.float32`` rounds every step, as the
    models' own code does: pass it for a parity arithmetic."""
    one, two = dtype(1), dtype(2)
    row, column = (part.ravel().astype(dtype) + dtype(0.5) for part in _mesh(rows, columns))
    centres = np.stack([two * (row / dtype(rows)) - one, two * (column / dtype(columns)) - one])
    return dtype(2.0 * math.pi) * centres


def atom(coordinates: Sequence[Sequence[float]], identifiers: Sequence[int]) -> np.ndarray:
    """x, y, z of every atom and the number of its residue (ESMFold2)."""
    xyz = np.asarray(coordinates, dtype=np.float64).reshape(-1, 3).T
    return np.concatenate([xyz, np.asarray(identifiers, dtype=np.float64)[None]])


def window_time(timestamps: np.ndarray, window_seconds: float, longest: float) -> np.ndarray:
    """Frames of audio windows, timestamps of shape (windows, frames): window and time in it, each
    times −2π times the second (MusicFlamingo). Shape (2, windows · frames)."""
    seconds = np.asarray(timestamps, dtype=np.float64)
    window = np.round(seconds[:, :1] / window_seconds) / longest
    time = np.arange(seconds.shape[1])[None] / longest * (2.0 * math.pi)
    angle = -2.0 * math.pi * seconds
    return np.stack([(window * angle).ravel(), (time * angle).ravel()])


def chunked_query_positions(tokens: np.ndarray, chunk: int, local: int) -> dict[str, np.ndarray]:
    """Dual-chunk attention (Qwen2.5-1M): the positions at which each query is rotated, by the
    chunk of the key it meets, and the keys' own. ``chunk`` and ``local`` are chunk_size and
    local_size; a query's five rotations are concatenated by the model.
    """
    if not 0 < local < chunk:
        raise ValueError(f"local: expected it between 0 and chunk {chunk}, got {local}")
    length = chunk - local
    rest = np.asarray(tokens, dtype=np.int64) % length
    return {
        "key": rest,
        "intra": rest,
        "successive": np.minimum(rest + length, chunk),
        "inter": np.full_like(rest, min(2 * length - 1, chunk)),
        "successive_unclamped": rest + length,
        "inter_unclamped": rest + chunk,
    }


#: The functions by name of the recipe.
RECIPES: dict[str, Callable[..., np.ndarray]] = {
    function.__name__: function
    for function in (
        token, head, multimodal, multimodal_four, row_column, patch, patch_from_one,
        patch_column_row, patch_column_row_from_one, patch_merged, patch_merged_frames,
        patch_frames, patch_normalised, atom, window_time,
    )
}  # fmt: skip


def positions(recipe: str, *arguments: object, **options: object) -> np.ndarray:
    """The positions of a recipe by name; KeyError lists the names there are."""
    if recipe not in RECIPES:
        raise KeyError(f"recipe: expected one of {', '.join(RECIPES)}, got {recipe!r}")
    return RECIPES[recipe](*arguments, **options)
