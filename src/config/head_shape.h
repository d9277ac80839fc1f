// Sizes of the model: heads, layers, channels of the rotated tensor.
#pragma once

#include "config/json_reader.h"
#include "config/model_traits.h"

namespace ropewalk::config {

/// Fills model_type-independent sizes of `config` from the top level of a text config.
void read_shape(ObjectReader& top, const ModelTraits& traits, RopeConfig& config);

}  // namespace ropewalk::config
