"""Folders whose rotation is not a module that takes position_ids and a function of q, k, cos and sin:
their own code, called as their layers call it, and ours."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator

import numpy as np
import torch
from cases import BATCH, FAR, HEADS, TOKENS, Sides
from catalogue import Folder
from torch import Tensor
from upstream import config_class, modeling

import ropewalk
from ropewalk import Plan, position_recipes
from ropewalk.hf.rules import ApplyRule, apply
from ropewalk.hf.special import apply_unequal


class OwnCase:
    """A case from two functions: one that makes the plan, one that runs both sides."""

    def __init__(self, label: str, plan: Callable[[str], Plan], run: Callable) -> None:
        self.label, self.plan, self._run = label, plan, run

    @torch.no_grad()
    def run(self, dtype: torch.dtype, generator: torch.Generator) -> Sides:
        return self._run(self.plan("parity"), dtype, generator)


def _from_config(config: object, **options) -> Callable[[str], Plan]:
    return lambda arithmetic: ropewalk.plan_from_config(config, arithmetic=arithmetic, **options)


def _heads(dtype: torch.dtype, generator: torch.Generator, *shape: int) -> tuple[Tensor, Tensor]:
    q, k = (torch.randn(*shape, generator=generator).to(dtype) for _ in "qk")
    return q, k


def _gptj(folder: Folder, module, config_name: str) -> Iterator[OwnCase]:
    config = getattr(module, config_name)(**folder.settings)

    def run(plan: Plan, dtype, generator) -> Sides:
        table = module.create_sinusoidal_positions(config.n_positions, config.rotary_dim)
        positions = torch.randint(0, config.n_positions, (BATCH, TOKENS), generator=generator)
        q, k = _heads(dtype, generator, BATCH, TOKENS, HEADS, plan.head_dim)
        sin, cos = table[positions].to(dtype).split(config.rotary_dim // 2, dim=-1)
        whole = []
        for x in (q, k):
            y = x.clone()
            window = x[..., : config.rotary_dim]
            y[..., : config.rotary_dim] = module.apply_rotary_pos_emb(window, sin, cos)
            whole.append(y)
        return Sides(
            tuple(whole), ropewalk.rotate(q, k, plan=plan, positions=positions, layout="bthd")
        )

    yield OwnCase("create_sinusoidal_positions", _from_config(config), run)


def _roformer(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.RoFormerConfig(**folder.settings)
    tokens, dim = 64, config.hidden_size // config.num_attention_heads

    def run(plan: Plan, dtype, generator) -> Sides:
        embedding = module.RoFormerSinusoidalPositionalEmbedding(tokens, dim)
        table = embedding.create_weight()[None, None].to(dtype)
        q, k = _heads(dtype, generator, BATCH, HEADS, tokens, dim)
        theirs = module.RoFormerSelfAttention.apply_rotary_position_embeddings(table, q, k)
        # The table is made in float64 and rounded twice: to float32, then to the dtype of the data.
        formula = ropewalk.plan_from_config(config, frequencies="formula")
        rotary = ropewalk.RotaryEmbedding.from_plan(formula)
        cos, sin = (t.to(dtype) for t in rotary.cos_sin(tokens))
        return Sides(theirs, ropewalk.rotate(q, k, plan=plan, cos=cos, sin=sin))

    yield OwnCase("RoFormerSinusoidalPositionalEmbedding", _from_config(config), run)


def _conformer(folder: Folder, module, prefix: str) -> Iterator[OwnCase]:
    config = getattr(module, f"{folder.configs['']}")(**folder.settings)
    rotary = getattr(module, f"{prefix}RotaryPositionalEmbedding")(config)
    attention = getattr(module, f"{prefix}SelfAttention")

    def run(plan: Plan, dtype, generator) -> Sides:
        hidden = torch.randn(BATCH, TOKENS, HEADS * plan.head_dim, generator=generator).to(dtype)
        rotary.cached_sequence_length = None  # it keeps the table of the last dtype
        layer = types.SimpleNamespace(num_heads=HEADS, head_size=plan.head_dim)
        theirs = attention._apply_rotary_embedding(layer, hidden, rotary(hidden))
        x = hidden.view(BATCH, TOKENS, HEADS, plan.head_dim)
        return Sides((theirs,), (ropewalk.rotate(x, plan=plan, layout="bthd").view_as(hidden),))

    yield OwnCase(f"{prefix}RotaryPositionalEmbedding", _from_config(config), run)


def _clvp(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.ClvpEncoderConfig(**folder.settings)
    rotary = module.ClvpRotaryPositionalEmbedding(config)

    def run(plan: Plan, dtype, generator) -> Sides:
        angles = rotary(torch.zeros(1, TOKENS, 1))
        positions = torch.randint(0, TOKENS, (BATCH, TOKENS), generator=generator)
        q, k = _heads(dtype, generator, BATCH, HEADS, TOKENS, plan.head_dim)
        v = torch.randn(q.shape, generator=generator).to(dtype)
        width = angles.size(-1)
        cos, sin = angles.cos().squeeze(0), angles.sin().squeeze(0)
        cut = [x[..., :width] for x in (q, k, v)]
        theirs = [
            torch.cat([y, x[..., width:]], -1)
            for y, x in zip(module.apply_rotary_pos_emb(*cut, cos, sin, positions), (q, k, v), strict=True)
        ]  # fmt: skip
        # Its angles stay float32, and so does all that they touch.
        ours = [ropewalk.rotate(x.float(), plan=plan, positions=positions) for x in (q, k, v)]
        return Sides(tuple(y.float() for y in theirs), tuple(ours))

    yield OwnCase("ClvpRotaryPositionalEmbedding", _from_config(config), run)


def _lightglue(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.LightGlueConfig(**folder.settings)
    encoder = module.LightGluePositionalEncoder(config)
    dim = config.descriptor_dim // config.num_attention_heads
    geometry = ropewalk.make_plan(dim, pairing="interleaved")

    def run(plan: Plan, dtype, generator) -> Sides:
        (cos, sin), angles = encoder(torch.rand(BATCH, TOKENS, 2, generator=generator), True)
        q, k = _heads(dtype, generator, BATCH, HEADS, TOKENS, dim)
        theirs = module.apply_rotary_pos_emb(q, k, cos.to(dtype), sin.to(dtype))
        tables = [t.to(dtype) for t in (angles.cos(), angles.sin())]
        plan = Plan(plan.text[:-1] + ',"arithmetic":"parity_p1"}')
        return Sides(theirs, ropewalk.rotate(q, k, plan=plan, cos=tables[0], sin=tables[1]))

    yield OwnCase("LightGluePositionalEncoder", lambda arithmetic: geometry, run)


def _vjepa2(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.VJEPA2Config(**folder.settings)
    dim = config.hidden_size // config.num_attention_heads
    width = 2 * (dim // 3 // 2)
    layer = types.SimpleNamespace(d_dim=width, h_dim=width, w_dim=width, attention_head_size=dim)

    def run(plan: Plan, dtype, generator) -> Sides:
        x = torch.randn(BATCH, HEADS, TOKENS, dim, generator=generator).to(dtype)
        positions = torch.randint(0, 64, (3, BATCH, HEADS, TOKENS), generator=generator)
        theirs = module.VJEPA2RopeAttention.apply_rotary_embeddings(layer, x, tuple(positions))
        pairs = torch.arange(width // 2, dtype=dtype) / (width / 2.0)
        frequencies = 1.0 / 10000**pairs
        y = x.clone()
        rule = ApplyRule("interleaved", "copies", "each")
        for block in range(3):
            angles = positions[block][..., None] * frequencies
            tables = (torch.cat([t, t], -1) for t in (angles.cos(), angles.sin()))
            cut = slice(block * width, (block + 1) * width)
            y[..., cut] = apply_unequal(rule, x[..., cut], None, *tables)[0]
        return Sides((theirs,), (y,))

    geometry = ropewalk.make_plan(dim, rotary_dim=3 * width, pairing="interleaved")
    yield OwnCase("VJEPA2RopeAttention", lambda arithmetic: geometry, run)


def _esmfold2(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.EsmFold2Config(**folder.settings)
    rotary = module.EsmFold2RotaryEmbedding(config.atom_encoder)

    def run(plan: Plan, dtype, generator) -> Sides:
        place = torch.randn(BATCH, TOKENS, 3, generator=generator) * 30
        molecule = torch.randint(0, 64, (BATCH, TOKENS), generator=generator)
        q, k = _heads(dtype, generator, BATCH, HEADS, TOKENS, plan.head_dim)
        theirs = module.apply_rotary_pos_emb(q, k, *rotary(place, molecule, dtype))
        positions = torch.cat([place.movedim(-1, 0), molecule[None].float()])
        ours = ropewalk.rotate(q, k, plan=plan, positions=positions, fractional=True)
        return Sides(theirs, ours)

    yield OwnCase("EsmFold2RotaryEmbedding", _from_config(config, part="atom_encoder"), run)


def _hunyuan_vl(folder: Folder, module) -> Iterator[OwnCase]:
    """The channels of a pair turn by different angles: each comes from the plan that is right for it."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 16, 16, 16]}
    config = module.HunYuanVLTextConfig(rope_parameters=rope)
    rotary = module.HunYuanVLRotaryEmbedding(config)

    def plans(arithmetic: str, channels: str = "first") -> Plan:
        if arithmetic == "exact":  # follows the checkpoint: one plan
            channels = "both"
        return ropewalk.plan_from_config(config, arithmetic=arithmetic, channels=channels)

    def run(plan: Plan, dtype, generator) -> Sides:
        positions = torch.randint(0, 4096, (plan.axes, BATCH, TOKENS), generator=generator)
        q, k = _heads(dtype, generator, BATCH, HEADS, TOKENS, plan.head_dim)
        tables = rotary(torch.zeros(1, dtype=dtype), positions)
        theirs = module.apply_rotary_pos_emb(q, k, *tables)
        first, second = (
            ropewalk.rotate(q, k, plan=one, positions=positions)
            for one in (plan, plans("parity", "second"))
        )
        half = plan.head_dim // 2
        ours = [torch.cat([a[..., :half], b[..., half:]], -1) for a, b in zip(first, second, strict=True)]  # fmt: skip
        return Sides(theirs, tuple(ours))

    yield OwnCase("HunYuanVLRotaryEmbedding", plans, run)


