"""A table (tokens, channels) against data (batch, tokens, heads, channels): with as many heads as
tokens it broadcasts over the wrong axis, and nothing complains."""

import torch

import ropewalk

x = torch.randn(1, 4, 4, 8)  # batch, tokens, heads, channels
rotary = ropewalk.RotaryEmbedding(8, layout="bthd")
cos, sin = (torch.cat([t, t], dim=-1).float() for t in rotary.cos_sin(4))
rotated_half = torch.cat([-x[..., 4:], x[..., :4]], dim=-1)
wrong = x * cos + rotated_half * sin  # angle of the head's number
right = x * cos[:, None] + rotated_half * sin[:, None]
truth = rotary(x)
print("wrong:", float((wrong - truth).abs().max()), "right:", float((right - truth).abs().max()))
assert wrong.shape == truth.shape and not torch.allclose(wrong, truth)
assert torch.allclose(right, truth)
