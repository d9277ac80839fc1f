// ω → fixed-point turns, against 600-bit values computed with mpmath.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "ropewalk/error.h"
#include "ropewalk/plan.h"

namespace ropewalk {
namespace {

struct Golden {
  double omega;
  Turns turns;
};

constexpr std::array kGolden{
    Golden{1.0, {0x28be60db9391054au, 0x7f09d5f47d4d3770u, 0}},
    Golden{0.5, {0x145f306dc9c882a5u, 0x3f84eafa3ea69bb8u, 0}},
    Golden{0x1.5798ee2308c3ap-27, {0x00000006d5ed56c8u, 0xd1ec5d3292f85503u, 0}},
    Golden{0x1.921fb54442d18p+2, {0xfffffffffffffd30u, 0xea0a394645e27a99u, 0}},
    Golden{0x1.5555555555555p-2, {0x0d94caf3dbdb018du, 0x2c82228cbdbd59d1u, 0}},
    Golden{0x1.fffffffep+31, {0x6ad2a46eeb78d0a9u, 0xfe43617bb98b6df6u, 683565275}},
    Golden{0x1.56e1fc2f8f359p-997, {0, 0, 0}},
    Golden{0x1.bb5fad00ab22cp-1, {0x234855e55644661eu, 0x1937541b2d6ed3e2u, 0}},
    Golden{0x1.e240c9fbe76c9p+16, {0xc21b34465f00376du, 0x950b1fb5d273071du, 19648}},
};

TEST(Turns, EqualTheExactProductToTheLastBit) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(turns_from_frequency(golden.omega), golden.turns) << golden.omega;
  }
}

TEST(Turns, OfANegativeFrequencyAddUpToZero) {
  for (const Golden& golden : kGolden) {
    const Turns plus = golden.turns;
    const Turns minus = turns_from_frequency(-golden.omega);
    const std::uint64_t low = plus.low + minus.low;
    const std::uint64_t carry = low < plus.low ? 1 : 0;
    EXPECT_EQ(low, 0u);
    EXPECT_EQ(plus.fraction + minus.fraction + carry, 0u);
    EXPECT_LE(plus.whole + minus.whole, 0);
    EXPECT_GE(plus.whole + minus.whole, -1);
  }
}

TEST(Turns, RefuseWhatIsNotAFrequency) {
  for (const double bad : {0x1p32, -0x1p32, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW((void)turns_from_frequency(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace ropewalk
