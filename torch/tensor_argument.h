// A tensor that an operator was given, with what is asked of it read once: every question to the
// stable ABI is a call, and its own Tensor class allocates a reference count besides.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>

// The name since PyTorch 2.12; before, the same macro without the prefix.
#if !defined(STABLE_TORCH_ERROR_CODE_CHECK)
#define STABLE_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#endif

namespace ropewalk::torch_ops {

class TensorArgument {
 public:
  using ScalarType = torch::headeronly::ScalarType;

  /// Takes the handle over.
  explicit TensorArgument(AtenTensorHandle handle) : handle_(handle) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(handle, &dim_));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(handle, &sizes_));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(handle, &strides_));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(handle, &dtype_));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(handle, &device_type_));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(handle, &device_));
  }

  [[nodiscard]] std::int64_t dim() const noexcept { return dim_; }
  [[nodiscard]] std::int64_t size(std::int64_t i) const noexcept { return sizes_[i]; }
  [[nodiscard]] std::int64_t stride(std::int64_t i) const noexcept { return strides_[i]; }
  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] bool is_on_device_of(const TensorArgument& other) const noexcept {
    return device_type_ == other.device_type_ && (is_cpu() || device_ == other.device_);
  }
  [[nodiscard]] bool is_cpu() const noexcept {
    static const std::int32_t cpu = aoti_torch_device_type_cpu();
    return device_type_ == cpu;
  }
  [[nodiscard]] bool is_cuda() const noexcept {
    static const std::int32_t cuda = aoti_torch_device_type_cuda();
    return device_type_ == cuda;
  }
  /// Undefined for a type that no argument may have.
  [[nodiscard]] ScalarType scalar_type() const noexcept {
    struct Known {
      std::int32_t code;
      ScalarType type;
    };
    static const Known known[] = {{aoti_torch_dtype_bfloat16(), ScalarType::BFloat16},
                                  {aoti_torch_dtype_float16(), ScalarType::Half},
                                  {aoti_torch_dtype_float32(), ScalarType::Float},
                                  {aoti_torch_dtype_int64(), ScalarType::Long},
                                  {aoti_torch_dtype_int32(), ScalarType::Int},
                                  {aoti_torch_dtype_float64(), ScalarType::Double}};
    for (const auto& [code, type] : known) {
      if (code == dtype_) return type;
    }
    return ScalarType::Undefined;
  }
  [[nodiscard]] const void* data() const {
    const void* data = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_get_const_data_ptr(handle_.get(), &data));
    return data;
  }
  /// For writing: separates a lazily copied tensor from its original first.
  [[nodiscard]] void* mutable_data() const {
    void* data = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_get_mutable_data_ptr(handle_.get(), &data));
    return data;
  }

  /// A new tensor as torch.empty_like makes it: the same strides where memory is dense.
  [[nodiscard]] TensorArgument empty_like() const;
  /// Gives the handle away.
  [[nodiscard]] AtenTensorHandle release() && noexcept { return handle_.release(); }

 private:
  struct Delete {
    void operator()(AtenTensorHandle handle) const noexcept {
      aoti_torch_delete_tensor_object(handle);
    }
  };
  [[nodiscard]] bool is_dense() const noexcept;

  std::unique_ptr<AtenTensorOpaque, Delete> handle_;
  std::int64_t dim_ = 0;
  std::int64_t* sizes_ = nullptr;
  std::int64_t* strides_ = nullptr;
  std::int32_t dtype_ = 0;
  std::int32_t device_type_ = 0;
  std::int32_t device_ = 0;
};

using OptionalTensor = std::optional<TensorArgument>;

}  // namespace ropewalk::torch_ops

/// What TORCH_BOX asks for each parameter type.
template <>
struct torch::stable::detail::ToImpl<ropewalk::torch_ops::TensorArgument> {
  static ropewalk::torch_ops::TensorArgument call(StableIValue value, uint64_t, bool) {
    return ropewalk::torch_ops::TensorArgument(to<AtenTensorHandle>(value));
  }
};

template <>
struct torch::stable::detail::ToImpl<ropewalk::torch_ops::OptionalTensor> {
  static ropewalk::torch_ops::OptionalTensor call(StableIValue value, uint64_t, bool) {
    const std::unique_ptr<StableIValue> inner(to<StableIValue*>(value));
    if (inner == nullptr) return std::nullopt;
    return ropewalk::torch_ops::TensorArgument(to<AtenTensorHandle>(*inner));
  }
};
