#include "measure/check.h"

#include <gtest/gtest.h>

#include "measure/case.h"
#include "verify/random.h"

namespace ropewalk::measure {
namespace {

Case small_case() {
  Case c{make_plan(64)};
  c.tokens = 40;
  c.query_heads = 3;
  c.key_heads = 1;
  c.start = 131'071;
  return c;
}

TEST(Check, RightResultsPass) {
  for (const bool in_place : {false, true}) {
    for (const Layout layout : {Layout::bthd, Layout::bhtd}) {
      for (const std::int64_t lead : {0, 24}) {
        Case c = small_case();
        c.batch = 2;
        c.in_place = in_place;
        c.layout = layout;
        c.query_lead = lead;
        c.key_lead = 3 * lead;
        const Workload workload(c, verify::fresh_seed());
        const verify::Comparison found = check(c, workload);
        EXPECT_TRUE(found.pass()) << found.detail;
        EXPECT_GT(found.computed, 0);
      }
    }
  }
}

TEST(Check, SeveralAxesPass) {
  PlanSpec spec;
  spec.head_dim = 12;
  spec.frequencies = {1.0, 0.5, 0.25, 0.125, 0.0625, 0.03};
  spec.axes = 3;
  spec.axis = {0, 1, 2, 0, 1, 2};
  Case c{RotaryPlan(spec)};
  c.tokens = 50;
  c.dtype = Dtype::float32;
  const verify::Comparison found = check(c, Workload(c, verify::fresh_seed()));
  EXPECT_TRUE(found.pass()) << found.detail;
}

// The check judges the workload by the case it is given: another start is a wrong result.
TEST(Check, AWrongRotationIsFound) {
  const Case right = small_case();
  Case wrong = right;
  wrong.direction = Direction::inverse;
  const Workload workload(right, verify::fresh_seed());
  EXPECT_FALSE(check(wrong, workload).pass());
}

TEST(Check, LeavesInPlaceDataAsItWas) {
  Case c = small_case();
  c.in_place = true;
  const Workload workload(c, verify::fresh_seed());
  ASSERT_TRUE(check(c, workload).pass());
  for (std::size_t i = 0; i < workload.rotations().size(); ++i) {
    EXPECT_TRUE(verify::compare_bits(workload.rotations()[i].out, workload.originals()[i]).pass());
  }
}

TEST(Measure, ReportsBothTimesAndTheFloorsName) {
  const TimingOptions quick{0.002, 20e-6, 3, 20};
  Case c = small_case();
  const Measurement out = measure(c, verify::fresh_seed(), quick);
  ASSERT_TRUE(out.timed) << out.comparison.detail;
  EXPECT_GT(out.rotation.median, 0);
  EXPECT_GT(out.floor.median, 0);
  EXPECT_EQ(out.bytes, 2 * 40 * 4 * 64 * 2);
  EXPECT_EQ(out.residence, "L2");
  c.in_place = true;
  EXPECT_TRUE(measure(c, verify::fresh_seed(), quick).floor_name.starts_with("read-modify-write"));
}

}  // namespace
}  // namespace ropewalk::measure
