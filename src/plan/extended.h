// Numbers of about 106 bits, as the unevaluated sum of two doubles, with exp, log and pow.
//
// A schedule evaluates its formula here and rounds once at the end, so the frequencies of a plan
// are the same on every machine: nothing below calls the platform's math library except fma,
// ldexp and frexp, which are exact or correctly rounded everywhere.
// Sums and products are those of T. J. Dekker, "A floating-point technique for extending the
// available precision", Numerische Mathematik 18 (1971).
#pragma once

#include <cmath>

namespace ropewalk::plan {

/// hi + lo with |lo| ≤ ½ ulp(hi). Relative error of one operation below 2^-100.
struct Extended {
  double hi = 0.0;
  double lo = 0.0;

  constexpr Extended() = default;
  constexpr Extended(double value) : hi(value) {}  // NOLINT(google-explicit-constructor): exact
  constexpr Extended(double high, double low) : hi(high), lo(low) {}
};

namespace extended_detail {

/// Exact sum; needs |a| ≥ |b| or a = 0.
inline Extended fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

inline Extended two_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

inline Extended two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

}  // namespace extended_detail

inline Extended operator-(Extended a) { return {-a.hi, -a.lo}; }

inline Extended operator+(Extended a, Extended b) {
  const Extended high = extended_detail::two_sum(a.hi, b.hi);
  const Extended low = extended_detail::two_sum(a.lo, b.lo);
  const Extended sum = extended_detail::fast_two_sum(high.hi, high.lo + low.hi);
  return extended_detail::fast_two_sum(sum.hi, sum.lo + low.lo);
}

inline Extended operator-(Extended a, Extended b) { return a + (-b); }

inline Extended operator*(Extended a, Extended b) {
  const Extended product = extended_detail::two_product(a.hi, b.hi);
  const double cross = a.hi * b.lo + a.lo * b.hi;
  return extended_detail::fast_two_sum(product.hi, product.lo + cross);
}

inline Extended operator/(Extended a, Extended b) {
  const double first = a.hi / b.hi;
  const Extended rest = a - b * Extended(first);
  const double second = rest.hi / b.hi;
  const Extended left = rest - b * Extended(second);
  const double third = left.hi / b.hi;
  return extended_detail::fast_two_sum(first, second) + Extended(third);
}

inline bool operator<(Extended a, Extended b) {
  return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}
inline bool operator>(Extended a, Extended b) { return b < a; }

/// log 2 and 2π to 106 bits.
inline constexpr Extended kLog2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
inline constexpr Extended kTwoPi{0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};

// Relative errors: verify/tolerance.h, extended_error.
[[nodiscard]] Extended exp(Extended x);
[[nodiscard]] Extended log(Extended x);   ///< x > 0 and normal
[[nodiscard]] Extended sqrt(Extended x);  ///< x > 0
/// base^exponent = exp(exponent · log base).
[[nodiscard]] Extended pow(Extended base, Extended exponent);  ///< base > 0
[[nodiscard]] Extended floor(Extended x);
[[nodiscard]] Extended ceil(Extended x);

/// Nearest double.
[[nodiscard]] inline double to_double(Extended x) { return x.hi + x.lo; }
/// Nearest float, without the double rounding of static_cast<float>(to_double(x)).
[[nodiscard]] float to_float(Extended x);

}  // namespace ropewalk::plan
