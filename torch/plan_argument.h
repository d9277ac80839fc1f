// The operators' `str plan` argument, read where PyTorch put it. The stable ABI's own conversion to
// std::string copies the text once more and, in the versions seen so far, never frees that copy.
#pragma once

#include <torch/csrc/stable/library.h>

#include <string_view>
#include <utility>

// The name since PyTorch 2.12; before, the same macro without the prefix.
#if !defined(STABLE_TORCH_ERROR_CODE_CHECK)
#define STABLE_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#endif

namespace ropewalk::torch_ops {

class PlanArgument {
 public:
  explicit PlanArgument(StringHandle handle) : handle_(handle) {}
  PlanArgument(PlanArgument&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  PlanArgument(const PlanArgument&) = delete;
  PlanArgument& operator=(const PlanArgument&) = delete;
  PlanArgument& operator=(PlanArgument&&) = delete;
  ~PlanArgument() {
    if (handle_ != nullptr) torch_delete_string(handle_);
  }

  [[nodiscard]] std::string_view text() const {
    const char* data = nullptr;
    std::size_t length = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_c_str(handle_, &data));
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_length(handle_, &length));
    return {data, length};
  }

 private:
  StringHandle handle_;
};

}  // namespace ropewalk::torch_ops

/// What TORCH_BOX asks for each parameter type.
template <>
struct torch::stable::detail::ToImpl<ropewalk::torch_ops::PlanArgument> {
  static ropewalk::torch_ops::PlanArgument call(StableIValue value, uint64_t, bool) {
    return ropewalk::torch_ops::PlanArgument(to<StringHandle>(value));
  }
};
