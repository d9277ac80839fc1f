// Three axes of space and one that counts: ω_j = 1 / θ_s^(j/s) for the s pairs of each of x, y, z,
// then 1 / θ_u^(j/u) for the u pairs of the counter, then 0. ESMFold2's atoms, as transformers
// implements it. mrope_section is s, s, s, u with the pairs that do not turn added to u.
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {
namespace {

void add_list(ScheduleResult& result, const ScheduleInput& input, double base, std::int64_t pairs) {
  const std::vector<float> powers = model_powers(input, base, 2 * pairs, pairs);
  for (std::int64_t j = 0; j < pairs; ++j) {
    result.frequencies.push_back(to_double(Extended(1.0) / power(base, j, 2 * pairs)));
    result.model_frequencies.push_back(1.0f / powers[static_cast<std::size_t>(j)]);
  }
}

}  // namespace

ScheduleResult coordinates_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  const double spatial_base = needed(p.spatial_base, "spatial_base", p.type);
  const std::int64_t counted = needed(p.counted_pairs, "counted_pairs", p.type);
  ScheduleResult result;
  for (int axis = 0; axis < 3; ++axis) add_list(result, input, spatial_base, p.mrope_section.at(0));
  add_list(result, input, p.base, counted);
  result.frequencies.resize(static_cast<std::size_t>(input.rotary_dim / 2), 0.0);
  result.model_frequencies.resize(result.frequencies.size(), 0.0f);
  return result;
}

}  // namespace ropewalk::plan
