// What a DevicePlan or DeviceTable owns, and the small tools around CUDA calls.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>

#include "ropewalk/cuda.h"
#include "rotate/cuda/prepare.h"

namespace ropewalk::cuda {

/// Throws Error(cuda) with the call's name and CUDA's own words. Clears the sticky-free last error.
void check_cuda(cudaError_t status, const char* call);

/// Makes a device current for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int previous_;
  int device_;
};

struct DeviceFree {
  int device = 0;
  void operator()(void* memory) const noexcept;
};
using DeviceMemory = std::unique_ptr<void, DeviceFree>;

struct DeviceState {
  RotaryPlan plan;
  int device = 0;
  int compute_capability = 0;
  std::optional<Dtype> table_dtype;  ///< of the data a table is for
  DeviceMemory memory;
  DevicePointers pointers;
};

[[nodiscard]] std::unique_ptr<DeviceState> make_state(const RotaryPlan& plan,
                                                      const RotaryTable* table, int device);
[[nodiscard]] std::uint64_t read_bad_rows(const DeviceState& state, Stream stream);
void reset_bad_rows(const DeviceState& state, Stream stream);

}  // namespace ropewalk::cuda
