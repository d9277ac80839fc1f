// ω_i = (1 − m_i) / (F·P_i) + m_i / P_i with a ramp m between the pairs that turn β_fast and β_slow
// times within the trained length O, and an amplitude 0.1·ln F + 1. Peng et al., "YaRN",
// arXiv:2309.00071, equations 17 to 22. mscale and mscale_all_dim are DeepSeek's.
#include <algorithm>

#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {
namespace {

constexpr double kBetaFast = 32.0;
constexpr double kBetaSlow = 1.0;

/// The (fractional) pair index that turns `rotations` times within `original` positions.
Extended correction_pair(double rotations, std::int64_t rotary_dim, double base,
                         std::int64_t original) {
  const Extended wavelengths =
      Extended(static_cast<double>(original)) / (Extended(rotations) * kTwoPi);
  return Extended(static_cast<double>(rotary_dim)) * log(wavelengths) /
         (Extended(2.0) * log(Extended(base)));
}

double ramp_end(double value, double other) { return value == other ? value + 0.001 : value; }

/// A zero counts as absent, as in the code the models run.
double given_or(std::optional<double> value, double fallback) {
  const double given = value.value_or(0.0);
  return given != 0.0 ? given : fallback;
}

double amplitude_of(const RopeParameters& p, double factor) {
  if (p.attention_factor) return *p.attention_factor;
  const double mscale = p.mscale.value_or(0.0);
  const double mscale_all_dim = p.mscale_all_dim.value_or(0.0);
  if (mscale != 0.0 && mscale_all_dim != 0.0) {
    return yarn_mscale(factor, mscale) / yarn_mscale(factor, mscale_all_dim);
  }
  return yarn_mscale(factor, 1.0);
}

}  // namespace

double yarn_mscale(double factor, double multiplier) {
  if (factor <= 1.0) return 1.0;
  return to_double(Extended(multiplier) * log(Extended(factor)) / Extended(10.0) + Extended(1.0));
}

ScheduleResult yarn_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  const double factor = stretch_factor(input);
  const std::int64_t original = needed(p.original_max_positions, "original_max_positions", p.type);
  if (!(p.base > 1.0)) {
    fail(ErrorCode::invalid_config, "base: rope type '{}' needs one above 1, got {}", p.type,
         p.base);
  }
  const double beta_fast = given_or(p.beta_fast, kBetaFast);
  const double beta_slow = given_or(p.beta_slow, kBetaSlow);
  Extended first = correction_pair(beta_fast, input.rotary_dim, p.base, original);
  Extended last = correction_pair(beta_slow, input.rotary_dim, p.base, original);
  if (p.truncate.value_or(true)) {
    first = floor(first);
    last = ceil(last);
  }
  const double low = std::max(to_double(first), 0.0);
  const double high =
      ramp_end(std::min(to_double(last), static_cast<double>(input.rotary_dim - 1)), low);
  const Extended span = Extended(high) - Extended(low);
  const float model_span = static_cast<float>(high - low);

  ScheduleResult result;
  result.amplitude = amplitude_of(p, factor);
  const std::vector<float> powers = model_powers(input, p.base, input.rotary_dim, input.pairs());
  for (std::int64_t i = 0; i < input.pairs(); ++i) {
    const Extended period = power(p.base, i, input.rotary_dim);
    const Extended position = (Extended(static_cast<double>(i)) - Extended(low)) / span;
    const Extended ramp = position < Extended(0.0)   ? Extended(0.0)
                          : position > Extended(1.0) ? Extended(1.0)
                                                     : position;
    const Extended kept = Extended(1.0) - ramp;
    result.frequencies.push_back(to_double(ramp / (Extended(factor) * period) + kept / period));

    const float model_period = powers[static_cast<std::size_t>(i)];
    const float extrapolated = 1.0f / model_period;
    const float interpolated = 1.0f / (static_cast<float>(factor) * model_period);
    const float model_ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / model_span, 0.0f, 1.0f);
    const float model_kept = 1.0f - model_ramp;
    result.model_frequencies.push_back(interpolated * (1.0f - model_kept) +
                                       extrapolated * model_kept);
  }
  return result;
}

}  // namespace ropewalk::plan
