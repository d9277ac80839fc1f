// float16 and bfloat16 by value: round to nearest even, subnormals included, NaN made quiet with
// its top payload bits kept: what the conversion instructions do, on every machine.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace ropewalk {

/// Storage types of the 16-bit dtypes: bits, no arithmetic.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

ROPEWALK_HD std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
ROPEWALK_HD float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

ROPEWALK_HD float to_float(BFloat16 x) {
  return float_of(static_cast<std::uint32_t>(x.bits) << 16);
}

ROPEWALK_HD BFloat16 to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  const std::uint32_t nearest_even = 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>((bits + nearest_even) >> 16)};
}

ROPEWALK_HD float to_float(Float16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity, or a NaN that becomes quiet
    const std::uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return float_of(sign | 0x7f800000u | quiet | ((magnitude & 0x3ffu) << 13));
  }
  // Shifted into place the exponent is 112 too small; the product corrects it exactly and
  // normalises subnormals on the way.
  return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));
}

ROPEWALK_HD Float16 to_float16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return {static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  }
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // ≥ 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: the sum with 0.5 rounds to multiples of 2^-24
    const float rounded = float_of(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (bits_of(rounded) - 0x3f000000u))};
  }
  const std::uint32_t nearest_even = 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((magnitude + nearest_even - 0x38000000u) >> 13))};
}

ROPEWALK_HD float to_float(float x) { return x; }

/// double → float rounded to odd: a later rounding to 16 bit is then a single rounding.
ROPEWALK_HD float to_float_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || nearest != nearest) return nearest;
  std::uint32_t bits = bits_of(nearest);
  const double magnitude = value < 0 ? -value : value;
  const double back_magnitude = back < 0 ? -back : back;
  if (back_magnitude > magnitude) bits -= 1;  // truncate toward zero, then set the sticky bit
  return float_of(bits | 1u);
}

template <class Storage>
struct Round;
template <>
struct Round<float> {
  ROPEWALK_HD static float from(float x) { return x; }
  ROPEWALK_HD static float from(double x) { return static_cast<float>(x); }
};
template <>
struct Round<double> {
  ROPEWALK_HD static double from(double x) { return x; }
};
template <>
struct Round<Float16> {
  ROPEWALK_HD static Float16 from(float x) { return to_float16(x); }
  ROPEWALK_HD static Float16 from(double x) { return to_float16(to_float_odd(x)); }
};
template <>
struct Round<BFloat16> {
  ROPEWALK_HD static BFloat16 from(float x) { return to_bfloat16(x); }
  ROPEWALK_HD static BFloat16 from(double x) { return to_bfloat16(to_float_odd(x)); }
};

/// Widens a stored value to the type computed in. Exact.
template <class Compute, class Storage>
ROPEWALK_HD Compute widen(Storage x) {
  if constexpr (sizeof(Storage) == 8) {
    return x;
  } else {
    return static_cast<Compute>(to_float(x));
  }
}

}  // namespace ropewalk
