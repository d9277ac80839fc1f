"""Writes tests/data/formula_frequencies.json: every schedule's formula in 80-digit arithmetic.

The right values of the C++ schedules' `frequencies`, as correctly rounded doubles in hexadecimal,
from the formulas of the papers alone. Run it again after a formula changes:

    python tests/python/make_formula_frequencies.py
"""

import json
from pathlib import Path

from mpmath import ceil, floor, log, mp, mpf, pi

mp.dps = 80

CASES = [
    {"type": "default", "head_dim": 128, "base": 10000.0},
    {"type": "default", "head_dim": 80, "base": 1e6},
    {"type": "default", "head_dim": 128, "rotary_dim": 64, "base": 500000.0},
    {"type": "linear", "head_dim": 128, "base": 10000.0, "factor": 3.0},
    {
        "type": "dynamic",
        "head_dim": 128,
        "base": 10000.0,
        "factor": 2.0,
        "length": 131072,
        "max_positions": 65536,
    },
    {"type": "dynamic", "head_dim": 128, "base": 10000.0, "alpha": 1000.0},
    {"type": "yarn", "head_dim": 128, "base": 1e6, "factor": 4.0, "original": 32768},
    {
        "type": "yarn",
        "head_dim": 64,
        "base": 150000.0,
        "factor": 32.0,
        "original": 4096,
        "truncate": False,
    },
    {
        "type": "llama3",
        "head_dim": 128,
        "base": 500000.0,
        "factor": 8.0,
        "low": 1.0,
        "high": 4.0,
        "original": 8192,
    },
    {"type": "proportional", "head_dim": 512, "base": 1e6, "partial_factor": 0.25},
    {"type": "axial", "head_dim": 80, "base": 10000.0},
]


def plain(base, pairs, denominator):
    return [mpf(base) ** (-mpf(2 * i) / denominator) for i in range(pairs)]


def yarn(case, dim):
    base, factor, original = (mpf(case[k]) for k in ("base", "factor", "original"))

    def correction(rotations):
        return dim * log(original / (rotations * 2 * pi)) / (2 * log(base))

    low, high = correction(32), correction(1)
    if case.get("truncate", True):
        low, high = floor(low), ceil(high)
    low, high = mpf(float(max(low, 0))), mpf(float(min(high, dim - 1)))
    result = []
    for i, omega in enumerate(plain(base, dim // 2, dim)):
        ramp = min(max((i - low) / (high - low), mpf(0)), mpf(1))
        result.append(omega / factor * ramp + omega * (1 - ramp))
    return result


def llama3(case, dim):
    factor, low, high, original = (mpf(case[k]) for k in ("factor", "low", "high", "original"))
    result = []
    for omega in plain(case["base"], dim // 2, dim):
        wavelength = 2 * pi / omega
        if wavelength < original / high:
            result.append(omega)
        elif wavelength > original / low:
            result.append(omega / factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            result.append((1 - smooth) * omega / factor + smooth * omega)
    return result


def frequencies(case):
    head_dim = case["head_dim"]
    dim = case.get("rotary_dim", head_dim)
    base = mpf(case["base"])
    kind = case["type"]
    if kind == "yarn":
        return yarn(case, dim)
    if kind == "llama3":
        return llama3(case, dim)
    if kind == "axial":
        return plain(base, dim // 4, dim // 2) * 2
    if kind == "proportional":
        live = int(case["partial_factor"] * head_dim // 2)
        return plain(base, live, head_dim) + [mpf(0)] * (head_dim // 2 - live)
    if kind == "dynamic":
        if "alpha" in case:
            stretch = mpf(case["alpha"])
        else:
            factor = mpf(case["factor"])
            stretch = factor * case["length"] / case["max_positions"] - (factor - 1)
        base *= stretch ** (mpf(dim) / (dim - 2))
    factor = mpf(case["factor"]) if kind == "linear" else mpf(1)
    return [omega / factor for omega in plain(base, dim // 2, dim)]


def main():
    out = [{**case, "frequencies": [float(w).hex() for w in frequencies(case)]} for case in CASES]
    path = Path(__file__).parent.parent / "data" / "formula_frequencies.json"
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n")


if __name__ == "__main__":
    main()
