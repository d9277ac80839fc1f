// How many channels rope parameters rotate, and which bases are possible.
#pragma once

#include <cstdint>
#include <string_view>

#include "ropewalk/config.h"

namespace ropewalk::config {

/// An odd width cannot be cut into pairs. Models' own code then forms ⌈width/2⌉ frequencies (with
/// the odd width as the exponent's denominator) and rotates one channel more.
enum class OddWidth : std::uint8_t { refused, rounded_up };

/// The width of the window: rotary_dim as given, the whole head for the proportional type, else
/// int(head_dim · partial_factor). Error(invalid_config), naming both sizes, where it is zero,
/// larger than the head, or odd and refused.
[[nodiscard]] std::int64_t rotary_dim_of(const RopeParameters& parameters, std::int64_t head_dim,
                                         OddWidth odd = OddWidth::refused);

/// What a base and a factor on wavelengths may be, in words and as numbers: far wider than any
/// model has, and such that the plain frequencies are normal fp32 numbers below 2^32, which is what
/// plans and the code of the models can hold.
inline constexpr std::string_view kBaseRange = "from 2^-31 to 2^126";
inline constexpr std::string_view kStretchRange = "from 2^-31 to 2^64";
[[nodiscard]] bool is_valid_base(double base) noexcept;
[[nodiscard]] bool is_valid_stretch(double factor) noexcept;

}  // namespace ropewalk::config
