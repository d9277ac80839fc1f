"""A backward pass that rotates the incoming gradient in place: others may hold the same tensor."""

import torch

import ropewalk

plan = ropewalk.make_plan(8)


class Overwriting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return ropewalk.rotate(x, plan=plan)

    @staticmethod
    def backward(ctx, grad):
        return ropewalk.rotate_(grad, plan=plan, inverse=True)


weights, gradients = torch.randn(1, 1, 5, 8), {}
for name, rotate in (
    ("wrong", Overwriting.apply),
    ("right", lambda x: ropewalk.rotate(x, plan=plan)),
):
    x, residual = (torch.randn(1, 1, 5, 8, requires_grad=True) for _ in range(2))
    held = residual * 1  # made before the rotation, so that its backward runs after it
    ((rotate(x) + held) * weights).sum().backward()
    gradients[name] = residual.grad
    print(name, "gradient of the residual, off by", float((residual.grad - weights).abs().max()))
assert torch.equal(gradients["right"], weights), "a sum passes its gradient on"
assert not torch.allclose(gradients["wrong"], weights)
