// ω_i = 1 / (F · θ^(2i/D)) for i < ⌊share·D/2⌋ and 0 for the rest of the D/2 pairs: the window is
// the whole head and the exponent's denominator is D, not the rotated share. Gemma 4, as
// transformers implements it (modeling_rope_utils, "proportional").
#include <cmath>

#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {

ScheduleResult proportional_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  const double factor = p.factor.value_or(1.0);
  const auto live = static_cast<std::int64_t>(
      std::floor(p.partial_factor * static_cast<double>(input.head_dim) / 2.0));
  ScheduleResult result;
  const std::vector<float> powers = model_powers(input, p.base, input.head_dim, live);
  for (std::int64_t i = 0; i < input.head_dim / 2; ++i) {
    if (i >= live) {
      result.frequencies.push_back(0.0);
      result.model_frequencies.push_back(0.0f);
      continue;
    }
    const Extended stretched = Extended(factor) * power(p.base, i, input.head_dim);
    result.frequencies.push_back(to_double(Extended(1.0) / stretched));
    const float plain = 1.0f / powers[static_cast<std::size_t>(i)];
    result.model_frequencies.push_back(plain / static_cast<float>(factor));
  }
  return result;
}

}  // namespace ropewalk::plan
