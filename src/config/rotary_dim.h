// How many channels rope parameters rotate, and which bases are possible.
#pragma once

#include <cstdint>

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

/// A base is positive, and finite in the fp32 that models hold it in.
[[nodiscard]] bool is_valid_base(double base) noexcept;

}  // namespace ropewalk::config
