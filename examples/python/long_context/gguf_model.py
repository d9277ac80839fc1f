"""A Llama from a GGUF file: its weights dequantised, rotated as the file's own metadata says (llama.cpp
stores q and k so that channels 2i and 2i + 1 are a pair). Needs the package gguf."""

from __future__ import annotations

from pathlib import Path

import torch
from gguf import GGUFReader, dequantize
from model import Llama

import ropewalk

_KEYS = {
    "vocab_size": "vocab_size", "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count", "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
}  # fmt: skip

_TENSORS = {
    "token_embd": "embed_tokens", "output_norm": "norm", "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def name_of(tensor: str) -> str:
    """The name of a tensor in transformers: ``blk.3.attn_q.weight`` is
    ``model.layers.3.self_attn.q_proj.weight``."""
    *block, kind, _ = tensor.split(".")
    if kind == "output":
        return "lm_head.weight"
    layer = f"layers.{block[1]}." if block else ""
    return f"model.{layer}{_TENSORS[kind]}.weight"


def model_from_gguf(path: Path, device: str, dtype: torch.dtype) -> Llama:
    reader = GGUFReader(path)
    config = {key: reader.fields[f"llama.{name}"].contents() for key, name in _KEYS.items()}
    weights = {
        name_of(tensor.name): torch.tensor(
            dequantize(tensor.data, tensor.tensor_type), device=device, dtype=dtype
        )
        for tensor in reader.tensors
    }
    return Llama(config, weights, ropewalk.plan_from_config(path))
