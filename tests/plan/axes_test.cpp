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

TEST(Axes, SectionsThatDoNotFitAreRefused) {
  EXPECT_THROW(axis_of({16, 24, 25}, false, 64), Error);
  EXPECT_THROW(axis_of({-16, 40, 40}, false, 64), Error);
  EXPECT_THROW(axis_of({64}, false, 64), Error);
  EXPECT_THROW(axis_of({32, 32}, true, 64), Error);
}

}  // namespace
}  // namespace ropewalk::plan
