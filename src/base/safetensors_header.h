// The JSON header of a safetensors file, read and written. Internal to base.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/safetensors.h"

namespace ropewalk {

// The format's own limit.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
// Ours, far above what models need; they bound the memory and the time of a hostile header.
inline constexpr std::size_t kMaxSafetensorsTensors = 131'072;
inline constexpr std::size_t kMaxSafetensorsText = 16'000'000;  ///< names, metadata and sizes
inline constexpr std::size_t kMaxSafetensorsToken = 4'000'000;  ///< bytes between two JSON values
inline constexpr std::size_t kMaxSafetensorsRank = 64;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  ///< offsets from the beginning of the file
  SafetensorsMetadata metadata;
};

/// Reads and checks the header. Throws Error(io).
[[nodiscard]] SafetensorsHeader read_safetensors_header(const InputFile& file);

/// The bytes before the data: length, JSON, and spaces up to a multiple of eight.
[[nodiscard]] std::string format_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                                    const SafetensorsMetadata& metadata);

}  // namespace ropewalk
