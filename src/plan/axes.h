// Which component of a multi-axis position each pair reads.
#pragma once

#include <cstdint>
#include <vector>

#include "ropewalk/config.h"

namespace ropewalk::plan {

struct AxisMap {
  int axes = 1;
  std::vector<std::uint8_t> axis;  ///< one per pair; empty: one axis
  std::vector<std::size_t> entry;  ///< of the schedule's list, one per pair; empty: pair j has j
};

/// How a schedule's list of `entries` frequencies is dealt to pairs. Error(invalid_config) where
/// sections do not add up to the pairs.
[[nodiscard]] AxisMap axes_of(const RopeParameters& parameters, std::int64_t entries,
                              const AxisLayout& layout = {},
                              PairChannels channels = PairChannels::both);

/// Whether a layout has other angles for the two channels of a pair.
[[nodiscard]] bool has_two_angles(AxisRule rule) noexcept;

}  // namespace ropewalk::plan
