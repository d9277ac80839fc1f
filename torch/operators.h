// The operators' signatures, written once for the CPU and the CUDA library. Each supplies a type
// `Kernels` with
//   static void rotate(q, k, q_out, k_out, std::string_view plan, const RotateArguments&, Outputs);
//   static void rotate_known(q, k, q_out, k_out, std::int64_t number, start, positions, Outputs);
//   static std::int64_t bad_rows(int device, std::string_view plan, bool reset);
// where q and q_out are the same object in place.
#pragma once

#include <torch/csrc/stable/library.h>

#include <cstdint>
#include <tuple>
#include <utility>

#include "arguments.h"
#include "known_calls.h"
#include "plan_argument.h"
#include "tensor_argument.h"

namespace ropewalk::torch_ops {

/// Whether an operator allocated its outputs itself.
enum class Outputs : std::uint8_t { given, fresh };

/// A value in the form in which PyTorch takes it over.
struct Boxed {
  StableIValue value;
};
/// (Tensor, Tensor?): a handle, and a handle behind a pointer or null.
using BoxedOutputs = std::tuple<Boxed, Boxed>;

[[nodiscard]] inline BoxedOutputs boxed(TensorArgument q_out, OptionalTensor k_out) {
  using torch::stable::detail::FromImpl;
  const auto handle = [](TensorArgument& tensor) {
    return FromImpl<AtenTensorHandle>::call(std::move(tensor).release(), 0, false);
  };
  // PyTorch deletes what stands for an optional value.
  StableIValue* second = k_out.has_value() ? new StableIValue(handle(*k_out)) : nullptr;
  return {{handle(q_out)}, {FromImpl<StableIValue*>::call(second, 0, false)}};
}

[[nodiscard]] inline OptionalTensor empty_like(const OptionalTensor& tensor) {
  return tensor.has_value() ? OptionalTensor(tensor->empty_like()) : std::nullopt;
}

template <class Kernels>
struct Operators {
  using OptionalInt = std::optional<std::int64_t>;

  static BoxedOutputs rotate(const TensorArgument& q, const OptionalTensor& k,
                             const PlanArgument& plan, std::int64_t token_dim, std::int64_t start,
                             const OptionalTensor& positions, const OptionalTensor& starts,
                             const OptionalTensor& cu_seqlens, const OptionalTensor& cos,
                             const OptionalTensor& sin, OptionalInt padding, bool fractional,
                             bool inverse) {
    TensorArgument q_out = q.empty_like();
    OptionalTensor k_out = empty_like(k);
    Kernels::rotate(
        q, k, q_out, k_out, plan.text(),
        {token_dim, start, positions, starts, cu_seqlens, cos, sin, padding, fractional, inverse},
        Outputs::fresh);
    return boxed(std::move(q_out), std::move(k_out));
  }

  static void rotate_inplace(const TensorArgument& q, const OptionalTensor& k,
                             const PlanArgument& plan, std::int64_t token_dim, std::int64_t start,
                             const OptionalTensor& positions, const OptionalTensor& starts,
                             const OptionalTensor& cu_seqlens, const OptionalTensor& cos,
                             const OptionalTensor& sin, OptionalInt padding, bool fractional,
                             bool inverse) {
    Kernels::rotate(
        q, k, q, k, plan.text(),
        {token_dim, start, positions, starts, cu_seqlens, cos, sin, padding, fractional, inverse},
        Outputs::given);
  }

  static void rotate_out(const TensorArgument& q, const OptionalTensor& k, const PlanArgument& plan,
                         std::int64_t token_dim, std::int64_t start,
                         const OptionalTensor& positions, const OptionalTensor& starts,
                         const OptionalTensor& cu_seqlens, const OptionalTensor& cos,
                         const OptionalTensor& sin, OptionalInt padding, bool fractional,
                         bool inverse, const TensorArgument& q_out, const OptionalTensor& k_out) {
    Kernels::rotate(
        q, k, q_out, k_out, plan.text(),
        {token_dim, start, positions, starts, cu_seqlens, cos, sin, padding, fractional, inverse},
        Outputs::given);
  }

  static std::int64_t number_of(const TensorArgument&, const PlanArgument& plan,
                                std::int64_t token_dim, bool inverse) {
    return known_calls().number_of(plan.text(), token_dim, inverse);
  }

  static BoxedOutputs rotate_known(const TensorArgument& q, const OptionalTensor& k,
                                   std::int64_t number, std::int64_t start,
                                   const OptionalTensor& positions) {
    TensorArgument q_out = q.empty_like();
    OptionalTensor k_out = empty_like(k);
    Kernels::rotate_known(q, k, q_out, k_out, number, start, positions, Outputs::fresh);
    return boxed(std::move(q_out), std::move(k_out));
  }

  static void rotate_known_inplace(const TensorArgument& q, const OptionalTensor& k,
                                   std::int64_t number, std::int64_t start,
                                   const OptionalTensor& positions) {
    Kernels::rotate_known(q, k, q, k, number, start, positions, Outputs::given);
  }

  static std::int64_t bad_rows(const TensorArgument& like, const PlanArgument& plan, bool reset) {
    return Kernels::bad_rows(like.device(), plan.text(), reset);
  }

  /// Everything above for one dispatch key.
  static void implement(torch::stable::detail::StableLibrary& m) {
    for (const char* name : {"rotate", "_rotate"}) m.impl(name, TORCH_BOX(&Operators::rotate));
    for (const char* name : {"rotate_", "_rotate_"}) {
      m.impl(name, TORCH_BOX(&Operators::rotate_inplace));
    }
    for (const char* name : {"rotate.out", "_rotate.out"}) {
      m.impl(name, TORCH_BOX(&Operators::rotate_out));
    }
    m.impl("_number_of", TORCH_BOX(&Operators::number_of));
    m.impl("_rotate_known", TORCH_BOX(&Operators::rotate_known));
    m.impl("_rotate_known_", TORCH_BOX(&Operators::rotate_known_inplace));
    m.impl("_bad_rows", TORCH_BOX(&Operators::bad_rows));
  }
};

}  // namespace ropewalk::torch_ops
