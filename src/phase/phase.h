// position × frequency in wrapping 64-bit turns: the reduction modulo one turn is free and exact.
//
// F = ω/2π is stored as whole + (fraction + low/2^64)/2^64 (ropewalk/plan.h). For an integer
// position p the whole part drops out, and
//     phase = p · fraction                      mod 2^64     (float32, float16, bfloat16 data)
//     phase = p · fraction + ⌊p · low / 2^64⌋   mod 2^64     (float64 data)
// is the reduced phase in units of 2^-64 turn. Negative positions work by two's complement.
// Error of the first form: |p| · 2^-65 turn on average, below |p| · 2^-64: 4.4e-14 rad at
// p = 131 071, 2.4e-8 rad at the limit 2^36. Of the second: below 2^-63 turn at |p| < 2^53.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "ropewalk/plan.h"

namespace ropewalk {

/// Exclusive limits on |position|, with no table.
inline constexpr std::int64_t kPositionLimit = std::int64_t{1} << 36;
inline constexpr std::int64_t kPositionLimitFloat64 = std::int64_t{1} << 53;

/// A position with a fractional part: whole + fraction / 2^64. Not initialised, as tiles keep many.
struct FixedPosition {
  std::int64_t whole;
  std::uint64_t fraction;
};

ROPEWALK_HD std::uint64_t high64(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

ROPEWALK_HD std::uint64_t phase_of(std::int64_t position, std::uint64_t fraction) {
  return static_cast<std::uint64_t>(position) * fraction;
}

/// With the second word of F, for float64 data.
ROPEWALK_HD std::uint64_t phase_of(std::int64_t position, std::uint64_t fraction,
                                   std::uint64_t low) {
  const auto p = static_cast<std::uint64_t>(position);
  const std::uint64_t borrow = position < 0 ? low : 0;
  return p * fraction + high64(p, low) - borrow;
}

/// Fractional positions: the full product with the signed 64.64 F. `low` is 0 except for float64
/// data, so that a float position with an integer value has the bits of the integer position.
ROPEWALK_HD std::uint64_t phase_of(FixedPosition position, std::uint64_t fraction,
                                   std::uint64_t low, std::int64_t whole) {
  return phase_of(position.whole, fraction, low) +
         position.fraction * static_cast<std::uint64_t>(whole) +
         high64(position.fraction, fraction);
}

/// Splits a finite value with |value| < 2^53; bits below 2^-64 of the magnitude are dropped.
ROPEWALK_HD FixedPosition fixed_position(double value) {
  const double magnitude = value < 0 ? -value : value;
  const auto whole = static_cast<std::int64_t>(magnitude);
  const auto fraction =
      static_cast<std::uint64_t>((magnitude - static_cast<double>(whole)) * 0x1p64);
  if (value >= 0) return {whole, fraction};
  return {fraction == 0 ? -whole : -whole - 1, ~fraction + 1};
}

}  // namespace ropewalk
