// A libtorch program that rotates q and k and takes gradients.
#include <cstdio>

#include "ropewalk/torch.h"

int main() {
  torch::manual_seed(0);
  const auto q = torch::randn({1, 8, 16, 64}, torch::requires_grad());
  const auto k = torch::randn({1, 2, 16, 64}, torch::requires_grad());
  // The text of a plan: what Python's ropewalk.make_plan(64).text prints.
  const ropewalk::TorchRotation rotation{
      .plan = R"({"ropewalk_plan":1,"head_dim":64,"rotary_dim":64,"base":10000.0})", .start = 100};
  const auto [q_rotated, k_rotated] = ropewalk::rotate(q, k, rotation);
  (q_rotated.square().sum() + k_rotated.sum()).backward();
  // A rotation keeps lengths, so the gradient of the squared length is 2 q.
  const double worst = (q.grad() - 2 * q.detach()).abs().max().item<double>();
  std::printf("largest |d/dq of |R q|^2 - 2 q|: %.2g\n", worst);
  return q_rotated.allclose(q) || worst > 1e-5 ? 1 : 0;
}
