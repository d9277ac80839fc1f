// Every tolerance of the project. Nothing else may state how far a result can be from the truth.
#pragma once

#include "ropewalk/types.h"
#include "verify/number.h"

namespace ropewalk::verify {

/// Largest |computed cos − cos| and |computed sin − sin| of the exact arithmetic at any valid
/// position: phase, polynomial and rounding together.
inline constexpr double kTrigError32 = 7.5e-8;  ///< float32, float16 and bfloat16 data
inline constexpr double kTrigError64 = 4e-16;   ///< float64 data

/// The float32 polynomials of src/phase/sincos.h alone, at the exact phase within 1/8 turn of a
/// quadrant's middle: the largest errors over all 2^32 remainders (tools/check_sincos.cpp). Over a
/// whole turn cosines and sines come from either.
inline constexpr double kPolynomialCos32 = 6.20e-8;
inline constexpr double kPolynomialSin32 = 5.73e-8;

[[nodiscard]] constexpr double trig_error(Dtype dtype) noexcept {
  return dtype == Dtype::float64 ? kTrigError64 : kTrigError32;
}

/// The type in which a dtype's products and sums are computed.
[[nodiscard]] constexpr Dtype compute_type(Dtype dtype) noexcept {
  return dtype == Dtype::float64 ? Dtype::float64 : Dtype::float32;
}

/// An exact output element and what it was made of: y = amplitude · (x_cos · c ± x_sin · s).
struct ExactElement {
  Quad y = 0;
  Quad x_cos = 0;  ///< the input that is multiplied by the cosine
  Quad x_sin = 0;  ///< the input that is multiplied by the sine
  Quad c = 1;      ///< exact cosine, without amplitude
  Quad s = 0;      ///< exact sine, without amplitude
};

/// How far an output element may be from e.y in the exact arithmetic, for finite input and output:
///
///   u_out·|y|                     the rounding to the output type
/// + δ·A·(|x_cos| + |x_sin|)       cosine and sine are off by at most δ = trig_error
/// + u_c·(A·|x_sin·s| + |y|)       one product and one fused multiply-add in the compute type
/// + 2·u_c·A·(|x_cos·c| + |x_sin·s|)  only where A ≠ 1: A is rounded to the compute type, and so
///                                 is each product of A with a cosine or a sine
/// + η_c + η_out/2                 underflow: smallest subnormals of compute and output type
///
/// Terms of second order (u², u·δ) are left out: they are below 1e-6 of the first term.
[[nodiscard]] inline Quad exact_bound(Dtype dtype, double amplitude,
                                      const ExactElement& e) noexcept {
  const Dtype compute = compute_type(dtype);
  const Quad u_out = unit_roundoff(dtype);
  const Quad u_c = unit_roundoff(compute);
  const Quad a = magnitude(amplitude);
  const Quad y = magnitude(e.y);
  const Quad cos_part = a * magnitude(e.x_cos * e.c);
  const Quad sin_part = a * magnitude(e.x_sin * e.s);
  Quad bound = u_out * y + trig_error(dtype) * a * (magnitude(e.x_cos) + magnitude(e.x_sin)) +
               u_c * (sin_part + y) + smallest_subnormal(compute) + smallest_subnormal(dtype) / 2;
  if (a != 1) bound += 2 * u_c * (cos_part + sin_part);
  return bound;
}

/// Whether an infinite input meets a cosine or sine so near to zero that the computed one may be
/// zero: infinity times it is then infinity or NaN, and the result either.
[[nodiscard]] inline bool may_be_nan_or_infinite(Dtype dtype, const ExactElement& e) noexcept {
  const auto vanishing = [dtype](Quad x, Quad factor) {
    return is_infinite(x) && factor != 0 && magnitude(factor) <= trig_error(dtype);
  };
  return vanishing(e.x_cos, e.c) || vanishing(e.x_sin, e.s);
}

/// How far a cosine or sine of a parity table may be from that of the exact product
/// position × (fp32 model frequency). The recipe rounds the position and the product to fp32, which
/// moves the angle by 2·u·|angle| (hence the growth with position that parity reproduces on
/// purpose), then the cosine, the amplitude and their product, then to the dtype where the class
/// says so (P0, P1; `stored` is float32 otherwise). P4 computes in float64 throughout.
[[nodiscard]] inline Quad parity_table_bound(Quad angle, double amplitude, Dtype compute,
                                             Dtype stored) noexcept {
  const Quad u = unit_roundoff(compute);
  const Quad a = magnitude(amplitude);
  const Quad before_storing = a * (2 * u * magnitude(angle) + 3 * u);
  return before_storing + unit_roundoff(stored) * a * (1 + 2 * u * magnitude(angle)) +
         smallest_subnormal(stored);
}

/// How far the recipe of other implementations may be from the exact result: float32 frequencies
/// and angles, tables in float32 or in the type of the data, products rounded to that type. With u
/// the unit roundoff of the data's type and u32 that of float32 (u, where the data are float64):
///
///   angle   u32·|angle|·(kRecipeAngleRoundings + ln base)
///   table   kRecipeTableRoundings·u32 + u
///   output  u·(|x0| + |x1|) + kRecipeOutputRoundings·u·|y|
///
/// Of an angle: position and product one each, the power and its reciprocal two each (good to one
/// unit in the last place), the exponent's own rounding times ln base. Of a table: the function,
/// and the rounding to the type of the data. Of an output: products, their sum, the result.
/// Angle and table count times |x0| + |x1|. `ropewalk bench --against` judges by it
/// (python/ropewalk/bench/judge.py reads the three numbers here).
inline constexpr double kRecipeAngleRoundings = 6;
inline constexpr double kRecipeTableRoundings = 3;
inline constexpr double kRecipeOutputRoundings = 2;

/// What exact_bound comes to, whatever the position, where no input is beyond 1 in magnitude and
/// the amplitude is 1: then |y| ≤ √2 and |x_cos| + |x_sin| ≤ 2.
[[nodiscard]] inline double unit_input_bound(Dtype dtype) noexcept {
  constexpr double kRootTwo = 1.4142135623730952;
  const auto u_out = static_cast<double>(unit_roundoff(dtype));
  const auto u_c = static_cast<double>(unit_roundoff(compute_type(dtype)));
  return kRootTwo * u_out + 2 * trig_error(dtype) + (1 + kRootTwo) * u_c;
}

/// Half a unit of the last of so many decimals: how far a value may be from one that was printed.
[[nodiscard]] constexpr double printed_decimals(int decimals) noexcept {
  double half_unit = 0.5;
  for (int i = 0; i < decimals; ++i) half_unit /= 10;
  return half_unit;
}

/// The same relative to the value, for values printed with so many significant digits.
[[nodiscard]] constexpr double printed_digits(int digits) noexcept {
  return printed_decimals(digits - 1);
}

/// The relative error of `count` roundings to nearest, one after the other. For a short formula
/// that two programs evaluate, each rounding where it likes: count those of both. A function that
/// is good to one unit in the last place counts as two.
[[nodiscard]] inline double roundings(Dtype dtype, int count) noexcept {
  return count * static_cast<double>(unit_roundoff(dtype));
}

/// The relative error of log and sqrt of src/plan/extended.h, and with an argument of exp (for pow
/// exponent · log base) that of exp and pow: an argument of 106 bits makes exp uncertain by itself.
[[nodiscard]] constexpr double extended_error(double exp_argument = 0) noexcept {
  return (1 + (exp_argument < 0 ? -exp_argument : exp_argument)) * 0x1p-98;
}

/// How far the oracle's own cosines and sines may be from identities that the true ones fulfil.
inline constexpr double kOracleError = 1e-32;

/// Least share of correctly rounded 16-bit outputs on normal data.
inline constexpr double kCorrectlyRoundedShare = 0.9995;

/// What an input error becomes on the way through one more rotation: each output moves by at most
/// (|c| + |s|)·A·error ≤ sqrt(2)·A·error. For the properties that rotate twice.
[[nodiscard]] inline Quad carried_error(double amplitude, Quad input_error) noexcept {
  return Quad(1.4142135623730952) * magnitude(amplitude) * input_error;
}

}  // namespace ropewalk::verify
