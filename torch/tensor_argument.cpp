#include "tensor_argument.h"

#include <torch/csrc/stable/ops.h>

#include <array>
#include <cstddef>

// The name since PyTorch 2.12; before, the same macro without the prefix.
#if !defined(STABLE_TORCH_ERROR_CODE_CHECK)
#define STABLE_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#endif

namespace ropewalk::torch_ops {
namespace {

constexpr std::int64_t kMaxDimensions = 4;

}  // namespace

bool TensorArgument::is_dense() const noexcept {
  if (dim_ > kMaxDimensions) return false;
  // Dimensions in the order of memory: each must begin where the ones inside it end.
  std::array<bool, kMaxDimensions> done{};
  std::int64_t expected = 1;
  for (std::int64_t step = 0; step < dim_; ++step) {
    bool found = false;
    for (std::int64_t d = dim_ - 1; d >= 0 && !found; --d) {
      bool& is_done = done[static_cast<std::size_t>(d)];
      if (is_done || (sizes_[d] != 1 && strides_[d] != expected)) continue;
      is_done = found = true;
      expected *= sizes_[d];
    }
    if (!found) return false;
  }
  return expected > 0;
}

TensorArgument TensorArgument::empty_like() const {
  AtenTensorHandle made = nullptr;
  if (is_dense()) {
    STABLE_TORCH_ERROR_CODE_CHECK(
        aoti_torch_empty_strided(dim_, sizes_, strides_, dtype_, device_type_, device_, &made));
    return TensorArgument(made);
  }
  AtenTensorHandle self = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(handle_.get(), &self));
  const torch::stable::Tensor like = torch::stable::empty_like(torch::stable::Tensor(self));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(like.get(), &made));
  return TensorArgument(made);
}

}  // namespace ropewalk::torch_ops
