// Where a model keeps the tensors that rotate, beyond what their rotation needs to know.
#pragma once

#include <cstdint>
#include <filesystem>

#include "ropewalk/config.h"

namespace ropewalk::cli {

/// Channels before the rotated tensor in a head's memory. Zero but for multi-head latent attention,
/// whose query head is [nope | rope] and whose shared key row is [compressed | rope].
struct SliceLeads {
  std::int64_t query = 0;
  std::int64_t key = 0;
};

/// Read from the config file beside what parse_config keeps. The file has been parsed before.
[[nodiscard]] SliceLeads slice_leads(const std::filesystem::path& path);

}  // namespace ropewalk::cli
