#include "config/rotary_dim.h"

#include <cmath>

#include "base/check.h"

namespace ropewalk::config {

std::int64_t rotary_dim_of(const RopeParameters& parameters, std::int64_t head_dim, OddWidth odd) {
  if (head_dim <= 0) {
    fail(ErrorCode::invalid_config, "head_dim: expected a positive number of channels, got {}",
         head_dim);
  }
  const double share = parameters.partial_factor;
  if (!(std::isfinite(share) && share > 0.0 && share <= 1.0)) {
    fail(ErrorCode::invalid_config,
         "partial_factor: expected a share of the head above 0 and at most 1, got {}", share);
  }
  std::int64_t width = static_cast<std::int64_t>(static_cast<double>(head_dim) * share);
  if (parameters.rotary_dim) width = *parameters.rotary_dim;
  if (parameters.type == "proportional") width = head_dim;
  const bool is_odd = width % 2 != 0;
  if (parameters.rotary_dim) odd = OddWidth::refused;  // said outright, not a share cut off
  if (width < 2 || width + (is_odd ? 1 : 0) > head_dim || (is_odd && odd == OddWidth::refused)) {
    fail(ErrorCode::invalid_config,
         "rotary_dim: expected an even number from 2 to head_dim {}, got {}", head_dim, width);
  }
  if (width > kMaxRotaryDim) {
    fail(ErrorCode::invalid_config, "rotary_dim: expected at most {} channels, got {}",
         kMaxRotaryDim, width);
  }
  return width;
}

bool is_valid_base(double base) noexcept { return base >= 0x1p-31 && base <= 0x1p126; }

bool is_valid_stretch(double factor) noexcept { return factor >= 0x1p-31 && factor <= 0x1p64; }

}  // namespace ropewalk::config
