// What an operator receives, and the core's views of it. Shared by the CPU and the CUDA library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ropewalk/rotate.h"
#include "tensor_argument.h"

namespace ropewalk::torch_ops {

/// The arguments of every rotate operator after q, k and the plan, in schema order
/// (torch/schemas.h).
struct RotateArguments {
  std::int64_t token_dim;
  std::int64_t start;
  const OptionalTensor& positions;
  const OptionalTensor& starts;
  const OptionalTensor& cu_seqlens;
  const OptionalTensor& cos;
  const OptionalTensor& sin;
  std::optional<std::int64_t> padding;
  bool fractional;
  bool inverse;
};

/// The one or two tensors of a call.
struct CheckedTensors {
  std::array<Rotation, 2> rotations;
  std::size_t count = 1;

  [[nodiscard]] std::span<const Rotation> views() const noexcept {
    return {rotations.data(), count};
  }
};

/// Views of q, k and their outputs, which may be the same objects. Checks what the core cannot name
/// or see: head_dim of the plan, batch, tokens and dtype of k, and that all lie on one device.
[[nodiscard]] CheckedTensors check_tensors(const TensorArgument& q, const OptionalTensor& k,
                                           const TensorArgument& q_out, const OptionalTensor& k_out,
                                           std::int64_t token_dim, const RotaryPlan& plan);

/// The positions of a call. `batch` and `tokens` are those of q; tensors lie on the device of `q`.
[[nodiscard]] Positions positions_of(const RotateArguments& arguments, const TensorArgument& q,
                                     const ConstTensorView& view);
/// The same where nothing but start or positions is given.
[[nodiscard]] Positions positions_of(std::int64_t start, const OptionalTensor& positions,
                                     const TensorArgument& q, const ConstTensorView& view);

}  // namespace ropewalk::torch_ops
