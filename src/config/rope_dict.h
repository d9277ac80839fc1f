// One dict of rope parameters.
#pragma once

#include <string>

#include "config/json_reader.h"
#include "config/model_traits.h"

namespace ropewalk::config {

/// What a dict does not say itself.
struct DictDefaults {
  std::string model_type;  ///< canonical
  std::string type = "default";
  double base = 10000.0;
  double partial_factor = 1.0;
  std::optional<std::int64_t> original_max_positions;  ///< where the dict has none
  std::optional<std::int64_t> original_override;       ///< beats the dict's own (Phi-3)
};

/// Reads every key of `dict`; Error(invalid_config) for an unknown type, a missing required key, a
/// value that cannot be, or a key that the type does not have.
[[nodiscard]] RopeParameters read_rope_dict(ObjectReader& dict, const DictDefaults& defaults);

}  // namespace ropewalk::config
