// The reduced phase against 128-bit integer arithmetic done the long way.
#include "phase/phase.h"

#include <gtest/gtest.h>

#include <random>

namespace ropewalk {
namespace {

/// p · (fraction · 2^64 + low) mod 2^128, shifted down: schoolbook, one bit of p at a time.
std::uint64_t long_way(std::int64_t position, std::uint64_t fraction, std::uint64_t low) {
  using Word = unsigned __int128;
  const Word f = (Word{fraction} << 64) | low;
  Word sum = 0;
  const Word p = static_cast<Word>(static_cast<__int128>(position));
  for (int bit = 0; bit < 128; ++bit) {
    if (((p >> bit) & 1) != 0) sum += f << bit;
  }
  return static_cast<std::uint64_t>(sum >> 64);
}

TEST(Phase, WithOneWordIsTheWrappedProduct) {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 20000; ++i) {
    const auto position = static_cast<std::int64_t>(random()) >> (i % 60);
    const std::uint64_t fraction = random();
    EXPECT_EQ(phase_of(position, fraction), long_way(position, fraction, 0));
  }
}

TEST(Phase, WithTwoWordsIsTheTopOfTheWrappedProduct) {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 20000; ++i) {
    const auto position = static_cast<std::int64_t>(random()) >> (i % 60);
    const std::uint64_t fraction = random(), low = random();
    EXPECT_EQ(phase_of(position, fraction, low), long_way(position, fraction, low))
        << position << ' ' << fraction << ' ' << low;
  }
}

TEST(Phase, OfAnIntegerValuedFloatPositionIsThatOfTheInteger) {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t position = (static_cast<std::int64_t>(random()) >> 28);
    const std::uint64_t fraction = random();
    const FixedPosition fixed = fixed_position(static_cast<double>(position));
    EXPECT_EQ(fixed.fraction, 0u);
    EXPECT_EQ(phase_of(fixed, fraction, 0, -3), phase_of(position, fraction));
  }
}

TEST(Phase, FixedPositionKeepsEveryBitAboveTwoToTheMinus64) {
  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> uniform(-1000, 1000);
  for (int i = 0; i < 20000; ++i) {
    const double value = uniform(random);
    const FixedPosition fixed = fixed_position(value);
    const long double back =
        static_cast<long double>(fixed.whole) + static_cast<long double>(fixed.fraction) * 0x1p-64L;
    EXPECT_EQ(static_cast<double>(back), value);
  }
  EXPECT_EQ(fixed_position(-1e-30).whole, 0);
  EXPECT_EQ(fixed_position(-1e-30).fraction, 0u);
  EXPECT_EQ(fixed_position(-0.25).whole, -1);
  EXPECT_EQ(fixed_position(-0.25).fraction, std::uint64_t{3} << 62);
}

}  // namespace
}  // namespace ropewalk
