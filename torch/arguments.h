// What an operator receives, and the core's views of it. Shared by the CPU and the CUDA library.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ropewalk/rotate.h"

namespace ropewalk::torch_ops {

using StableTensor = torch::stable::Tensor;

/// The arguments of every rotate operator after q and k, in schema order (torch/schemas.h).
struct RotateArguments {
  std::string_view plan;
  std::int64_t token_dim;
  std::int64_t start;
  const std::optional<StableTensor>& positions;
  const std::optional<StableTensor>& starts;
  const std::optional<StableTensor>& cu_seqlens;
  const std::optional<StableTensor>& cos;
  const std::optional<StableTensor>& sin;
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
[[nodiscard]] CheckedTensors check_tensors(const StableTensor& q,
                                           const std::optional<StableTensor>& k,
                                           const StableTensor& q_out,
                                           const std::optional<StableTensor>& k_out,
                                           std::int64_t token_dim, const RotaryPlan& plan);

/// The positions of a call. `batch` and `tokens` are those of q; tensors lie on the device of `q`.
[[nodiscard]] Positions positions_of(const RotateArguments& arguments, const StableTensor& q,
                                     const ConstTensorView& view);

}  // namespace ropewalk::torch_ops
