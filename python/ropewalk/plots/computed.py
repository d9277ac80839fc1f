"""Figures that are computed: angle error, frequencies, schedules, decay of the attention score."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import PlanError
from ..functional import rotate
from ..plans import Plan, config_text, make_plan, plan_from_config


def cos_sin_of(plan: Plan, positions: Tensor, dtype: torch.dtype) -> Tensor:
    """(positions, 2 · pairs): what a rotation makes of pairs (1, 0), cosines first, then sines."""
    unit = torch.zeros(1, 1, len(positions), plan.head_dim, dtype=dtype)
    unit[..., : plan.pairs] = 1
    return rotate(unit, plan=plan, positions=positions)[0, 0]


def angle_errors(head_dim: int, base: float, positions: Tensor) -> dict[str, Tensor]:
    """Largest error of a cosine or sine over all pairs, at each position, of three arithmetics."""
    pair = torch.arange(0, head_dim, 2, dtype=torch.float64)
    angles = torch.outer(positions.double(), base ** (-pair / head_dim))
    exact = torch.cat([angles.cos(), angles.sin()], dim=-1)
    frequencies = 1.0 / base ** (pair.float() / head_dim)
    recipe = torch.outer(positions.float(), frequencies)
    table = torch.cat([recipe.cos(), recipe.sin()], dim=-1)
    plan = make_plan(head_dim, base)
    found = {
        "exact (Ropewalk, float32)": cos_sin_of(plan, positions, torch.float32),
        "float32 recipe": table,
        "float32 recipe, bfloat16 table": table.bfloat16(),
        "angles in bfloat16": torch.outer(positions.bfloat16(), frequencies.bfloat16()),
    }
    wrong = found["angles in bfloat16"].float()
    found["angles in bfloat16"] = torch.cat([wrong.cos(), wrong.sin()], dim=-1)
    return {name: (got.double() - exact).abs().amax(-1) for name, got in found.items()}


def plot_error(axes, head_dim: int = 128, base: float = 10000.0) -> None:
    spread = torch.logspace(0, 20, 400, base=2, dtype=torch.float64).long().unique()
    marks = {"exact (Ropewalk, float32)": "-", "float32 recipe": "-"}
    for name, error in angle_errors(head_dim, base, spread).items():
        axes.loglog(spread, error, marks.get(name, "--"), label=name, linewidth=1.4)
    axes.set(xlabel="position", ylabel="largest |error| of a cosine or sine",
             title=f"Error against position (head_dim {head_dim}, base {base:g})")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(0.0, 0.42))


def plot_spectrum(axes, config: object, layer_type: str | None = None) -> None:
    plan = plan_from_config(config, layer_type=layer_type)
    turns = [2 * math.pi / f for f in plan.frequencies if f > 0]
    axes.semilogy(range(len(turns)), turns, "o-", markersize=3)
    text = json.loads(config_text(config))
    trained = text.get("max_position_embeddings")
    if isinstance(trained, int):
        axes.axhline(trained, color="black", linestyle=":", linewidth=1)
        axes.annotate("max_position_embeddings", (0, trained), textcoords="offset points",
                      xytext=(0, 4))  # fmt: skip
    axes.set(xlabel="pair", ylabel="tokens for one turn (wavelength)",
             title=f"Frequencies of {text.get('model_type', 'the config')}: "
                   f"{plan.pairs} pairs, amplitude {plan.amplitude:g}")  # fmt: skip
    axes.grid(alpha=0.3)


def schedules(config: object, factor: float = 8.0) -> dict[str, Plan]:
    """The config's own schedule, and its base and sizes under the others."""
    text = json.loads(config_text(config))
    own = plan_from_config(text)
    trained = text.get("max_position_embeddings", 4096)
    original = {"original_max_position_embeddings": trained}
    rules = {
        "default": None,
        "linear (position interpolation)": {"rope_type": "linear", "factor": factor},
        "dynamic NTK": {"rope_type": "dynamic", "factor": factor},
        "YaRN": {"rope_type": "yarn", "factor": factor} | original,
        "llama3": {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0,
                   "high_freq_factor": 4.0} | original,
    }  # fmt: skip
    plain = {
        "model_type": "llama", "num_attention_heads": 1, "hidden_size": own.rotary_dim,
        "head_dim": own.rotary_dim, "rope_theta": text.get("rope_theta", 10000.0),
        "max_position_embeddings": trained,
    }  # fmt: skip
    long = int(trained * factor)
    found = {
        name: plan_from_config(plain | {"rope_scaling": rule}, length=long)
        for name, rule in rules.items()
    }
    try:
        kind = (text.get("rope_scaling") or {}).get("rope_type", "default")
        found[f"the config's own ({kind})"] = plan_from_config(text, length=long)
    except PlanError:
        found["the config's own"] = own
    return found


def plot_scaling(axes, config: object, factor: float = 8.0) -> None:
    found = schedules(config, factor)
    default = found["default"].frequencies
    styles = ["-", "-", "-", "-", "-", "--"]
    for style, (name, plan) in zip(styles, found.items(), strict=False):
        ratio = [f / d for f, d in zip(plan.frequencies, default, strict=True)]
        label = name if plan.amplitude == 1 else f"{name}, amplitude {plan.amplitude:.3f}"
        axes.semilogy(range(len(ratio)), ratio, style, label=label, linewidth=1.4)
    axes.set(xlabel="pair (0 turns fastest)", ylabel="frequency ÷ default frequency",
             title=f"Schedules at {factor:g} × the trained length")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()


def score_decay(head_dim: int, base: float, distances: Tensor) -> Tensor:
    """⟨R(d) q, k⟩ ÷ ⟨q, k⟩ of q = k = (1, 1, …) at each distance, in float64."""
    q = torch.ones(1, 1, len(distances), head_dim, dtype=torch.float64)
    turned = rotate(q, plan=make_plan(head_dim, base), positions=distances)
    return turned.sum(-1)[0, 0] / head_dim


def plot_decay(axes, head_dim: int = 128, bases: Sequence[float] = (1e4, 5e5, 1e6)) -> None:
    distances = torch.logspace(0, 17, 2000, base=2, dtype=torch.float64).long().unique()
    for base in bases:
        score = score_decay(head_dim, base, distances)
        axes.semilogx(distances, score, label=f"base {base:g}", linewidth=1.2)
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set(xlabel="distance between query and key (tokens)",
             ylabel="score ÷ score at distance 0",
             title=f"Decay of the attention score of equal vectors (head_dim {head_dim})")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()
