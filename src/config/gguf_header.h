// The key-value header of a GGUF file (ggml's format, versions 2 and 3), and its rope tensors.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace ropewalk::config {

/// Limits on what a header may ask for. They bound memory and time, whatever a file says.
inline constexpr std::uint64_t kMaxGgufKeys = 65'536;
inline constexpr std::uint64_t kMaxGgufTensors = 1'048'576;
inline constexpr std::uint64_t kMaxGgufName = 65'535;
inline constexpr std::uint64_t kMaxGgufKeptText = 256;     ///< longer strings are skipped
inline constexpr std::uint64_t kMaxGgufKeptArray = 4'096;  ///< longer arrays are skipped

[[nodiscard]] bool is_gguf(const InputFile& file);

/// The header as a JSON object: every key with a number, a boolean, a short string, or a short
/// array of numbers; longer values are walked over. A tensor named rope_freqs.weight or
/// rope_factors_….weight of type F32 stands under its name as an array of numbers.
/// Error(io), one sentence naming the file, for anything that is not such a header.
[[nodiscard]] nlohmann::json read_gguf_header(const InputFile& file);

}  // namespace ropewalk::config
