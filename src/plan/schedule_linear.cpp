// ω_i = 1 / (F · θ^(2i/d)): position interpolation. Chen et al., arXiv:2306.15595, equation 4.
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {

ScheduleResult linear_schedule(const ScheduleInput& input) {
  ScheduleResult result;
  const double base = input.parameters.base;
  const double factor = needed(input.parameters.factor, "factor", input.parameters.type);
  const std::vector<float> powers = model_powers(input, base, input.rotary_dim, input.pairs());
  for (std::int64_t i = 0; i < input.pairs(); ++i) {
    const Extended stretched = Extended(factor) * power(base, i, input.rotary_dim);
    result.frequencies.push_back(to_double(Extended(1.0) / stretched));
    const float plain = 1.0f / powers[static_cast<std::size_t>(i)];
    result.model_frequencies.push_back(plain / static_cast<float>(factor));
  }
  return result;
}

}  // namespace ropewalk::plan
