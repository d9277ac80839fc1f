"""Tiny models of transformers with random weights."""

from __future__ import annotations

import torch
import transformers

_SIZES = {
    "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 99, "max_position_embeddings": 512,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_TWO_KINDS = {"layer_types": ["sliding_attention", "full_attention"]}
_EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
_LATENT = {
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "v_head_dim": 8,
    "num_experts_per_tok": 2, "n_routed_experts": 4, "moe_intermediate_size": 32,
    "first_k_dense_replace": 2, "num_key_value_heads": 4,
}  # fmt: skip
_LONGROPE = {
    "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 16,
    "short_factor": [1.0 + i / 8 for i in range(8)], "long_factor": [2.0 + i for i in range(8)],
}  # fmt: skip
_GPTJ = {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "n_positions": 512}

#: Model type → keys of its config beside _SIZES.
DECODERS: dict[str, dict] = {
    "codegen": {**_GPTJ, "n_ctx": 512},
    "cohere": {},
    "deepseek_v2": {**_LATENT, "qk_rope_head_dim": 64, "head_dim": 64},
    "deepseek_v3": {**_LATENT, "qk_rope_head_dim": 8, "head_dim": 8, "n_group": 2, "topk_group": 1},
    "ernie4_5": {},
    "gemma3_text": _TWO_KINDS,
    "glm4": {},
    "gpt_neox": {},
    "gpt_oss": _EXPERTS,
    "gptj": _GPTJ,
    "llama": {},
    "llama4_text": {"head_dim": 64, "num_local_experts": 2, "intermediate_size_mlp": 64},
    "mistral": {},
    "nanochat": {},
    "olmo3": _TWO_KINDS,
    "persimmon": {},
    "phi3": {"rope_parameters": _LONGROPE, "original_max_position_embeddings": 16},
    "qwen2": {},
    "qwen3": {},
    "stablelm": {},
}


def config(model_type: str) -> transformers.PreTrainedConfig:
    keys = {**_SIZES, **DECODERS.get(model_type, {})}
    return transformers.AutoConfig.for_model(model_type, **keys)


def decoder(model_type: str, dtype: torch.dtype = torch.float32) -> transformers.PreTrainedModel:
    """A causal language model in evaluation mode."""
    torch.manual_seed(20260101)
    model = transformers.AutoModelForCausalLM.from_config(config(model_type))
    return model.eval().to(dtype)
