#include "plan/axes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace ropewalk::plan {
namespace {

constexpr std::size_t kLargestAxes = 8;

/// Consecutive runs, one per section: multimodal RoPE of Qwen2-VL, arXiv:2409.12191.
AxisMap chunked(const std::vector<std::int64_t>& sections) {
  AxisMap map;
  map.axes = static_cast<int>(sections.size());
  for (std::size_t axis = 0; axis < sections.size(); ++axis) {
    map.axis.insert(map.axis.end(), static_cast<std::size_t>(sections[axis]),
                    static_cast<std::uint8_t>(axis));
  }
  return map;
}

/// Round robin t h w t h w …, where t also takes what is left once h or w is used up: Qwen3-VL,
/// arXiv:2511.21631.
AxisMap interleaved(const std::vector<std::int64_t>& sections, std::int64_t pairs) {
  AxisMap map;
  map.axes = static_cast<int>(sections.size());
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t axis = pair % 3;
    const bool taken = axis != 0 && pair < 3 * sections[static_cast<std::size_t>(axis)];
    map.axis.push_back(taken ? static_cast<std::uint8_t>(axis) : std::uint8_t{0});
  }
  return map;
}

/// Rows for the first half of the pairs, columns for the second.
AxisMap axial(std::int64_t pairs) {
  AxisMap map;
  map.axes = 2;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    map.axis.push_back(pair < pairs / 2 ? std::uint8_t{0} : std::uint8_t{1});
  }
  return map;
}

}  // namespace

AxisMap axes_of(const RopeParameters& parameters, std::int64_t pairs) {
  if (parameters.type == "axial") return axial(pairs);
  const std::vector<std::int64_t>& sections = parameters.mrope_section;
  if (sections.empty()) return {};
  const bool sizes_ok = sections.size() >= 2 && sections.size() <= kLargestAxes &&
                        std::all_of(sections.begin(), sections.end(),
                                    [pairs](std::int64_t s) { return s >= 0 && s <= pairs; });
  if (!sizes_ok || std::accumulate(sections.begin(), sections.end(), std::int64_t{0}) != pairs) {
    fail(ErrorCode::invalid_config,
         "mrope_section: expected sections that add up to the {} pairs of the window, got [{}]",
         pairs, fmt::join(sections, ", "));
  }
  if (!parameters.mrope_interleaved) return chunked(sections);
  if (sections.size() != 3) {
    fail(ErrorCode::invalid_config, "mrope_section: interleaved sections are three, got {}",
         sections.size());
  }
  return interleaved(sections, pairs);
}

}  // namespace ropewalk::plan
