"""An interleaved table with a half-split rotation: every value is a rotation by another's angle."""

import torch

import ropewalk

x = torch.randn(1, 1, 6, 8)
plan = ropewalk.make_plan(8)
angle = torch.outer(torch.arange(6.0), torch.tensor(plan.frequencies, dtype=torch.float32))
rotated_half = torch.cat([-x[..., 4:], x[..., :4]], dim=-1)
interleaved, half = angle.repeat_interleave(2, dim=-1), torch.cat([angle, angle], dim=-1)
wrong = x * interleaved.cos() + rotated_half * interleaved.sin()
right = x * half.cos() + rotated_half * half.sin()
truth = ropewalk.rotate(x, plan=plan)
print("wrong:", float((wrong - truth).abs().max()), "right:", float((right - truth).abs().max()))
assert torch.equal(wrong[..., 0, :], truth[..., 0, :]), "position 0 hides it"
assert not torch.allclose(wrong, truth) and torch.allclose(right, truth)
assert not torch.allclose(wrong.norm(dim=-1), x.norm(dim=-1)), "it is not even a rotation"
