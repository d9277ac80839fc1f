// Copies of memory, the yardsticks of a rotation, on the thread pool that rotations use.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ropewalk::measure {

enum class CopyKind {
  memcpy,             ///< the C library's
  ordinary,           ///< vector loads and stores through the cache
  streaming,          ///< vector loads, and stores past the cache
  streaming_prefetch  ///< the same, asking for the source 4 KiB ahead
};

enum class PassKind {
  plain,    ///< read, flip, write
  prefetch  ///< the same, asking for the data 4 KiB ahead
};

[[nodiscard]] std::string_view name_of(CopyKind kind) noexcept;
[[nodiscard]] std::string_view name_of(PassKind kind) noexcept;

/// The kinds that this machine can do: streaming only with AVX2 or better.
[[nodiscard]] std::span<const CopyKind> copy_kinds() noexcept;
[[nodiscard]] std::span<const PassKind> pass_kinds() noexcept;

/// Copies `bytes` bytes between disjoint buffers aligned to 64 bytes on `threads` threads
/// (0: all available).
void copy(CopyKind kind, std::byte* to, const std::byte* from, std::size_t bytes, int threads);

/// Reads every byte and writes it back with its bits flipped: the least that any pass in place
/// does. `data` is aligned to 64 bytes.
void read_modify_write(PassKind kind, std::byte* data, std::size_t bytes, int threads);

}  // namespace ropewalk::measure
