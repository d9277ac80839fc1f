// Filling and comparing device memory where it is, for tensors too large for the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ropewalk/types.h"

namespace ropewalk::verify {

/// Standard normal values, from a hash of index and seed: the same numbers in every run. Queued on
/// the stream.
void fill_normal(void* data, std::int64_t elements, Dtype dtype, std::uint64_t seed,
                 cudaStream_t stream);

/// Adds the bytes in which a and b differ to *count on the device. Queued on the stream.
void count_different_bytes(const void* a, const void* b, std::int64_t bytes,
                           unsigned long long* count, cudaStream_t stream);

/// The same for work of the default stream. Waits.
[[nodiscard]] std::uint64_t different_bytes(const void* a, const void* b, std::int64_t bytes);

}  // namespace ropewalk::verify
