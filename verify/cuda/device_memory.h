// Host memory mirrored on a device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ropewalk/rotate.h"

namespace ropewalk::verify {

/// Throws Error(cuda) with the call's name and CUDA's own words where it failed.
void must(cudaError_t status, const char* call);

/// Owned device memory on the current device. Throws Error(cuda).
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return reinterpret_cast<T*>(data_);
  }
  void upload(const void* from, std::size_t bytes) const;
  void download(void* to, std::size_t bytes) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Ranges of host memory and their copies; ranges that overlap become one.
class Mirror {
 public:
  /// Notes the bytes from the first to the last element of a view.
  void add(const ConstTensorView& view);
  void add(const void* data, std::int64_t first_byte, std::int64_t end_byte);
  /// Allocates and copies everything to the device.
  void upload();
  /// Copies back what add(view) noted for outputs and inputs alike.
  void download() const;
  /// The device address of a host address inside a range.
  [[nodiscard]] void* on_device(const void* host) const;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  struct Copy {
    Range range;
    DeviceBuffer memory;
    std::size_t lead = 0;  ///< bytes before the range, so that alignment is the host's
  };
  std::vector<Range> ranges_;
  std::vector<Copy> copies_;
};

/// Positions whose arrays are in the mirror (noted by add_positions).
void add_positions(Mirror& mirror, const Positions& positions, std::int64_t batch,
                   std::int64_t tokens);
[[nodiscard]] Positions on_device(const Mirror& mirror, const Positions& positions);

}  // namespace ropewalk::verify
