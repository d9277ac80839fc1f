// Which component of a multi-axis position each pair reads.
#pragma once

#include <cstdint>
#include <vector>

#include "ropewalk/config.h"

namespace ropewalk::plan {

struct AxisMap {
  int axes = 1;
  std::vector<std::uint8_t> axis;  ///< one entry per pair; empty: one axis
};

/// The map that the parameters ask for, over `pairs` pairs. Error(invalid_config) where sections
/// do not add up to `pairs`.
[[nodiscard]] AxisMap axes_of(const RopeParameters& parameters, std::int64_t pairs);

}  // namespace ropewalk::plan
