#include "plan/axes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ropewalk/error.h"
#include "verify/tolerance.h"

namespace ropewalk::plan {
namespace {

std::vector<std::uint8_t> axis_of(std::vector<std::int64_t> sections, bool is_interleaved,
                                  std::int64_t pairs) {
  RopeParameters p;
  p.mrope_section = std::move(sections);
  p.mrope_interleaved = is_interleaved;
  return axes_of(p, pairs).axis;
}

TEST(Axes, OneAxisNeedsNoMap) {
  const AxisMap map = axes_of({}, 64);
  EXPECT_EQ(map.axes, 1);
  EXPECT_TRUE(map.axis.empty());
}

TEST(Axes, ChunkedSectionsFollowEachOther) {
  EXPECT_EQ(axis_of({2, 1, 3}, false, 6), (std::vector<std::uint8_t>{0, 0, 1, 2, 2, 2}));
  const auto qwen = axis_of({16, 24, 24}, false, 64);
  EXPECT_EQ(qwen[15], 0);
  EXPECT_EQ(qwen[16], 1);
  EXPECT_EQ(qwen[39], 1);
  EXPECT_EQ(qwen[40], 2);
}

TEST(Axes, InterleavedSectionsTakeTurnsAndTheFirstTakesTheRest) {
  EXPECT_EQ(axis_of({4, 2, 2}, true, 8), (std::vector<std::uint8_t>{0, 1, 2, 0, 1, 2, 0, 0}));
  const auto qwen3 = axis_of({24, 20, 20}, true, 64);
  for (std::uint8_t axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(std::count(qwen3.begin(), qwen3.end(), axis), axis == 0 ? 24 : 20);
  }
  EXPECT_EQ(qwen3[58], 1);
  EXPECT_EQ(qwen3[59], 2);
  EXPECT_EQ(qwen3[61], 0);
}

TEST(Axes, AxialIsRowsThenColumnsWithTheSameFrequencies) {
  RopeConfig config;
  config.head_dim = 80;
  RopeParameters p;
  p.type = "axial";
  config.by_layer_type.emplace("all", p);
  const RotaryPlan plan = make_plan(config);
  EXPECT_EQ(plan.axes(), 2);
  EXPECT_EQ(plan.rotary_dim(), 80);
  for (std::size_t j = 0; j < 20; ++j) {
    EXPECT_EQ(plan.axis()[j], 0);
    EXPECT_EQ(plan.axis()[j + 20], 1);
    EXPECT_EQ(plan.frequencies()[j], plan.frequencies()[j + 20]);
  }
  EXPECT_NEAR(plan.frequencies()[19], 0.000158489, verify::printed_decimals(9));
}

AxisMap dealt(AxisRule rule, std::int64_t entries, std::vector<std::int64_t> sections = {},
              PairChannels channels = PairChannels::both) {
  RopeParameters p;
  p.mrope_section = std::move(sections);
  return axes_of(p, entries, {rule, 2}, channels);
}

using Axis = std::vector<std::uint8_t>;
using Entry = std::vector<std::size_t>;

TEST(Axes, RulesDealTheListToPairs) {
  using enum AxisRule;
  EXPECT_EQ(dealt(alternating, 4).axis, (Axis{0, 1, 0, 1}));
  EXPECT_EQ(dealt(alternating, 4).entry, (Entry{0, 1, 2, 3}));
  EXPECT_EQ(dealt(split, 4).axis, (Axis{0, 0, 1, 1}));
  EXPECT_EQ(dealt(split, 4).entry, (Entry{0, 2, 1, 3}));
  EXPECT_EQ(dealt(alternating_tail, 6, {2, 2, 2}).axis, (Axis{1, 2, 1, 2, 0, 0}));
  EXPECT_EQ(dealt(alternating_tail, 6, {2, 2, 2}).entry, (Entry{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(dealt(split_tail, 6, {2, 2, 2}).axis, (Axis{1, 1, 2, 2, 0, 0}));
  EXPECT_EQ(dealt(split_tail, 6, {2, 2, 2}).entry, (Entry{0, 2, 1, 3, 4, 5}));
  EXPECT_EQ(dealt(each_alternating, 2).axis, (Axis{0, 1, 0, 1}));
  EXPECT_EQ(dealt(each_alternating, 2).entry, (Entry{0, 0, 1, 1}));
  EXPECT_EQ(dealt(each_alternating_back, 2).axis, (Axis{1, 0, 1, 0}));
}

/// HunYuan-VL in transformers: runs of twice the section over the channels, so that the partners
/// of a pair, half a window apart, lie on different axes.
TEST(Axes, DoubledSectionsGiveEachChannelOfAPairItsOwnAxis) {
  const auto of = [](PairChannels channels) {
    return dealt(AxisRule::doubled_sections, 4, {1, 1, 1, 1}, channels).axis;
  };
  EXPECT_EQ(of(PairChannels::first), (Axis{0, 0, 1, 1}));
  EXPECT_EQ(of(PairChannels::second), (Axis{2, 2, 3, 3}));
}

/// V-JEPA 2: channel c of an axis' block has entry c mod n, pairs are (2i, 2i + 1).
TEST(Axes, WrappedListsGiveEachChannelOfAPairItsOwnFrequency) {
  const auto of = [](PairChannels channels) {
    return dealt(AxisRule::each_wrapped, 3, {}, channels).entry;
  };
  EXPECT_EQ(of(PairChannels::first), (Entry{0, 2, 1, 0, 2, 1}));
  EXPECT_EQ(of(PairChannels::second), (Entry{1, 0, 2, 1, 0, 2}));
}

TEST(Axes, SectionsThatDoNotFitAreRefused) {
  EXPECT_THROW(axis_of({16, 24, 25}, false, 64), Error);
  EXPECT_THROW(axis_of({-16, 40, 40}, false, 64), Error);
  EXPECT_THROW(axis_of({64}, false, 64), Error);
  EXPECT_THROW(axis_of({32, 32}, true, 64), Error);
}

}  // namespace
}  // namespace ropewalk::plan
