// Stands in for PyTorch where vLLM's kernel file names its tensors: what the file uses, no more.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>

#define STD_TORCH_CHECK(condition, ...) \
  if (!(condition)) throw std::runtime_error(#condition)

inline thread_local cudaStream_t shim_stream = nullptr;
inline cudaStream_t get_current_cuda_stream() { return shim_stream; }

namespace torch::stable {

enum class Dtype { float32, float16, bfloat16 };

/// A view of a tensor that PyTorch owns.
struct Tensor {
  void* data = nullptr;
  Dtype dtype = Dtype::float32;
  int64_t dims = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;

  int64_t dim() const { return dims; }
  int64_t size(int64_t d) const { return sizes[d < 0 ? d + dims : d]; }
  int64_t stride(int64_t d) const { return strides[d < 0 ? d + dims : d]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d = 0; d < dims; ++d) n *= sizes[d];
    return n;
  }
  Dtype scalar_type() const { return dtype; }
  int get_device_index() const { return 0; }
  template <typename T>
  const T* const_data_ptr() const {
    return static_cast<const T*>(data);
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return static_cast<T*>(data);
  }
};

namespace accelerator {
/// The caller has set the device.
struct DeviceGuard {
  explicit DeviceGuard(int) {}
};
}  // namespace accelerator

}  // namespace torch::stable
