// ω_j = 1 / θ^(2j/a) with a = D/2, once for rows and once for columns: angles [row·ω | column·ω]
// over the D/2 pairs of the head. Vision towers of the Qwen2-VL kind: Wang et al.,
// arXiv:2409.12191, section 2.1.
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {

ScheduleResult axial_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  if (input.rotary_dim % 4 != 0) {
    fail(ErrorCode::invalid_config, "rotary_dim: rope type '{}' needs a multiple of 4, got {}",
         p.type, input.rotary_dim);
  }
  const std::int64_t per_axis = input.rotary_dim / 2;
  ScheduleResult result;
  const std::vector<float> powers =
      model_powers(input, p.base, per_axis, per_axis / 2);
  for (int axis = 0; axis < 2; ++axis) {
    for (std::int64_t j = 0; j < per_axis / 2; ++j) {
      result.frequencies.push_back(to_double(Extended(1.0) / power(p.base, j, per_axis)));
      result.model_frequencies.push_back(1.0f /
                                         powers[static_cast<std::size_t>(j)]);
    }
  }
  return result;
}

}  // namespace ropewalk::plan
