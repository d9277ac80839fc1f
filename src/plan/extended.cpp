#include "plan/extended.h"

#include <cmath>
#include <limits>

namespace ropewalk::plan {

Extended exp(Extended x) {
  // x = k·log 2 + r with |r| ≤ 0.35; the Taylor terms of r fall below 2^-110 after 27.
  if (x.hi > 709.0) return {std::numeric_limits<double>::infinity(), 0.0};
  if (x.hi < -700.0) return {0.0, 0.0};
  const double k = std::floor(x.hi / kLog2.hi + 0.5);
  const Extended r = x - kLog2 * Extended(k);
  Extended sum(1.0);
  for (int n = 27; n >= 1; --n) sum = Extended(1.0) + r * sum / Extended(static_cast<double>(n));
  const int shift = static_cast<int>(k);
  return {std::ldexp(sum.hi, shift), std::ldexp(sum.lo, shift)};
}

Extended log(Extended x) {
  // x = m · 2^e with m in [√½, √2); log m = 2·atanh(z), z = (m − 1)/(m + 1), |z| < 0.1716.
  int e = 0;
  double m_hi = std::frexp(x.hi, &e);
  if (m_hi < 0x1.6a09e667f3bcdp-1) {
    m_hi *= 2.0;
    --e;
  }
  const Extended m{m_hi, std::ldexp(x.lo, -e)};
  const Extended z = (m - Extended(1.0)) / (m + Extended(1.0));
  const Extended square = z * z;
  Extended sum(0.0);
  for (int n = 45; n >= 1; n -= 2) {
    sum = Extended(1.0) / Extended(static_cast<double>(n)) + square * sum;
  }
  return kLog2 * Extended(static_cast<double>(e)) + Extended(2.0) * z * sum;
}

Extended sqrt(Extended x) {
  // One Newton step from the correctly rounded double root doubles its bits.
  const double root = std::sqrt(x.hi);
  const Extended rest = x - Extended(root) * Extended(root);
  return Extended(root) + rest / Extended(2.0 * root);
}

Extended pow(Extended base, Extended exponent) {
  if (exponent.hi == 0.0) return {1.0};
  return exp(exponent * log(base));
}

Extended floor(Extended x) {
  const double whole = std::floor(x.hi);
  if (whole != x.hi) return {whole};
  return extended_detail::fast_two_sum(whole, std::floor(x.lo));
}

Extended ceil(Extended x) { return -floor(-x); }

float to_float(Extended x) {
  // Round to odd first: a double whose last bit records "inexact" cannot sit on a float's tie.
  double odd = x.hi;
  if (x.lo != 0.0 && std::isfinite(odd)) {
    int exponent = 0;
    const double fraction = std::frexp(odd, &exponent);
    const bool even = std::fmod(std::ldexp(fraction, 53), 2.0) == 0.0;
    if (even) {
      const double towards = x.lo > 0.0 ? std::numeric_limits<double>::infinity()
                                        : -std::numeric_limits<double>::infinity();
      odd = std::nextafter(odd, towards);
    }
  }
  return static_cast<float>(odd);
}

}  // namespace ropewalk::plan
