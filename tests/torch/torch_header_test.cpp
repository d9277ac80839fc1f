// include/ropewalk/torch.h: values, gradcheck and gradgradcheck in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ropewalk/torch.h"
#include "verify/tolerance.h"

namespace {

using at::Tensor;
using Function = std::function<Tensor(const Tensor&)>;

constexpr const char* kPlan = R"({"ropewalk_plan":1,"head_dim":6,"rotary_dim":4,"base":10000.0})";

/// The Jacobian by central differences, row by input element. Exact for a linear function but for
/// rounding: the step is a power of two.
Tensor numerical_jacobian(const Function& f, const Tensor& x) {
  constexpr double kStep = 0.125;
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto moved = [&](double by) {
      Tensor y = x.detach().clone();
      y.view(-1)[i] += by;
      return f(y).detach().flatten();
    };
    rows.push_back((moved(kStep) - moved(-kStep)) / (2 * kStep));
  }
  return torch::stack(rows);
}

Tensor analytical_jacobian(const Function& f, const Tensor& x) {
  const Tensor input = x.detach().clone().requires_grad_();
  const Tensor y = f(input).flatten();
  std::vector<Tensor> columns;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    columns.push_back(torch::autograd::grad({y[i]}, {input}, {}, true)[0].flatten());
  }
  return torch::stack(columns, 1);
}

void expect_gradients(const Function& f, const Tensor& x) {
  EXPECT_TRUE(torch::allclose(analytical_jacobian(f, x), numerical_jacobian(f, x)));
}

Tensor random(at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); }

/// One function of q and k together: both outputs, side by side.
Function joined(const ropewalk::TorchRotation& rotation) {
  return [rotation](const Tensor& x) {
    const auto [q, k] = ropewalk::rotate(x.narrow(1, 0, 2), x.narrow(1, 2, 1), rotation);
    return torch::cat({q, k}, 1);
  };
}

TEST(TorchHeader, RotatesAsTheFormulaSays) {
  const Tensor x = random({1, 1, 1, 6});
  const Tensor y = ropewalk::rotate(x, {.plan = kPlan, .start = 3});
  for (int pair = 0; pair < 2; ++pair) {
    const double angle = 3 * std::pow(10000.0, -2.0 * pair / 4);
    const double x0 = x[0][0][0][pair].item<double>();
    const double x1 = x[0][0][0][pair + 2].item<double>();
    // Both sides: an angle, its sine and cosine, two products, their sum.
    const double bound = (std::abs(x0) + std::abs(x1)) *
                         (ropewalk::verify::kTrigError64 +
                          2 * ropewalk::verify::roundings(ropewalk::Dtype::float64, 4));
    EXPECT_NEAR(y[0][0][0][pair].item<double>(), x0 * std::cos(angle) - x1 * std::sin(angle),
                bound);
    EXPECT_NEAR(y[0][0][0][pair + 2].item<double>(), x1 * std::cos(angle) + x0 * std::sin(angle),
                bound);
  }
  EXPECT_TRUE(torch::equal(y.narrow(3, 4, 2), x.narrow(3, 4, 2)));
}

TEST(TorchHeader, Gradcheck) {
  const Tensor x = random({2, 3, 2, 6});
  expect_gradients(joined({.plan = kPlan, .start = 5}), x);
  expect_gradients(joined({.plan = kPlan, .positions = torch::tensor({7, 2})}), x);
  expect_gradients(joined({.plan = kPlan, .starts = torch::tensor({1, 40}), .inverse = true}), x);
}

TEST(TorchHeader, Gradgradcheck) {
  const Tensor x = random({1, 3, 2, 6});
  const Tensor weight = random({1, 3, 2, 6});
  const Function f = joined({.plan = kPlan, .start = 5});
  // The rotation is linear: its second derivative is that of the backward pass by the upstream.
  const Function backward = [&](const Tensor& upstream) {
    const Tensor input = x.detach().clone().requires_grad_();
    return torch::autograd::grad({f(input)}, {input}, {upstream}, true, true)[0];
  };
  expect_gradients(backward, weight);
}

TEST(TorchHeader, OneOutputMayBeUnused) {
  const Tensor q = random({1, 2, 2, 6}).requires_grad_();
  const Tensor k = random({1, 1, 2, 6}).requires_grad_();
  const auto rotated = ropewalk::rotate(q, k, {.plan = kPlan});
  rotated.second.sum().backward();
  EXPECT_TRUE(k.grad().defined());
  EXPECT_FALSE(q.grad().defined() && q.grad().abs().sum().item<double>() > 0);
}

TEST(TorchHeader, RefusalsNameTheArgument) {
  try {
    (void)ropewalk::rotate(random({1, 1, 1, 8}), {.plan = kPlan});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("q: expected heads of 6 channels"), std::string::npos);
  }
}

}  // namespace
