#include "verify/number.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ropewalk::verify {
namespace {

int width_of(Dtype dtype) noexcept { return static_cast<int>(8 * size_of(dtype)); }

std::uint64_t sign_mask(Dtype dtype) noexcept { return std::uint64_t{1} << (width_of(dtype) - 1); }

std::uint64_t exponent_mask(Dtype dtype) noexcept {
  const int fraction = format_of(dtype).precision - 1;
  return (sign_mask(dtype) - 1) & ~((std::uint64_t{1} << fraction) - 1);
}

bool nan_bits(Dtype dtype, std::uint64_t bits) noexcept {
  return (bits & (sign_mask(dtype) - 1)) > exponent_mask(dtype);
}

}  // namespace

Quad unit_roundoff(Dtype dtype) noexcept { return scale_by_power(1, -format_of(dtype).precision); }

Quad smallest_subnormal(Dtype dtype) noexcept {
  const Format format = format_of(dtype);
  return scale_by_power(1, format.min_exponent - format.precision + 1);
}

Quad largest_finite(Dtype dtype) noexcept {
  const Format format = format_of(dtype);
  return scale_by_power(2 - scale_by_power(1, 1 - format.precision), format.max_exponent);
}

Quad overflow_threshold(Dtype dtype) noexcept {
  const Format format = format_of(dtype);
  return scale_by_power(2 - scale_by_power(1, -format.precision), format.max_exponent);
}

std::uint64_t load_bits(Dtype dtype, const void* address) noexcept {
  switch (size_of(dtype)) {
    case 2: {
      std::uint16_t bits;
      std::memcpy(&bits, address, sizeof bits);
      return bits;
    }
    case 4: {
      std::uint32_t bits;
      std::memcpy(&bits, address, sizeof bits);
      return bits;
    }
    default: {
      std::uint64_t bits;
      std::memcpy(&bits, address, sizeof bits);
      return bits;
    }
  }
}

void store_bits(Dtype dtype, void* address, std::uint64_t bits) noexcept {
  switch (size_of(dtype)) {
    case 2: {
      const auto narrow = static_cast<std::uint16_t>(bits);
      std::memcpy(address, &narrow, sizeof narrow);
      return;
    }
    case 4: {
      const auto narrow = static_cast<std::uint32_t>(bits);
      std::memcpy(address, &narrow, sizeof narrow);
      return;
    }
    default: std::memcpy(address, &bits, sizeof bits); return;
  }
}

Quad decode(Dtype dtype, std::uint64_t bits) noexcept {
  // The two wide formats are the compiler's own; for the narrow ones the definition is spelled out.
  if (dtype == Dtype::float64) return std::bit_cast<double>(bits);
  if (dtype == Dtype::float32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const Format format = format_of(dtype);
  const int fraction_bits = format.precision - 1;
  const auto fraction = static_cast<int>(bits & ((std::uint64_t{1} << fraction_bits) - 1));
  const auto biased = static_cast<int>((bits & exponent_mask(dtype)) >> fraction_bits);
  const bool negative = (bits & sign_mask(dtype)) != 0;
  Quad value;
  if (biased == 2 * format.max_exponent + 1) {
    value = fraction != 0 ? __builtin_nan("") : __builtin_inf();
  } else if (biased == 0) {
    value = scale_by_power(fraction, format.min_exponent - fraction_bits);
  } else {
    value = scale_by_power(fraction + (1 << fraction_bits),
                           biased - format.max_exponent - fraction_bits);
  }
  return negative ? -value : value;
}

Quad load_value(Dtype dtype, const void* address) noexcept {
  return decode(dtype, load_bits(dtype, address));
}

Quad round_to(Dtype dtype, Quad value) noexcept {
  if (!is_finite(value) || value == 0) return value;
  const Format format = format_of(dtype);
  const int exponent = std::max(exponent_of(value), format.min_exponent);
  const int quantum = exponent - format.precision + 1;
  const Quad rounded = scale_by_power(round_to_integer(scale_by_power(value, -quantum)), quantum);
  if (magnitude(rounded) > largest_finite(dtype)) {
    return value < 0 ? -Quad(__builtin_inf()) : Quad(__builtin_inf());
  }
  // A result that rounded to zero keeps its sign.
  return rounded == 0 && value < 0 ? -Quad(0) : rounded;
}

std::uint64_t encode(Dtype dtype, Quad value) noexcept {
  const Format format = format_of(dtype);
  const int fraction_bits = format.precision - 1;
  if (is_nan(value)) return exponent_mask(dtype) | (std::uint64_t{1} << (fraction_bits - 1));
  const Quad rounded = round_to(dtype, value);
  const bool negative = std::signbit(static_cast<double>(rounded));
  const std::uint64_t sign = negative ? sign_mask(dtype) : 0;
  if (rounded == 0) return sign;
  if (!is_finite(rounded)) return sign | exponent_mask(dtype);
  const Quad size = magnitude(rounded);
  const int exponent = exponent_of(size);
  if (exponent < format.min_exponent) {
    return sign |
           static_cast<std::uint64_t>(scale_by_power(size, fraction_bits - format.min_exponent));
  }
  const auto significand =
      static_cast<std::uint64_t>(scale_by_power(size, fraction_bits - exponent));
  const int biased = exponent + format.max_exponent;
  return sign | (static_cast<std::uint64_t>(biased) << fraction_bits) |
         (significand - (std::uint64_t{1} << fraction_bits));
}

std::uint64_t canonical_bits(Dtype dtype, std::uint64_t bits) noexcept {
  return nan_bits(dtype, bits) ? encode(dtype, __builtin_nan("")) : bits;
}

}  // namespace ropewalk::verify
