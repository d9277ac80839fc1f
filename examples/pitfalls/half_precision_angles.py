"""Angles in bfloat16: it has 8 bits, so that positions beyond 256 cannot even be told apart."""

import torch

import ropewalk

positions = torch.tensor([256, 257, 4095])
plan = ropewalk.make_plan(8)
frequencies = torch.tensor(plan.frequencies, dtype=torch.float64)
wrong = (positions.bfloat16()[:, None] * frequencies.bfloat16()).cos().double()
right = (positions.double()[:, None] * frequencies).cos()
truth = ropewalk.RotaryEmbedding(8).cos_sin(positions)[0]
print("wrong:", wrong[:, 0].tolist(), "right:", right[:, 0].tolist())
assert torch.equal(wrong[0], wrong[1]), "two neighbours at one position"
assert float((wrong - right).abs().max()) > 0.5
assert torch.allclose(truth.double(), right)