def _omni_dit(folder: Folder, module) -> Iterator[OwnCase]:
    """Head 0 alone rotates, read interleaved and written half."""
    config = module.Qwen2_5OmniDiTConfig(**folder.settings)
    rotary = module.Qwen2_5OmniDiTRotaryEmbedding(config)

    def run(plan: Plan, dtype, generator) -> Sides:
        positions = torch.randint(0, FAR, (BATCH, TOKENS), generator=generator)
        q, k = _heads(dtype, generator, BATCH, HEADS, TOKENS, plan.head_dim)
        tables = rotary(torch.zeros(1, dtype=dtype), positions)
        cut = [module.deinterleave_head_dim(x[:, :1]) for x in (q, k)]
        theirs, ours = ([q.clone(), k.clone()] for _ in range(2))
        turned = module.apply_rotary_pos_emb(*cut, *tables)
        mine = ropewalk.rotate(q[:, :1], k[:, :1], plan=plan, positions=positions)
        for n in range(2):
            theirs[n][:, :1], ours[n][:, :1] = turned[n], mine[n]
        return Sides(tuple(theirs), tuple(ours))

    yield OwnCase("Qwen2_5OmniDiTRotaryEmbedding", _from_config(config), run)


def _musicflamingo(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.MusicFlamingoConfig(**folder.settings)
    rotary = module.MusicFlamingoRotaryEmbedding(config)

    def run(plan: Plan, dtype, generator) -> Sides:
        seconds = torch.rand(BATCH, TOKENS, generator=generator) * 60
        cos, sin = rotary(seconds, TOKENS)
        width = config.audio_config.hidden_size
        x = torch.randn(BATCH, TOKENS, width, generator=generator).to(dtype)
        theirs = module.apply_rotary_time_emb(x, cos, sin)
        rule = ApplyRule("interleaved", "pairs", "double")
        columns = (t[..., ::2].unsqueeze(1) for t in (cos, sin))
        return Sides((theirs,), (apply(rule, x.unsqueeze(1), None, *columns)[0].squeeze(1),))

    width = 2 * rotary.inv_freq.numel() * 2
    geometry = ropewalk.make_plan(
        config.audio_config.hidden_size, rotary_dim=width, pairing="interleaved"
    )
    yield OwnCase("MusicFlamingoRotaryEmbedding", lambda arithmetic: geometry, run)


def _image(folder: Folder, module, rotary_name: str) -> Iterator[OwnCase]:
    """Vision transformers with coordinates of patch centres, scaled to −1 … 1."""
    cls = getattr(module, rotary_name)
    config = config_class(cls, module, folder)(**folder.settings)
    rotary = cls(config).eval()  # training shifts and stretches coordinates at random

    def run(plan: Plan, dtype, generator) -> Sides:
        rows, columns, size = 4, 6, config.patch_size
        tables = rotary(torch.zeros(1, 3, rows * size, columns * size, dtype=dtype))
        q, k = _heads(dtype, generator, BATCH, HEADS, rows * columns, plan.head_dim)
        theirs = module.apply_rotary_pos_emb(q, k, *tables)
        places = position_recipes.positions(plan.position_recipe, rows, columns, np.float32)
        positions = torch.from_numpy(places).unsqueeze(1).expand(-1, BATCH, -1)
        ours = ropewalk.rotate(q, k, plan=plan, positions=positions.contiguous(), fractional=True)
        return Sides(theirs, ours)

    yield OwnCase(rotary_name, _from_config(config), run)


def _loftr(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.EfficientLoFTRConfig(**folder.settings)
    rotary = module.EfficientLoFTRRotaryEmbedding(config)

    def run(plan: Plan, dtype, generator) -> Sides:
        rows, columns = 4, 6
        stride, kernel = config.q_aggregation_stride, config.q_aggregation_kernel_size
        height, width = ((n - 1) * stride + kernel for n in (rows, columns))
        tables = (t.flatten(1, 2) for t in rotary(torch.zeros(1, 1, height, width, dtype=dtype)))
        q, k = _heads(dtype, generator, BATCH, rows * columns, 1, config.hidden_size)
        theirs = module.apply_rotary_pos_emb(q, k, *tables, unsqueeze_dim=2)
        axes = [torch.arange(1, n + 1) for n in (rows, columns)]
        grid = torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)
        positions = grid.unsqueeze(1).expand(-1, BATCH, -1).contiguous()
        return Sides(theirs, ropewalk.rotate(q, k, plan=plan, positions=positions, layout="bthd"))

    yield OwnCase("EfficientLoFTRRotaryEmbedding", _from_config(config), run)


def _llama4_vision(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.Llama4VisionConfig(**folder.settings)
    rotary = module.Llama4VisionRotaryEmbedding(config)

    def run(plan: Plan, dtype, generator) -> Sides:
        side = config.image_size // config.patch_size
        tokens = side * side + 1
        q, k = _heads(dtype, generator, 1, tokens, HEADS, plan.head_dim)
        # Where PyTorch cuts a row between threads, it multiplies the ends with other roundings.
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        theirs = module.vision_apply_rotary_emb(q, k, rotary(q))
        torch.set_num_threads(threads)
        patch = torch.arange(side * side)
        grid = torch.stack([patch % side, patch // side]) + 1
        positions = torch.cat([grid, torch.zeros(2, 1, dtype=torch.long)], 1)  # the class token
        return Sides(
            theirs,
            ropewalk.rotate(q, k, plan=plan, positions=positions.unsqueeze(1), layout="bthd"),
        )

    yield OwnCase("Llama4VisionRotaryEmbedding", _from_config(config), run)


def _gemma4_vision(folder: Folder, module) -> Iterator[OwnCase]:
    config = module.Gemma4VisionConfig(**folder.settings)
    rotary = module.Gemma4VisionRotaryEmbedding(config)

    def run(plan: Plan, dtype, generator) -> Sides:
        grid = torch.randint(0, 64, (BATCH, TOKENS, 2), generator=generator)
        tables = rotary(torch.zeros(1, dtype=dtype), grid)
        q, k = _heads(dtype, generator, BATCH, TOKENS, HEADS, plan.head_dim)
        theirs = tuple(module.apply_multidimensional_rope(x, *tables, grid) for x in (q, k))
        positions = grid.movedim(-1, 0).contiguous()
        return Sides(theirs, ropewalk.rotate(q, k, plan=plan, positions=positions, layout="bthd"))

    yield OwnCase("Gemma4VisionRotaryEmbedding", _from_config(config), run)


_FOLDERS: dict[str, Callable[[Folder, object], Iterator[OwnCase]]] = {
    "gptj": lambda folder, module: _gptj(folder, module, "GPTJConfig"),
    "codegen": lambda folder, module: _gptj(folder, module, "CodeGenConfig"),
    "roformer": _roformer,
    "wav2vec2_conformer": lambda f, m: _conformer(f, m, "Wav2Vec2Conformer"),
    "wav2vec2_bert": lambda f, m: _conformer(f, m, "Wav2Vec2Bert"),
    "seamless_m4t": lambda f, m: _conformer(f, m, "SeamlessM4TConformer"),
    "clvp": _clvp,
    "lightglue": _lightglue,
    "vjepa2": _vjepa2,
    "esmfold2": _esmfold2,
    "musicflamingo": _musicflamingo,
    "dinov3_vit": lambda f, m: _image(f, m, "DINOv3ViTRopePositionEmbedding"),
    "eomt_dinov3": lambda f, m: _image(f, m, "EomtDinov3RotaryEmbedding"),
    "sapiens2": lambda f, m: _image(f, m, "Sapiens2RopePositionEmbedding"),
    "efficientloftr": _loftr,
    "hunyuan_vl": _hunyuan_vl,
    "qwen2_5_omni": _omni_dit,
    "llama4": _llama4_vision,
    "gemma4": _gemma4_vision,
}


def own_cases(folder: Folder) -> Iterator[OwnCase]:
    """The cases of a folder that has code of its own; none for the others."""
    build = _FOLDERS.get(folder.name)
    if build is None:
        return
    for module in modeling(folder.name):
        yield from build(folder, module)
