"""A tolerance of a tenth, and positions below ten: a test that passes on angles in bfloat16."""

import torch

import ropewalk


def error(cosines, positions: torch.Tensor) -> float:
    frequencies = torch.tensor(ropewalk.make_plan(64).frequencies, dtype=torch.float64)
    return float(
        (cosines(positions) - torch.outer(positions.double(), frequencies).cos()).abs().max()
    )


def wrong(positions: torch.Tensor) -> torch.Tensor:
    frequencies = torch.tensor(ropewalk.make_plan(64).frequencies).bfloat16()
    return (positions.bfloat16()[:, None] * frequencies).float().cos()


def right(positions: torch.Tensor) -> torch.Tensor:
    return ropewalk.RotaryEmbedding(64).cos_sin(positions)[0]


near, far = torch.arange(10), torch.arange(4000, 4010)
print(
    "wrong:", error(wrong, near), error(wrong, far), "right:", error(right, near), error(right, far)
)
tenth = 1 / 10
assert error(wrong, near) < tenth, "the test passes"
assert error(wrong, far) > 1, "and the angle is another one altogether"
assert error(right, far) < tenth**6
