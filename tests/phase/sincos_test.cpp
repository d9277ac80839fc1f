// The polynomials against long double at the exact phase.
#include "phase/sincos.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "phase/scalar_lanes.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

constexpr long double kTwoPi = 6.283185307179586476925286766559005768L;

template <class Real>
struct Errors {
  long double cos = 0;
  long double sin = 0;
  Real largest = 0;

  void add(std::uint64_t phase) {
    using Lane = ScalarLanes<Real>;
    Real t, c, s;
    typename Lane::Quadrant q;
    Lane::split_phase(&phase, t, q);
    sincos_of_turn<Lane>(t, q, c, s);
    const long double angle = static_cast<long double>(phase) * 0x1p-64L * kTwoPi;
    cos = std::max(cos, std::fabs(static_cast<long double>(c) - cosl(angle)));
    sin = std::max(sin, std::fabs(static_cast<long double>(s) - sinl(angle)));
    largest = std::max({largest, std::fabs(c), std::fabs(s)});
  }
};

template <class Real>
Errors<Real> measure(int count) {
  Errors<Real> errors;
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < count; ++i) errors.add(random());
  for (std::uint64_t eighth = 0; eighth < 8; ++eighth) {  // where quadrants meet
    for (std::uint64_t step = 0; step < 4096; ++step) {
      errors.add((eighth << 61) + step * (std::uint64_t{1} << 30));
      errors.add((eighth << 61) - step * (std::uint64_t{1} << 30));
      errors.add((eighth << 61) + step);
      errors.add((eighth << 61) - step);
    }
  }
  return errors;
}

TEST(Sincos, Float32StaysWithinItsBound) {
  const Errors<float> errors = measure<float>(3'000'000);
  std::printf("float32: |Δcos| %.3Lg, |Δsin| %.3Lg of %.3g\n", errors.cos, errors.sin,
              verify::kTrigError32);
  // Over a whole turn each of the two results comes from either polynomial.
  EXPECT_LE(std::max(errors.cos, errors.sin),
            static_cast<long double>(std::max(verify::kPolynomialCos32, verify::kPolynomialSin32)));
  EXPECT_LE(errors.cos, static_cast<long double>(verify::kTrigError32));
  EXPECT_LE(errors.largest, 1.0f);
}

TEST(Sincos, Float64StaysWithinItsBound) {
  const Errors<double> errors = measure<double>(1'000'000);
  std::printf("float64: |Δcos| %.3Lg, |Δsin| %.3Lg of %.3g\n", errors.cos, errors.sin,
              verify::kTrigError64);
  // The reference's own angle is rounded to 64 bits: up to 3.4e-19 of a radian of 2π.
  EXPECT_LE(errors.cos, static_cast<long double>(verify::kTrigError64));
  EXPECT_LE(errors.sin, static_cast<long double>(verify::kTrigError64));
  EXPECT_LE(errors.largest, 1.0);
}

TEST(Sincos, QuarterTurnsAreExact) {
  for (std::uint64_t quarter = 0; quarter < 4; ++quarter) {
    const std::uint64_t phase = quarter << 62;
    float t, c, s;
    std::uint32_t q = 0;
    ScalarLanes<float>::split_phase(&phase, t, q);
    sincos_of_turn<ScalarLanes<float>>(t, q, c, s);
    constexpr float kCos[] = {1, 0, -1, 0};
    constexpr float kSin[] = {0, 1, 0, -1};
    EXPECT_EQ(c, kCos[quarter]);
    EXPECT_EQ(s, kSin[quarter]);
  }
}

}  // namespace
}  // namespace ropewalk
