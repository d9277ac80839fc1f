// ω_j = 1 / θ^(2j/a), one list that every axis uses: a = D/2 for rows and columns, a = 2·⌊D/6⌋ for
// frames, rows and columns. Vision towers of the Qwen2-VL kind: Wang et al., arXiv:2409.12191,
// section 2.1; three axes: V-JEPA 2, Assran et al., arXiv:2506.09985.
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {

ScheduleResult axial_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  const std::int64_t per_axis = input.axes == 3 ? 2 * (input.rotary_dim / 6) : input.rotary_dim / 2;
  if (per_axis < 2 || per_axis % 2 != 0) {
    fail(ErrorCode::invalid_config, "rotary_dim: rope type '{}' needs a multiple of 4, got {}",
         p.type, input.rotary_dim);
  }
  ScheduleResult result;
  const std::vector<float> powers = model_powers(input, p.base, per_axis, per_axis / 2);
  for (std::int64_t j = 0; j < per_axis / 2; ++j) {
    result.frequencies.push_back(to_double(Extended(1.0) / power(p.base, j, per_axis)));
    result.model_frequencies.push_back(1.0f / powers[static_cast<std::size_t>(j)]);
  }
  return result;
}

}  // namespace ropewalk::plan
