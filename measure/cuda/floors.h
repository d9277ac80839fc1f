// The least that any pass over the same bytes does, in the same run: copies and read-flip-write.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace ropewalk::measure {

/// A pass over contiguous memory. Out of place it copies; in place it reads, flips signs, writes.
struct FloorKernel {
  std::string_view name;
  bool in_place;
  int accesses;  ///< of 16 bytes, a thread; 0: the driver's memcpy
  int threads;
};
[[nodiscard]] std::span<const FloorKernel> floor_kernels();

/// `bytes` is a multiple of 16 (rounded down). `programmatic` as in cuda::Options. Throws
/// Error(cuda).
void launch_floor(const FloorKernel& kernel, const void* in, void* out, std::int64_t bytes,
                  cudaStream_t stream, bool programmatic);

/// A kernel that does nothing: what a node of a graph costs on this machine.
void launch_empty(cudaStream_t stream, bool programmatic);
/// Keeps the stream busy, so that the host's launches are outside what is timed.
void launch_delay(std::uint64_t nanoseconds, cudaStream_t stream);
/// Reads memory to push everything else out of the caches.
void launch_flush(const void* memory, std::int64_t bytes, unsigned* sink, cudaStream_t stream);

}  // namespace ropewalk::measure
