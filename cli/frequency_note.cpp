#include "cli/frequency_note.h"

#include <fmt/format.h>

#include <cmath>

namespace ropewalk::cli {

std::string frequency_note(double omega, double base, std::int64_t pair, std::int64_t rotary_dim) {
  if (omega == 0) return "does not turn";
  const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(rotary_dim);
  const double ratio = omega / std::pow(base, exponent);
  // Four digits: the fp32 values that models hold differ from the formula's in the eighth.
  const std::string times = fmt::format("{:.4g}", ratio);
  if (times == "1") return "default";
  const std::string divided = fmt::format("{:.4g}", 1 / ratio);
  return ratio > 0 && divided.find('.') == std::string::npos ? "÷ " + divided : "× " + times;
}

}  // namespace ropewalk::cli
