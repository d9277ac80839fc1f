// The powers θ^(2i/d) that every schedule is built from, exact and as fp32 code computes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "plan/extended.h"

namespace ropewalk::plan {

/// θ^(2·pair/denominator).
inline Extended power(Extended base, std::int64_t pair, std::int64_t denominator) {
  return pow(base,
             Extended(static_cast<double>(2 * pair)) / Extended(static_cast<double>(denominator)));
}

/// The same in fp32: exponent rn(2·pair / denominator), then one rounding of the power.
inline float model_power(float base, std::int64_t pair, std::int64_t denominator) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(denominator);
  return to_float(pow(Extended(base), Extended(exponent)));
}

/// The value of a parameter that a schedule cannot do without; Error(invalid_config) otherwise.
template <class T>
T needed(const std::optional<T>& value, std::string_view name, std::string_view type) {
  if (!value) fail(ErrorCode::invalid_config, "{}: rope type '{}' needs it", name, type);
  return *value;
}

}  // namespace ropewalk::plan
