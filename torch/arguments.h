// What an operator receives, and the core's views of it. Shared by the CPU and the CUDA library.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
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

/// The dtype of q or k; Error(invalid_argument) naming the argument for anything else.
[[nodiscard]] Dtype dtype_of(const StableTensor& tensor, const char* name);

/// Three dimensions (no batch) or four; `token_dim` is −2 (heads before tokens) or −3.
[[nodiscard]] TensorView view_of(const StableTensor& tensor, std::int64_t token_dim,
                                 const char* name);

/// Checks what concerns q and k together: head_dim of the plan, batch, tokens, dtype and device.
void check_together(const StableTensor& q, const std::optional<StableTensor>& k,
                    const TensorView& q_view, const TensorView* k_view, const RotaryPlan& plan);

/// The positions of a call. `batch` and `tokens` are those of q; tensors lie on the device of `q`.
[[nodiscard]] Positions positions_of(const RotateArguments& arguments, const StableTensor& q,
                                     const TensorView& view);

}  // namespace ropewalk::torch_ops
