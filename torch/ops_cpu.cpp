// The operators of ropewalk::, on CPU tensors. Stable ABI: built once, this library loads under
// every PyTorch from 2.10 on, with or without CUDA.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "operators.h"
#include "plan_text.h"
#include "ropewalk/error.h"
#include "ropewalk/rotate.h"
#include "schemas.h"
#include "user_table.h"

namespace ropewalk::torch_ops {
namespace {

/// PyTorch's own thread pool, so that torch.set_num_threads holds and no second pool competes.
const ParallelFor& parallel_for_of_torch() {
  static const ParallelFor run = [](std::int64_t count, std::int64_t grain,
                                    const std::function<void(std::int64_t, std::int64_t)>& body) {
    torch::stable::parallel_for(0, count, grain, body);
  };
  return run;
}

RotateOptions options_of(Direction direction, Outputs outputs) {
  return {.direction = direction,
          .threads = 0,
          .parallel_for = &parallel_for_of_torch(),
          .kernel = {},
          .fresh_outputs = outputs == Outputs::fresh};
}

struct CpuKernels {
  static void rotate(const TensorArgument& q, const OptionalTensor& k, const TensorArgument& q_out,
                     const OptionalTensor& k_out, std::string_view text,
                     const RotateArguments& arguments, Outputs outputs) {
    if (arguments.cos.has_value() != arguments.sin.has_value()) {
      throw Error(ErrorCode::invalid_argument, "cos, sin: expected both or neither");
    }
    const RotaryPlan& plan = cached_plan(text);
    const CheckedTensors tensors = check_tensors(q, k, q_out, k_out, arguments.token_dim, plan);
    const ConstTensorView& view = tensors.rotations[0].in;
    const Positions positions = positions_of(arguments, q, view);
    const RotateOptions options =
        options_of(arguments.inverse ? Direction::inverse : Direction::forward, outputs);
    if (!arguments.cos.has_value()) {
      ropewalk::rotate(plan, tensors.views(), positions, options);
    } else if (view.elements() > 0 || tensors.rotations[1].in.elements() > 0) {
      const UserTable table(plan, *arguments.cos, *arguments.sin, positions, view);
      ropewalk::rotate(table.table(), tensors.views(), table.positions(), options);
    }
  }

  static void rotate_known(const TensorArgument& q, const OptionalTensor& k,
                           const TensorArgument& q_out, const OptionalTensor& k_out,
                           std::int64_t number, std::int64_t start, const OptionalTensor& positions,
                           Outputs outputs) {
    const KnownCall& call = known_calls().at(number);
    const CheckedTensors tensors = check_tensors(q, k, q_out, k_out, call.token_dim, call.plan);
    ropewalk::rotate(call.plan, tensors.views(),
                     positions_of(start, positions, q, tensors.rotations[0].in),
                     options_of(call.direction, outputs));
  }

  /// A bad position raises on the CPU.
  static std::int64_t bad_rows(int, std::string_view, bool) { return 0; }
};

}  // namespace

STABLE_TORCH_LIBRARY(ropewalk, m) {
  m.def(ROPEWALK_ROTATE_SCHEMA("rotate"));
  m.def(ROPEWALK_ROTATE_INPLACE_SCHEMA("rotate_"));
  m.def(ROPEWALK_ROTATE_OUT_SCHEMA("rotate"));
  m.def(ROPEWALK_ROTATE_SCHEMA("_rotate"));
  m.def(ROPEWALK_ROTATE_INPLACE_SCHEMA("_rotate_"));
  m.def(ROPEWALK_ROTATE_OUT_SCHEMA("_rotate"));
  m.def(ROPEWALK_NUMBER_OF_SCHEMA);
  m.def(ROPEWALK_ROTATE_KNOWN_SCHEMA);
  m.def(ROPEWALK_ROTATE_KNOWN_INPLACE_SCHEMA);
  m.def(ROPEWALK_BAD_ROWS_SCHEMA);
}

STABLE_TORCH_LIBRARY_IMPL(ropewalk, CPU, m) { Operators<CpuKernels>::implement(m); }

}  // namespace ropewalk::torch_ops
