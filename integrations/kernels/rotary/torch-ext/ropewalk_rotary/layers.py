"""Layers as the ``kernels`` package loads them: without state, with the signature they stand in for."""

import torch

from ropewalk.hf.layer import rotate_as


class apply_rotary_transformers(torch.nn.Module):
    can_torch_compile = True
    has_backward = True

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        unsqueeze_dim: int = 1,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return rotate_as(self, q, k, cos, sin, unsqueeze_dim)
