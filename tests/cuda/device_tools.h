// Device-side filling and comparing, for tensors too large for the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ropewalk::testing {

/// 16-bit patterns of bfloat16 values of moderate size, from a hash of the index and the seed.
void fill_bfloat16(void* data, std::int64_t elements, std::uint64_t seed);
/// Bytes that no rotation leaves behind: a NaN in every dtype.
void poison(void* data, std::size_t bytes);
/// 16-bit words that differ. Waits.
[[nodiscard]] std::uint64_t count_differences(const void* a, const void* b, std::int64_t words);
/// Bytes of device memory that are free.
[[nodiscard]] std::size_t free_memory();

}  // namespace ropewalk::testing
