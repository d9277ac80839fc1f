// Rope parameters of every kind of layer, from whichever form the config has.
#pragma once

#include "config/json_reader.h"
#include "config/model_traits.h"

namespace ropewalk::config {

/// Fills by_layer_type and layer_types of `config`, whose sizes are already read.
void read_rope_parameters(ObjectReader& top, const ModelTraits& traits, RopeConfig& config);

}  // namespace ropewalk::config
