// ω_i = 1 / (e_i · P_i), e = long_factor for sequences longer than O, else short_factor; amplitude
// √(1 + ln F / ln O). Ding et al., "LongRoPE", arXiv:2402.13753, equation 3 and section 3.4.
//
// The checkpoints' own code switches the lists with the length. transformers 5.17 keeps the short
// list for one family (Phi-3.5-MoE), which parity follows.
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {
namespace {

double amplitude_of(const RopeParameters& p, double factor, std::int64_t original, bool is_long) {
  const auto& by_length = is_long ? p.long_mscale : p.short_mscale;
  if (by_length) return *by_length;
  if (p.attention_factor) return *p.attention_factor;
  if (factor <= 1.0) return 1.0;
  if (original <= 1) {
    fail(ErrorCode::invalid_config,
         "original_max_positions: rope type '{}' needs more than 1, got {}", p.type, original);
  }
  const Extended ratio = log(Extended(factor)) / log(Extended(static_cast<double>(original)));
  return to_double(sqrt(Extended(1.0) + ratio));
}

}  // namespace

ScheduleResult longrope_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  const std::int64_t original = needed(p.original_max_positions, "original_max_positions", p.type);
  const std::int64_t length = input.length.value_or(original);
  const bool is_long = length > original;
  const bool takes_long = is_long && !input.short_factors_at_every_length;
  const std::vector<double>& stretch = takes_long ? p.long_factor : p.short_factor;
  const auto pairs = static_cast<std::size_t>(input.pairs());
  if (stretch.size() != pairs) {
    fail(ErrorCode::invalid_config,
         "{}: expected {} numbers, one per pair of rotary_dim {}, got {}",
         takes_long ? "long_factor" : "short_factor", pairs, input.rotary_dim, stretch.size());
  }

  ScheduleResult result;
  result.amplitude = amplitude_of(p, stretch_factor(input), original, is_long);
  result.length_policy = LengthPolicy::longrope_switch;
  result.length = length;
  const std::vector<float> powers = model_powers(input, p.base, input.rotary_dim, input.pairs());
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const auto i = static_cast<std::int64_t>(pair);
    const Extended period = Extended(stretch[pair]) * power(p.base, i, input.rotary_dim);
    result.frequencies.push_back(to_double(Extended(1.0) / period));
    const float model_period = static_cast<float>(stretch[pair]) * powers[pair];
    result.model_frequencies.push_back(1.0f / model_period);
  }
  return result;
}

}  // namespace ropewalk::plan
