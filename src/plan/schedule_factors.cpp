// ω_i = 1 / (c_i · P_i): a divisor per pair, the same at every length. How GGUF files carry the
// frequencies of Llama 3.1 and others (tensor rope_freqs; ggml's freq_factors).
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {

ScheduleResult factors_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  const auto pairs = static_cast<std::size_t>(input.pairs());
  if (p.short_factor.size() != pairs) {
    fail(ErrorCode::invalid_config, "rope_freqs: expected {} numbers, one per pair, got {}", pairs,
         p.short_factor.size());
  }
  ScheduleResult result;
  const std::vector<float> powers = model_powers(input, p.base, input.rotary_dim, input.pairs());
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const auto i = static_cast<std::int64_t>(pair);
    const Extended period = Extended(p.short_factor[pair]) * power(p.base, i, input.rotary_dim);
    result.frequencies.push_back(to_double(Extended(1.0) / period));
    const float plain = 1.0f / powers[pair];
    result.model_frequencies.push_back(plain / static_cast<float>(p.short_factor[pair]));
  }
  return result;
}

}  // namespace ropewalk::plan
