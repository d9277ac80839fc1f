// ω → F = ω / 2π as signed fixed point, by integer multiplication with a constant.
#include <array>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "ropewalk/plan.h"

namespace ropewalk {
namespace {

// floor(2^254 / 2π): 252 significant bits of 1/2π = 0.159…, most significant word first. With the
// product taken in full, F is exact to 2^-128 for every |ω| < 2^32: the constant's own error is
// below 2^-254, times ω below 2^-222.
constexpr std::array<std::uint64_t, 4> kInverseTwoPi = {0x0a2f9836e4e44152u, 0x9fc2757d1f534ddcu,
                                                        0x0db6295993c43904u, 0x1fe5163abdebbc56u};

using Wide = std::array<std::uint64_t, 5>;  // least significant word first

constexpr Wide multiply(std::uint64_t factor) {
  Wide product{};
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned __int128 term =
        static_cast<unsigned __int128>(factor) * kInverseTwoPi[3 - i] + carry;
    product[i] = static_cast<std::uint64_t>(term);
    carry = static_cast<std::uint64_t>(term >> 64);
  }
  product[4] = carry;
  return product;
}

/// The 64 bits of `value` from bit `first` up; bits outside are zero.
constexpr std::uint64_t bits_from(const Wide& value, int first) {
  std::uint64_t word = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const int at = first + bit;
    if (at < 0 || at >= 320) continue;
    const auto index = static_cast<std::size_t>(at / 64);
    word |= ((value[index] >> (at % 64)) & 1u) << bit;
  }
  return word;
}

}  // namespace

Turns turns_from_frequency(double omega) {
  require(std::isfinite(omega) && std::fabs(omega) < 0x1p32,
          "frequency: expected a finite value below 2^32 in magnitude, got {}", omega);
  if (omega == 0) return {};
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(omega), &exponent);
  const auto factor = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
  exponent -= 53;
  // |ω| / 2π = product · 2^(exponent − 254): its binary point lies at bit 254 − exponent.
  const Wide product = multiply(factor);
  const int point = 254 - exponent;
  Turns turns;
  turns.low = bits_from(product, point - 128);
  turns.fraction = bits_from(product, point - 64);
  turns.whole = static_cast<std::int64_t>(bits_from(product, point));
  if (omega < 0) {  // two's complement of the 192-bit value
    turns.low = ~turns.low + 1;
    const std::uint64_t carry = turns.low == 0 ? 1 : 0;
    turns.fraction = ~turns.fraction + carry;
    const std::uint64_t carry_whole = carry == 1 && turns.fraction == 0 ? 1 : 0;
    turns.whole = static_cast<std::int64_t>(~static_cast<std::uint64_t>(turns.whole) + carry_whole);
  }
  return turns;
}

}  // namespace ropewalk
