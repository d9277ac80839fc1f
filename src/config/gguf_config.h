// A GGUF header's rope keys → RopeConfig, by llama.cpp's rules.
#pragma once

#include <nlohmann/json.hpp>

#include "ropewalk/config.h"

namespace ropewalk::config {

/// `header` is what read_gguf_header gives. Error(unsupported) for an architecture whose rotation
/// is not known, Error(invalid_config) naming a key for a value that cannot be.
[[nodiscard]] RopeConfig config_from_gguf(const nlohmann::json& header);

}  // namespace ropewalk::config
