#include <gtest/gtest.h>

#include "ropewalk/config.h"
#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"
#include "ropewalk/types.h"
#include "verify/compare.h"
#include "verify/oracle.h"

namespace ropewalk {
namespace {

PlanSpec relative_spec(PlanSpec spec) { return relative_plan(RotaryPlan(std::move(spec))).spec(); }

TEST(RelativePlan, LeavesOutWhatTheDataHasAlready) {
  PlanSpec spec = make_plan(16, 10000.0, 8, Pairing::interleaved_to_half).spec();
  spec.amplitude = 1.25;
  spec.arithmetic = Arithmetic::parity_p2;
  spec.sign = -1;
  spec.window.offset = 4;
  PlanSpec expected = spec;
  expected.amplitude = 1.0;
  expected.arithmetic = Arithmetic::exact;
  expected.pairing = Pairing::half;
  EXPECT_EQ(relative_spec(spec), expected);
}

TEST(RelativePlan, IsThePlanItselfWhereNothingIsToLeaveOut) {
  for (const Pairing pairing : {Pairing::half, Pairing::interleaved}) {
    const RotaryPlan plan = make_plan(64, 500000.0, 0, pairing);
    EXPECT_EQ(relative_plan(plan), plan);
  }
}

TEST(RelativePlan, ThereAndBackIsWhereItWas) {
  const RotaryPlan plan = make_plan(32, 10000.0, 0, Pairing::interleaved_to_half);
  std::vector<double> there(3 * 32);
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = static_cast<double>(i % 7) - 3.0;
  std::vector<double> direct = there;
  const auto in_place = [](std::vector<double>& data) {
    return std::array{Rotation::in_place(bthd(data.data(), Dtype::float64, 1, 3, 1, 32))};
  };
  rotate(plan, in_place(there), Positions::from_offset(100'000));
  rotate(relative_plan(plan), in_place(there),
         Positions::from_tokens(std::vector<std::int64_t>(3, -99'000)));
  rotate(plan, in_place(direct), Positions::from_offset(1'000));
  const double bound =
      3.0 *
      (verify::unit_input_bound(Dtype::float64) +
       static_cast<double>(verify::carried_error(1.0, verify::unit_input_bound(Dtype::float64))) *
           2);
  for (std::size_t i = 0; i < there.size(); ++i) EXPECT_LE(std::abs(there[i] - direct[i]), bound);
}

}  // namespace
}  // namespace ropewalk
