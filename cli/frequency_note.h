// How a frequency of a plan differs from the plain formula's.
#pragma once

#include <cstdint>
#include <string>

namespace ropewalk::cli {

/// "default", "÷ 8", "× 0.53" or "does not turn": omega beside base^(−2·pair / rotary_dim), to four
/// digits.
[[nodiscard]] std::string frequency_note(double omega, double base, std::int64_t pair,
                                         std::int64_t rotary_dim);

}  // namespace ropewalk::cli
