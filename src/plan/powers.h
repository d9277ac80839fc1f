// The powers θ^(2i/d) that every schedule is built from, exact and as fp32 code computes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "plan/extended.h"
#include "plan/schedule.h"

namespace ropewalk::plan {

/// θ^(2·pair/denominator).
inline Extended power(Extended base, std::int64_t pair, std::int64_t denominator) {
  return pow(base,
             Extended(static_cast<double>(2 * pair)) / Extended(static_cast<double>(denominator)));
}

/// The same in fp32 for pairs 0 … count − 1, by the caller's power function where there is one;
/// otherwise exponent rn(2·pair / denominator), then one rounding of the power.
inline std::vector<float> model_powers(const ScheduleInput& input, double base,
                                       std::int64_t denominator, std::int64_t count) {
  std::vector<float> powers(static_cast<std::size_t>(count));
  const auto model_base = static_cast<float>(base);
  if (input.model_power != nullptr && *input.model_power) {
    (*input.model_power)(model_base, denominator, powers);
    return powers;
  }
  for (std::size_t i = 0; i < powers.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(denominator);
    powers[i] = to_float(pow(Extended(model_base), Extended(exponent)));
  }
  return powers;
}

/// The value of a parameter that a schedule cannot do without; Error(invalid_config) otherwise.
template <class T>
T needed(const std::optional<T>& value, std::string_view name, std::string_view type) {
  if (!value) fail(ErrorCode::invalid_config, "{}: rope type '{}' needs it", name, type);
  return *value;
}

}  // namespace ropewalk::plan
