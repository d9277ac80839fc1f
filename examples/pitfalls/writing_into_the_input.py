"""Rotating in place, half by half: the second half is made from the first half's new values."""

import torch

import ropewalk

x = torch.randn(1, 1, 5, 8)
rotary = ropewalk.RotaryEmbedding(8)
cos, sin = (t.float() for t in rotary.cos_sin(5))
wrong = x.clone()
wrong[..., :4] = wrong[..., :4] * cos - wrong[..., 4:] * sin
wrong[..., 4:] = wrong[..., 4:] * cos + wrong[..., :4] * sin  # reads what was just written
right = rotary(x.clone(), inplace=True)
truth = rotary(x)
print("wrong:", float((wrong - truth).abs().max()), "right:", float((right - truth).abs().max()))
assert torch.allclose(wrong[..., :4], truth[..., :4]), "half of it looks right"
assert not torch.allclose(wrong, truth) and torch.equal(right, truth)
