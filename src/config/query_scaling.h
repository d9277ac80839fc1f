// Models that scale queries by their position beside the rotation.
#pragma once

#include "config/json_reader.h"
#include "ropewalk/config.h"

namespace ropewalk::config {

/// The rule in words; empty where the model has none. `config` has its rope parameters already.
[[nodiscard]] QueryScaling query_scaling_of(ObjectReader& top, const RopeConfig& config);

}  // namespace ropewalk::config
