// ω_i = 1 / θ'^(2i/d) with θ' = θ · (F·S/L − (F − 1))^(d/(d−2)), S = max(length, L): dynamic NTK.
// "NTK-aware scaled RoPE" and its dynamic form, described in Peng et al., "YaRN",
// arXiv:2309.00071, section 3.3 and appendix B. Hunyuan's form has a fixed θ' = θ · α^(d/(d−2)).
#include <algorithm>

#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {
namespace {

ScheduleResult with_bases(const ScheduleInput& input, Extended base, float model_base) {
  ScheduleResult result;
  const std::vector<float> powers =
      model_powers(input, model_base, input.rotary_dim, input.pairs());
  for (std::int64_t i = 0; i < input.pairs(); ++i) {
    result.frequencies.push_back(to_double(Extended(1.0) / power(base, i, input.rotary_dim)));
    result.model_frequencies.push_back(1.0f / powers[static_cast<std::size_t>(i)]);
  }
  return result;
}

}  // namespace

ScheduleResult dynamic_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  if (input.rotary_dim <= 2) {
    fail(ErrorCode::invalid_config, "rotary_dim: rope type '{}' needs more than 2 channels, got {}",
         p.type, input.rotary_dim);
  }
  const Extended exponent = Extended(static_cast<double>(input.rotary_dim)) /
                            Extended(static_cast<double>(input.rotary_dim - 2));
  if (p.alpha) {
    const Extended base = Extended(p.base) * pow(*p.alpha, exponent);
    return with_bases(input, base, static_cast<float>(to_double(base)));
  }

  const double factor = needed(p.factor, "factor", p.type);
  const std::int64_t trained = needed(input.max_positions, "max_positions", p.type);
  const std::int64_t length = std::max(input.length.value_or(trained), trained);
  const Extended stretch = Extended(factor) * Extended(static_cast<double>(length)) /
                               Extended(static_cast<double>(trained)) -
                           (Extended(factor) - Extended(1.0));
  if (!(stretch > Extended(0.0))) {
    fail(ErrorCode::invalid_config, "factor: expected one that keeps the base positive, got {}",
         factor);
  }
  const Extended base = Extended(p.base) * pow(stretch, exponent);

  // At first use the model holds the base as a double; once a sequence outgrows L it recomputes
  // the base from the length in fp32.
  float model_base = static_cast<float>(to_double(base));
  if (length > trained) {
    const float ratio =
        static_cast<float>(factor) * static_cast<float>(length) / static_cast<float>(trained);
    const float growth = ratio - static_cast<float>(factor - 1.0);
    const double model_exponent =
        static_cast<double>(input.rotary_dim) / static_cast<double>(input.rotary_dim - 2);
    model_base =
        static_cast<float>(p.base) * to_float(pow(Extended(growth), Extended(model_exponent)));
  }
  ScheduleResult result = with_bases(input, base, model_base);
  result.length_policy = LengthPolicy::dynamic_ntk;
  result.length = length;
  return result;
}

}  // namespace ropewalk::plan
