"""A Llama in plain PyTorch, rotated by Ropewalk, with a KV cache that is filled chunk by chunk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

import ropewalk

TINY = {
    "model_type": "llama", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "rope_theta": 500000.0,
}  # fmt: skip

# Llama-3.1-8B's widths and rotation, four layers.
LLAMA_WIDE = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}  # fmt: skip


@dataclass
class Cache:
    """Rotated keys, and values, of the tokens so far: (layer, head, token, channel)."""

    keys: Tensor
    values: Tensor
    tokens: int = 0


class Llama(nn.Module):
    """``plan``: how q and k are rotated; None: as ``config`` says."""

    def __init__(
        self, config: dict, weights: dict[str, Tensor], plan: ropewalk.Plan | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.weights = weights
        plan = plan or ropewalk.plan_from_config(config)
        self.rotary = ropewalk.RotaryEmbedding.from_plan(plan, layout="bhtd")
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = self.rotary.plan.head_dim
        self.layers, self.eps = config["num_hidden_layers"], config["rms_norm_eps"]

    def cache(self, tokens: int) -> Cache:
        like = self.weights["model.norm.weight"]
        shape = (self.layers, self.kv_heads, tokens, self.head_dim)
        return Cache(like.new_zeros(shape), like.new_zeros(shape))

    @torch.inference_mode()
    def prefill(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Takes the next tokens into the cache; the logits of the last one."""
        begin, end = cache.tokens, cache.tokens + tokens.numel()
        x = embedding(tokens, self.weights["model.embed_tokens.weight"])
        for layer in range(self.layers):
            x = self._layer(x, layer, cache, begin, end)
        cache.tokens = end
        last = rms_norm(x[-1], x.shape[-1:], self.weights["model.norm.weight"], self.eps)
        head = self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"])
        return linear(last, head).float()

    def _layer(self, x: Tensor, layer: int, cache: Cache, begin: int, end: int) -> Tensor:
        w = {
            name: self.weights[f"model.layers.{layer}.{name}.weight"]
            for name in (
                "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj",
                "mlp.down_proj",
            )
        }  # fmt: skip
        h = rms_norm(x, x.shape[-1:], w["input_layernorm"], self.eps)
        q, k, v = (
            linear(h, w[f"self_attn.{n}_proj"]).unflatten(-1, (-1, self.head_dim)).transpose(0, 1)
            for n in "qkv"
        )
        q, k = self.rotary(q[None], k[None], offset=begin)
        cache.keys[layer, :, begin:end] = k[0]
        cache.values[layer, :, begin:end] = v
        attended = scaled_dot_product_attention(
            q, cache.keys[None, layer, :, :end], cache.values[None, layer, :, :end],
            attn_mask=causal_lower_right(end - begin, end) if begin else None,
            is_causal=begin == 0, enable_gqa=True,
        )  # fmt: skip
        attended = attended[0].transpose(0, 1).flatten(1)
        x = x + self.summed(linear(attended, w["self_attn.o_proj"]))
        h = rms_norm(x, x.shape[-1:], w["post_attention_layernorm"], self.eps)
        gate = silu(linear(h, w["mlp.gate_proj"]))
        return x + self.summed(linear(gate * linear(h, w["mlp.up_proj"]), w["mlp.down_proj"]))

    def summed(self, part: Tensor) -> Tensor:
        """What the model adds: the sum over all who hold a part of the weights; here one holds all."""
        return part


def random_model(config: dict, device: str, dtype: torch.dtype, seed: int = 0) -> Llama:
    generator = torch.Generator(device).manual_seed(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    width = hidden // config["num_attention_heads"]
    kv = config["num_key_value_heads"] * width

    def weight(rows: int, columns: int) -> Tensor:
        w = torch.empty(rows, columns, dtype=dtype, device=device)
        return w.normal_(0.0, columns**-0.5, generator=generator)

    norm = torch.ones(hidden, dtype=dtype, device=device)
    weights = {
        "model.embed_tokens.weight": weight(config["vocab_size"], hidden),
        "model.norm.weight": norm,
    }
    for layer in range(config["num_hidden_layers"]):
        for name, w in {
            "input_layernorm": norm, "post_attention_layernorm": norm,
            "self_attn.q_proj": weight(hidden, hidden), "self_attn.k_proj": weight(kv, hidden),
            "self_attn.v_proj": weight(kv, hidden), "self_attn.o_proj": weight(hidden, hidden),
            "mlp.gate_proj": weight(inner, hidden), "mlp.up_proj": weight(inner, hidden),
            "mlp.down_proj": weight(hidden, inner),
        }.items():  # fmt: skip
            weights[f"model.layers.{layer}.{name}.weight"] = w
    return Llama(config, weights)


def model_from_folder(folder: Path, device: str, dtype: torch.dtype) -> Llama:
    """A folder with a Llama's config.json and model.safetensors, named as transformers does."""
    weights = load_file(folder / "model.safetensors", device=device)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Llama(config, {name: w.to(dtype) for name, w in weights.items()})
