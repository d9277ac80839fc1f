"""Decoding without the token's offset: every new token stands at position 0."""

import torch

import ropewalk

q, k = torch.randn(1, 1, 9, 16), torch.randn(1, 1, 9, 16)
rotary = ropewalk.RotaryEmbedding(16)
whole_q, whole_k = rotary(q, k)
last = q[:, :, 8:]
wrong, right = rotary(last), rotary(last, offset=8)
scores = [(x @ whole_k.transpose(-1, -2)).flatten() for x in (wrong, right, whole_q[:, :, 8:])]
print("wrong:", scores[0][:3].tolist(), "right:", scores[1][:3].tolist())
assert torch.equal(right, whole_q[:, :, 8:])
assert not torch.allclose(scores[0], scores[2])
