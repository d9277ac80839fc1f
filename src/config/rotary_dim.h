// How many channels rope parameters rotate, and which bases are possible.
#pragma once

#include <cstdint>

#include "ropewalk/config.h"

namespace ropewalk::config {

/// The even width of the window: rotary_dim as given, the whole head for the proportional type,
/// else int(head_dim · partial_factor). Error(invalid_config), naming both sizes, where it is odd,
/// zero or larger than the head.
[[nodiscard]] std::int64_t rotary_dim_of(const RopeParameters& parameters, std::int64_t head_dim);

/// A base is positive, and finite in the fp32 that models hold it in.
[[nodiscard]] bool is_valid_base(double base) noexcept;

}  // namespace ropewalk::config
