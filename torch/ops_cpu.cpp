// The operators of ropewalk::, on CPU tensors. Stable ABI: built once, this library loads under
// every PyTorch from 2.10 on, with or without CUDA.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "arguments.h"
#include "plan_argument.h"
#include "plan_text.h"
#include "ropewalk/error.h"
#include "ropewalk/rotate.h"
#include "schemas.h"
#include "user_table.h"

namespace ropewalk::torch_ops {
namespace {

using OptionalTensor = std::optional<StableTensor>;

/// PyTorch's own thread pool, so that torch.set_num_threads holds and no second pool competes.
const ParallelFor& parallel_for_of_torch() {
  static const ParallelFor run = [](std::int64_t count, std::int64_t grain,
                                    const std::function<void(std::int64_t, std::int64_t)>& body) {
    torch::stable::parallel_for(0, count, grain, body);
  };
  return run;
}

void rotate_into(const StableTensor& q, const OptionalTensor& k, const StableTensor& q_out,
                 const OptionalTensor& k_out, const RotateArguments& arguments) {
  const RotaryPlan& plan = cached_plan(arguments.plan);
  const CheckedTensors tensors = check_tensors(q, k, q_out, k_out, arguments.token_dim, plan);
  const ConstTensorView& view = tensors.rotations[0].in;
  const Positions positions = positions_of(arguments, q, view);
  const RotateOptions options{
      .direction = arguments.inverse ? Direction::inverse : Direction::forward,
      .threads = 0,
      .parallel_for = &parallel_for_of_torch(),
      .kernel = {}};
  if (!arguments.cos.has_value()) {
    rotate(plan, tensors.views(), positions, options);
  } else if (view.elements() > 0 || tensors.rotations[1].in.elements() > 0) {
    const UserTable table(plan, *arguments.cos, *arguments.sin, positions, view);
    rotate(table.table(), tensors.views(), table.positions(), options);
  }
}

void check_optional_pairs(const OptionalTensor& a, const OptionalTensor& b, const char* names) {
  if (a.has_value() != b.has_value()) {
    throw Error(ErrorCode::invalid_argument, std::string(names) + ": expected both or neither");
  }
}

std::tuple<StableTensor, OptionalTensor> rotate_cpu(
    const StableTensor& q, const OptionalTensor& k, const PlanArgument& plan,
    std::int64_t token_dim, std::int64_t start, const OptionalTensor& positions,
    const OptionalTensor& starts, const OptionalTensor& cu_seqlens, const OptionalTensor& cos,
    const OptionalTensor& sin, std::optional<std::int64_t> padding, bool fractional, bool inverse) {
  check_optional_pairs(cos, sin, "cos, sin");
  StableTensor q_out = torch::stable::empty_like(q);
  OptionalTensor k_out;
  if (k.has_value()) k_out = torch::stable::empty_like(*k);
  rotate_into(q, k, q_out, k_out,
              {plan.text(), token_dim, start, positions, starts, cu_seqlens, cos, sin, padding,
               fractional, inverse});
  return {std::move(q_out), std::move(k_out)};
}

void rotate_inplace_cpu(const StableTensor& q, const OptionalTensor& k, const PlanArgument& plan,
                        std::int64_t token_dim, std::int64_t start, const OptionalTensor& positions,
                        const OptionalTensor& starts, const OptionalTensor& cu_seqlens,
                        const OptionalTensor& cos, const OptionalTensor& sin,
                        std::optional<std::int64_t> padding, bool fractional, bool inverse) {
  check_optional_pairs(cos, sin, "cos, sin");
  rotate_into(q, k, q, k,
              {plan.text(), token_dim, start, positions, starts, cu_seqlens, cos, sin, padding,
               fractional, inverse});
}

void rotate_out_cpu(const StableTensor& q, const OptionalTensor& k, const PlanArgument& plan,
                    std::int64_t token_dim, std::int64_t start, const OptionalTensor& positions,
                    const OptionalTensor& starts, const OptionalTensor& cu_seqlens,
                    const OptionalTensor& cos, const OptionalTensor& sin,
                    std::optional<std::int64_t> padding, bool fractional, bool inverse,
                    const StableTensor& q_out, const OptionalTensor& k_out) {
  check_optional_pairs(cos, sin, "cos, sin");
  rotate_into(q, k, q_out, k_out,
              {plan.text(), token_dim, start, positions, starts, cu_seqlens, cos, sin, padding,
               fractional, inverse});
}

}  // namespace

STABLE_TORCH_LIBRARY(ropewalk, m) {
  m.def(ROPEWALK_ROTATE_SCHEMA("rotate"));
  m.def(ROPEWALK_ROTATE_INPLACE_SCHEMA("rotate_"));
  m.def(ROPEWALK_ROTATE_OUT_SCHEMA("rotate"));
  m.def(ROPEWALK_ROTATE_SCHEMA("_rotate"));
  m.def(ROPEWALK_ROTATE_INPLACE_SCHEMA("_rotate_"));
  m.def(ROPEWALK_ROTATE_OUT_SCHEMA("_rotate"));
}

STABLE_TORCH_LIBRARY_IMPL(ropewalk, CPU, m) {
  m.impl("rotate", TORCH_BOX(&rotate_cpu));
  m.impl("rotate_", TORCH_BOX(&rotate_inplace_cpu));
  m.impl("rotate.out", TORCH_BOX(&rotate_out_cpu));
  m.impl("_rotate", TORCH_BOX(&rotate_cpu));
  m.impl("_rotate_", TORCH_BOX(&rotate_inplace_cpu));
  m.impl("_rotate.out", TORCH_BOX(&rotate_out_cpu));
}

}  // namespace ropewalk::torch_ops
