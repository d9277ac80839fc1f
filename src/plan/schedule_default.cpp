// ω_i = 1 / θ^(2i/d). Su et al., "RoFormer", arXiv:2104.09864, equation 15.
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {

ScheduleResult default_schedule(const ScheduleInput& input) {
  ScheduleResult result;
  const double base = input.parameters.base;
  const std::vector<float> powers = model_powers(input, base, input.rotary_dim, input.pairs());
  for (std::int64_t i = 0; i < input.pairs(); ++i) {
    result.frequencies.push_back(to_double(Extended(1.0) / power(base, i, input.rotary_dim)));
    result.model_frequencies.push_back(1.0f / powers[static_cast<std::size_t>(i)]);
  }
  return result;
}

}  // namespace ropewalk::plan
