// Which layer is of which type, and which layers rotate.
#pragma once

#include <string>
#include <vector>

#include "config/json_reader.h"
#include "config/model_traits.h"

namespace ropewalk::config {

/// One entry per layer, as given or as the model's own pattern derives; empty where unknown.
[[nodiscard]] std::vector<std::string> layer_types_of(ObjectReader& top, const RopeConfig& config);

/// Fills `rotates` and `layer_rotates`: models that switch rope off, and layers without it.
void read_layer_rotation(ObjectReader& top, RopeConfig& config);

}  // namespace ropewalk::config
