"""The rotation again, in NumPy and extended precision: nothing here comes from the package."""

from __future__ import annotations

import numpy as np
import torch

from tolerance import exact_bound


def channels(rotary_dim: int, pairing: str, offset: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """First and second channel of every pair."""
    i = np.arange(rotary_dim // 2)
    if pairing == "half":
        return offset + i, offset + i + rotary_dim // 2
    return offset + 2 * i, offset + 2 * i + 1


def frequencies(rotary_dim: int, base: float) -> np.ndarray:
    """The formula's values rounded once to double, which is how a plan defines them."""
    exponent = np.arange(0, rotary_dim, 2, dtype=np.longdouble) / np.longdouble(rotary_dim)
    return (np.longdouble(base) ** -exponent).astype(np.float64)


def cos_sin(positions, omega) -> tuple[np.ndarray, np.ndarray]:
    """(…, token, pair), float64, from angles in extended precision."""
    angle = np.asarray(positions).astype(np.longdouble)[..., None] * np.asarray(
        omega, np.longdouble
    )
    return np.cos(angle).astype(np.float64), np.sin(angle).astype(np.float64)


def assert_rotated(
    y: torch.Tensor, x: torch.Tensor, positions, omega, pairing="half", layout="bhtd", offset=0,
    inverse=False, amplitude=1.0,
) -> float:  # fmt: skip
    """Asserts that y is x rotated, within the tolerance; returns the worst error / bound."""
    rotary_dim = 2 * len(omega)
    first, second = channels(rotary_dim, pairing, offset)
    head_axis = -3 if layout == "bhtd" else -2
    c, s = (np.expand_dims(t, head_axis) for t in cos_sin(positions, omega))
    if inverse:
        s = -s
    xs = x.detach().cpu().double().numpy()
    ys = y.detach().cpu().double().numpy()
    worst = 0.0
    x0, x1 = xs[..., first], xs[..., second]
    for got, x_cos, x_sin, sign in ((ys[..., first], x0, x1, -1), (ys[..., second], x1, x0, 1)):
        exact = amplitude * (x_cos * c + sign * x_sin * s)
        bound = exact_bound(y.dtype, exact, x_cos, x_sin, c, s, amplitude)
        worst = max(worst, float((np.abs(got - exact) / bound).max(initial=0.0)))
    assert worst <= 1.0, f"error is {worst} of the bound"
    untouched = np.setdiff1d(np.arange(xs.shape[-1]), np.concatenate([first, second]))
    assert np.array_equal(xs[..., untouched], ys[..., untouched])
    return worst
