#include "plan/extended.h"

#include <gtest/gtest.h>

#include <cmath>

#include "verify/tolerance.h"

namespace ropewalk::plan {
namespace {

// Right values: 40 digits of exp, log and pow, split into the nearest double and what is left.
struct Value {
  double hi, lo;
};

/// `exp_argument`: what exp was taken of on the way; 0 where it was not.
void expect_close(Extended got, Value right, double exp_argument) {
  const Extended difference = got - Extended(right.hi, right.lo);
  EXPECT_LE(std::fabs(to_double(difference)),
            verify::extended_error(exp_argument) * std::fabs(right.hi));
}

TEST(Extended, LogIsWithinItsBound) {
  expect_close(log(10000.0), {0x1.26bb1bbb55516p+3, -0x1.f48ad494ea3e9p-51}, 0);
  expect_close(log(1.0000001), {0x1.ad7f2847b6492p-24, 0x1.d7f4a57fcf3ddp-80}, 0);
  expect_close(log(1e-5), {-0x1.7069e2aa2aa5bp+3, 0x1.41ab1374499c7p-52}, 0);
}

TEST(Extended, ExpIsWithinItsBound) {
  expect_close(exp(1.0), {0x1.5bf0a8b145769p+1, 0x1.4d57ee2b1013ap-53}, 1);
  expect_close(exp(-13.25), {0x1.d88a13d378348p-20, -0x1.ae28db3d37d63p-75}, -13.25);
  expect_close(exp(80.0), {0x1.55779b984f3ebp+115, 0x1.e45281da54712p+60}, 80);
}

TEST(Extended, PowIsWithinItsBound) {
  expect_close(pow(500000.0, Extended(3.0) / Extended(7.0)),
               {0x1.14f58aca76263p+8, 0x1.aaa7675815465p-48}, 3.0 / 7.0 * std::log(500000.0));
  expect_close(pow(1e6, Extended(-126.0) / Extended(128.0)),
               {0x1.4d1c97f4e952fp-20, 0x1.7edaa708b3063p-75}, 126.0 / 128.0 * std::log(1e6));
  EXPECT_EQ(to_double(pow(12345.0, 0.0)), 1.0);
}

TEST(Extended, SqrtIsWithinItsBound) {
  expect_close(sqrt(2.0), {0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54}, 0);
}

TEST(Extended, FloorAndCeilSeeTheLowPart) {
  EXPECT_EQ(to_double(floor(Extended(8.0, -1e-20))), 7.0);
  EXPECT_EQ(to_double(floor(Extended(8.0, 1e-20))), 8.0);
  EXPECT_EQ(to_double(ceil(Extended(8.0, 1e-20))), 9.0);
  EXPECT_EQ(to_double(ceil(Extended(8.0, -1e-20))), 8.0);
  EXPECT_EQ(to_double(floor(8.75)), 8.0);
}

TEST(Extended, ToFloatRoundsOnce) {
  // Half way between 1 and the next float: the low part decides, and a tie goes to even.
  const double tie = 1.0 + 0x1p-24;
  EXPECT_EQ(to_float(Extended(tie, 0.0)), 1.0f);
  EXPECT_EQ(to_float(Extended(tie, 1e-25)), 1.0f + 0x1p-23f);
  EXPECT_EQ(to_float(Extended(tie, -1e-25)), 1.0f);
  const double odd_tie = 1.0 + 0x3p-24;
  EXPECT_EQ(to_float(Extended(odd_tie, -1e-25)), 1.0f + 0x1p-23f);
  EXPECT_EQ(to_float(Extended(odd_tie, 0.0)), 1.0f + 0x2p-23f);
}

}  // namespace
}  // namespace ropewalk::plan
