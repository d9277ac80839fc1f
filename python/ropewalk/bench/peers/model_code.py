"""The eager code of models, as transformers ships it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..packages import Unavailable
from ..setting import Setting


def model_function(setting: Setting) -> Callable:
    """``apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim)`` of a model with the case's pairing.

    Raises Unavailable where transformers is not installed.
    """
    try:
        if setting.case.pairing == "half":
            from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
        else:
            from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb
    except ImportError:
        raise Unavailable("transformers, whose model code this is, is not installed") from None
    return apply_rotary_pos_emb


def head_axis(setting: Setting) -> int:
    return 2 if setting.case.layout == "bthd" else 1


def table_dtype(setting: Setting) -> torch.dtype:
    """Llama's cosines and sines take the dtype of the data, Cohere's code works in float32."""
    return setting.case.torch_dtype
