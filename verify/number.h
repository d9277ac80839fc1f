// Elements of every dtype as exact Quad values, and rounding back. Written from the formats'
// definitions and shared with no conversion of the library, so that it can judge them.
#pragma once

#include <cstdint>

#include "ropewalk/types.h"
#include "verify/quad.h"

namespace ropewalk::verify {

/// An IEEE-like binary format: significand bits (the hidden one included) and the exponents of
/// the smallest and the largest normal number.
struct Format {
  int precision;
  int min_exponent;
  int max_exponent;
};

[[nodiscard]] constexpr Format format_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::float64: return {53, -1022, 1023};
    case Dtype::float32: return {24, -126, 127};
    case Dtype::float16: return {11, -14, 15};
    case Dtype::bfloat16: return {8, -126, 127};
  }
  return {};
}

/// 2^-precision: the largest relative error of one rounding to nearest.
[[nodiscard]] Quad unit_roundoff(Dtype dtype) noexcept;
[[nodiscard]] Quad smallest_subnormal(Dtype dtype) noexcept;
[[nodiscard]] Quad largest_finite(Dtype dtype) noexcept;
/// Magnitudes from here on round to infinity.
[[nodiscard]] Quad overflow_threshold(Dtype dtype) noexcept;

/// The element at `address` (which needs no alignment), exactly; NaN and infinity stay so.
[[nodiscard]] Quad load_value(Dtype dtype, const void* address) noexcept;
/// The same element's bits, in the low bits of the result.
[[nodiscard]] std::uint64_t load_bits(Dtype dtype, const void* address) noexcept;
void store_bits(Dtype dtype, void* address, std::uint64_t bits) noexcept;

/// The nearest number of the format, ties to even; infinity from overflow_threshold on.
[[nodiscard]] Quad round_to(Dtype dtype, Quad value) noexcept;
/// Bits of round_to(dtype, value); NaN becomes the quiet NaN with an empty payload.
[[nodiscard]] std::uint64_t encode(Dtype dtype, Quad value) noexcept;
/// The value of an element's bits.
[[nodiscard]] Quad decode(Dtype dtype, std::uint64_t bits) noexcept;

/// Bits with every NaN replaced by one: what two machines must agree on.
[[nodiscard]] std::uint64_t canonical_bits(Dtype dtype, std::uint64_t bits) noexcept;

}  // namespace ropewalk::verify
