// Sine and cosine of a reduced phase: one polynomial per precision, the same order of fused
// multiply-adds on every machine, so the bits agree between scalar, SIMD and CUDA.
//
// The phase plus 1/8 turn gives the quadrant in its top two bits; what remains lies in ±1/8 turn.
// Its top bits become t, in half turns, |t| ≤ 1/4, by one integer-to-float conversion. With z = t²
//     sin πt = π·t + t·z·S(z),   cos πt = 1 + t·(c1·t + t·z·G(z)).
// The second form of the cosine costs one product more than 1 + z·C(z) and rounds less: its largest
// error is 6.20e-8 against 6.87e-8.
//
// Bounds, all roundings and the truncation of the remainder included (tools/check_sincos.cpp):
//     float32   |Δsin| ≤ 5.73e-8, |Δcos| ≤ 6.20e-8    over all 2^32 remainders in ±1/8 turn
//     float64   |Δsin| ≤ 1.08e-16, |Δcos| ≤ 1.15e-16  largest of 3·10^8 random, 4·10^7 structured
// (over a whole turn the larger of the two for both, since quadrants swap them).
// At phase 0 the results are exactly 0 and 1; no result exceeds 1 in magnitude.
//
// Coefficients: minimax (Remez, 50 digits) of sin πt − π·t over t³, t⁵, … and of cos πt − 1
// over t², t⁴, … on 0 ≤ t ≤ 1/4 in the absolute error, rounded to the working precision one at a
// time, lowest power first, the rest refitted after each rounding. In single precision a random
// search over neighbouring floats followed, π's factor included, in which a candidate was kept only
// if its largest error with every rounding counted was smaller.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace ropewalk {

/// Quadrant of a phase, 0 … 3, after the 1/8 turn is added.
ROPEWALK_HD std::uint32_t quadrant_of(std::uint64_t phase) {
  return static_cast<std::uint32_t>((phase + (std::uint64_t{1} << 61)) >> 62);
}
/// The remainder in units of 2^-34 turn: the top 32 of its bits.
ROPEWALK_HD std::int32_t remainder32(std::uint64_t phase) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(phase >> 30));
}
/// The remainder in units of 2^-66 turn.
ROPEWALK_HD std::int64_t remainder64(std::uint64_t phase) {
  return static_cast<std::int64_t>(phase << 2);
}

/// Scales of the two remainders to half turns.
inline constexpr float kHalfTurns32 = 0x1p-33f;
inline constexpr double kHalfTurns64 = 0x1p-65;

/// Coefficients, highest power of z first. Functions, since device code reads no host arrays.
template <class Real>
struct SincosCoefficients;

template <>
struct SincosCoefficients<float> {
  static constexpr int kCosTerms = 3;
  static constexpr int kSinTerms = 3;
  ROPEWALK_HD static constexpr float cos_term(int i) {
    constexpr float terms[kCosTerms] = {0x1.d5289ep-3f, -0x1.55b30ep+0f, 0x1.03c1b0p+2f};
    return terms[i];
  }
  ROPEWALK_HD static constexpr float sin_term(int i) {
    constexpr float terms[kSinTerms] = {-0x1.2bd27ep-1f, 0x1.465174p+1f, -0x1.4abb7ep+2f};
    return terms[i];
  }
  static constexpr float kCosFirst = -0x1.3bd3ccp+2f;
  static constexpr float kPi = 0x1.921fb4p+1f;  // of the two floats around π, the better one here
};

template <>
struct SincosCoefficients<double> {
  static constexpr int kCosTerms = 6;
  static constexpr int kSinTerms = 6;
  ROPEWALK_HD static constexpr double cos_term(int i) {
    constexpr double terms[kCosTerms] = {-0x1.afee49c648178p-14, 0x1.f9c3d3caabf3bp-10,
                                         -0x1.a6d1e138cec3fp-6,  0x1.e1f506749a430p-3,
                                         -0x1.55d3c7e3bf5abp+0,  0x1.03c1f081b5a4fp+2};
    return terms[i];
  }
  ROPEWALK_HD static constexpr double sin_term(int i) {
    constexpr double terms[kSinTerms] = {0x1.e33135cafb5c5p-12, -0x1.e2fe094d38fadp-8,
                                         0x1.50782cec0b402p-4,  -0x1.32d2ccdf7c450p-1,
                                         0x1.466bc67754a63p+1,  -0x1.4abbce625be06p+2};
    return terms[i];
  }
  static constexpr double kCosFirst = -0x1.3bd3cc9be45dep+2;
  static constexpr double kPi = 0x1.921fb54442d18p+1;
};

/// c = cos, s = sin of t half turns in quadrant q. V supplies lanes: Real, Quadrant, set, mul, fma
/// and by_quadrant (V::by_quadrant(q, cos, sin, c, s): (c, s), (−s, c), (−c, −s), (s, −c)).
template <class V>
ROPEWALK_HD void sincos_of_turn(typename V::Real t, typename V::Quadrant q, typename V::Real& c,
                                typename V::Real& s) {
  using K = SincosCoefficients<typename V::Compute>;
  const typename V::Real z = V::mul(t, t);
  const typename V::Real cube = V::mul(t, z);
  typename V::Real cosine = V::set(K::cos_term(0));
  for (int i = 1; i < K::kCosTerms; ++i) cosine = V::fma(cosine, z, V::set(K::cos_term(i)));
  cosine = V::fma(t, V::set(K::kCosFirst), V::mul(cube, cosine));
  cosine = V::fma(t, cosine, V::set(1));
  typename V::Real sine = V::set(K::sin_term(0));
  for (int i = 1; i < K::kSinTerms; ++i) sine = V::fma(sine, z, V::set(K::sin_term(i)));
  sine = V::fma(t, V::set(K::kPi), V::mul(cube, sine));
  V::by_quadrant(q, cosine, sine, c, s);
}

}  // namespace ropewalk
