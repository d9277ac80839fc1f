// Conversions of the 16-bit dtypes: every value one way, and the nearest value the other way.
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace ropewalk {
namespace {

/// The value that the bits of a binary16 mean, from its definition.
double meaning_of_float16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryFloat16WidensToItsMeaning) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double expected = meaning_of_float16(half);
    const float got = to_float(Float16{half});
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      EXPECT_EQ(static_cast<double>(got), expected) << bits;
      EXPECT_EQ(std::signbit(got), std::signbit(expected));
      EXPECT_EQ(to_float16(got).bits, half);
    }
  }
}

TEST(Half, EveryBFloat16SurvivesTheRoundTrip) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = to_float(BFloat16{half});
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(to_bfloat16(value))));
    } else {
      EXPECT_EQ(to_bfloat16(value).bits, half);
    }
  }
}

/// Nearest, ties to even, judged by distance in double among the neighbours of the result.
template <class Half, class From>
void expect_nearest(Half (*round)(From), From value) {
  const Half got = round(value);
  const auto as_double = [](Half half) { return static_cast<double>(to_float(half)); };
  const double exact = static_cast<double>(value);
  const double distance = std::fabs(as_double(got) - exact);
  for (const int step : {-1, 1}) {
    const Half other{static_cast<std::uint16_t>(got.bits + step)};
    if (((other.bits ^ got.bits) & 0x8000) != 0 || !std::isfinite(as_double(other))) continue;
    const double other_distance = std::fabs(as_double(other) - exact);
    ASSERT_LE(distance, other_distance) << value;
    if (distance == other_distance && distance > 0) {
      ASSERT_EQ(got.bits & 1, 0) << value;
    }
  }
}

TEST(Half, RoundingPicksTheNearestAndBreaksTiesToEven) {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 500000; ++i) {
    const float any = float_of(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(any)) continue;
    if (std::fabs(any) < 65504) expect_nearest<Float16, float>(&to_float16, any);
    if (std::fabs(any) < 3e38f) expect_nearest<BFloat16, float>(&to_bfloat16, any);
    // Around float16's range, subnormals and exact ties included.
    const float near_half = std::ldexp(static_cast<float>(static_cast<int>(random() % 8193)),
                                       -26 + static_cast<int>(random() % 28));
    if (near_half < 65504) expect_nearest<Float16, float>(&to_float16, near_half);
  }
}

TEST(Half, FromDoubleRoundsOnce) {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < 200000; ++i) {
    // A tie of the 16-bit type displaced by less than a float can hold.
    const float base = to_float(BFloat16{static_cast<std::uint16_t>(0x3f80 + random() % 128)});
    const double tie = static_cast<double>(base) * (1 + 0x1p-8);
    const double value = tie + (random() % 2 == 0 ? 1 : -1) * std::ldexp(tie, -40);
    expect_nearest<BFloat16, double>(
        +[](double x) { return Round<BFloat16>::from(x); }, value);
    expect_nearest<Float16, double>(
        +[](double x) { return Round<Float16>::from(x); }, value);
  }
}

TEST(Half, LimitsOverflowAndNaN) {
  EXPECT_EQ(to_float16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_float16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(to_float16(0x1p-25f).bits, 0);  // a tie goes to the even zero
  EXPECT_EQ(to_float16(0x1.8p-25f).bits, 1);
  EXPECT_EQ(to_float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(3.4e38f).bits, 0x7f80);
  EXPECT_EQ(to_bfloat16(1e-39f).bits, 0x000b);  // a subnormal is rounded, not flushed
  EXPECT_EQ(to_bfloat16(float_of(0x7f800001u)).bits, 0x7fc0);
}

}  // namespace
}  // namespace ropewalk
