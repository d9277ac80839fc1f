#include "plan/axes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace ropewalk::plan {
namespace {

using Sections = std::vector<std::int64_t>;

constexpr std::size_t kLargestAxes = 8;

void add(AxisMap& map, std::int64_t axis, std::int64_t entry) {
  map.axis.push_back(static_cast<std::uint8_t>(axis));
  map.entry.push_back(static_cast<std::size_t>(entry));
}

std::int64_t sum_of(const Sections& sections) {
  return std::accumulate(sections.begin(), sections.end(), std::int64_t{0});
}

[[noreturn]] void refuse(const Sections& sections, std::int64_t pairs) {
  fail(ErrorCode::invalid_config,
       "mrope_section: expected sections that add up to the {} pairs of the window, got [{}]",
       pairs, fmt::join(sections, ", "));
}

void check_sizes(const Sections& sections, std::int64_t pairs) {
  const bool sizes_ok = sections.size() >= 2 && sections.size() <= kLargestAxes &&
                        std::all_of(sections.begin(), sections.end(),
                                    [pairs](std::int64_t s) { return s >= 0 && s <= pairs; });
  if (!sizes_ok) refuse(sections, pairs);
}

void check_sum(const Sections& sections, std::int64_t pairs) {
  check_sizes(sections, pairs);
  if (sum_of(sections) != pairs) refuse(sections, pairs);
}

/// The section that element `at` of their runs falls into, each run `scale` times its section.
std::int64_t run_at(const Sections& sections, std::int64_t at, std::int64_t scale) {
  std::int64_t end = 0;
  for (std::size_t axis = 0; axis < sections.size(); ++axis) {
    end += scale * sections[axis];
    if (at < end) return static_cast<std::int64_t>(axis);
  }
  return static_cast<std::int64_t>(sections.size()) - 1;
}

/// Consecutive runs, one per section: multimodal RoPE of Qwen2-VL, arXiv:2409.12191.
void chunked(AxisMap& map, const Sections& sections, std::int64_t pairs) {
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    add(map, run_at(sections, pair, 1), pair);
  }
}

/// Round robin t h w t h w …, where t also takes what is left once h or w is used up: Qwen3-VL,
/// arXiv:2511.21631.
void round_robin(AxisMap& map, const Sections& sections, std::int64_t pairs) {
  if (sections.size() != 3) {
    fail(ErrorCode::invalid_config, "mrope_section: interleaved sections are three, got {}",
         sections.size());
  }
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t axis = pair % 3;
    const bool taken = axis != 0 && pair < 3 * sections[static_cast<std::size_t>(axis)];
    add(map, taken ? axis : 0, pair);
  }
}

/// The sections' runs over the channels of the window, each twice its section long, as HunYuan-VL
/// is in transformers: a channel's partner half a window away may be on another axis.
void doubled_runs(AxisMap& map, const Sections& sections, std::int64_t pairs,
                  PairChannels channels) {
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t channel = channels == PairChannels::second ? pair + pairs : pair;
    add(map, run_at(sections, channel, 2), pair);
  }
}

/// Axes 1 and 2 (h, w) on the pairs of the first two sections, axis 0 (t) on the rest.
void with_tail(AxisMap& map, const Sections& sections, std::int64_t pairs, bool split) {
  if (sections.size() != 3) {
    fail(ErrorCode::invalid_config, "mrope_section: expected three sections h, w, t, got {}",
         sections.size());
  }
  const std::int64_t head = sections[0] + sections[1];
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t evens = (head + 1) / 2;
    if (pair >= head) {
      add(map, 0, pair);
    } else if (!split) {
      add(map, 1 + pair % 2, pair);
    } else {
      const std::int64_t axis = pair < sections[0] ? 1 : 2;
      add(map, axis, pair < evens ? 2 * pair : 2 * (pair - evens) + 1);
    }
  }
}

void by_axis(AxisMap& map, const AxisLayout& layout, std::int64_t entries, PairChannels channels) {
  for (int axis = 0; axis < layout.axes; ++axis) {
    for (std::int64_t entry = 0; entry < entries; ++entry) {
      // The model's channel 2·entry (or 2·entry + 1) of the axis' block has list entry mod n.
      const std::int64_t channel = 2 * entry + (channels == PairChannels::second ? 1 : 0);
      add(map, axis, layout.rule == AxisRule::each_wrapped ? channel % entries : entry);
    }
  }
}

}  // namespace

bool has_two_angles(AxisRule rule) noexcept {
  return rule == AxisRule::doubled_sections || rule == AxisRule::each_wrapped;
}

AxisMap axes_of(const RopeParameters& parameters, std::int64_t entries, const AxisLayout& layout,
                PairChannels channels) {
  const Sections& sections = parameters.mrope_section;
  AxisMap map;
  using enum AxisRule;
  switch (layout.rule) {
    case sections_of_config: {
      if (sections.empty()) return {};
      map.axes = static_cast<int>(sections.size());
      if (parameters.mrope_interleaved) {
        check_sizes(sections, entries);
        round_robin(map, sections, entries);
      } else {
        check_sum(sections, entries);
        chunked(map, sections, entries);
      }
      return map;
    }
    case doubled_sections:
      if (sections.empty()) return {};
      check_sum(sections, entries);
      map.axes = static_cast<int>(sections.size());
      doubled_runs(map, sections, entries, channels);
      return map;
    case alternating_tail:
    case split_tail:
      check_sum(sections, entries);
      map.axes = 3;
      with_tail(map, sections, entries, layout.rule == split_tail);
      return map;
    case alternating:
      map.axes = 2;
      for (std::int64_t pair = 0; pair < entries; ++pair) add(map, pair % 2, pair);
      return map;
    case split: {
      map.axes = 2;
      const std::int64_t evens = (entries + 1) / 2;
      for (std::int64_t pair = 0; pair < entries; ++pair) {
        add(map, pair < evens ? 0 : 1, pair < evens ? 2 * pair : 2 * (pair - evens) + 1);
      }
      return map;
    }
    case each:
    case each_wrapped:
      map.axes = layout.axes;
      by_axis(map, layout, entries, channels);
      return map;
    case each_alternating:
    case each_alternating_back:
      map.axes = 2;
      for (std::int64_t pair = 0; pair < 2 * entries; ++pair) {
        add(map, layout.rule == each_alternating ? pair % 2 : 1 - pair % 2, pair / 2);
      }
      return map;
  }
  fail(ErrorCode::invalid_config, "axis_layout: unknown rule {}", static_cast<int>(layout.rule));
}

}  // namespace ropewalk::plan
