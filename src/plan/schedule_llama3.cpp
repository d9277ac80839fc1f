// With λ = 2π·P: ω = 1/P for λ < O/h, 1/(F·P) for λ > O/l, and in between the blend
// ((1 − s)/F + s)/P, s = (O/λ − l)/(h − l). Llama 3.1: Grattafiori et al., arXiv:2407.21783, with
// the constants published in Meta's reference code (F 8, l 1, h 4, O 8192).
#include "plan/powers.h"
#include "plan/schedule.h"

namespace ropewalk::plan {
namespace {

struct Bands {
  double factor, low, high, original;
};

Extended scaled(Extended period, const Bands& b) {
  const Extended wavelength = kTwoPi * period;
  const Extended frequency = Extended(1.0) / period;
  if (wavelength < Extended(b.original) / Extended(b.high)) return frequency;
  if (wavelength > Extended(b.original) / Extended(b.low)) return frequency / Extended(b.factor);
  if (b.low == b.high) return frequency;  // no band in between (Llama 4 Scout)
  const Extended smooth =
      (Extended(b.original) / wavelength - Extended(b.low)) / (Extended(b.high) - Extended(b.low));
  return ((Extended(1.0) - smooth) / Extended(b.factor) + smooth) * frequency;
}

float model_scaled(float frequency, const Bands& b) {
  const auto factor = static_cast<float>(b.factor);
  const float wavelength = (1.0f / frequency) * static_cast<float>(to_double(kTwoPi));
  if (wavelength > static_cast<float>(b.original / b.low)) return frequency / factor;
  if (wavelength < static_cast<float>(b.original / b.high) || b.low == b.high) return frequency;
  const float smooth =
      ((1.0f / wavelength) * static_cast<float>(b.original) - static_cast<float>(b.low)) /
      static_cast<float>(b.high - b.low);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

ScheduleResult llama3_schedule(const ScheduleInput& input) {
  const RopeParameters& p = input.parameters;
  const Bands bands{
      needed(p.factor, "factor", p.type), needed(p.low_freq_factor, "low_freq_factor", p.type),
      needed(p.high_freq_factor, "high_freq_factor", p.type),
      static_cast<double>(needed(p.original_max_positions, "original_max_positions", p.type))};
  if (!(bands.low > 0.0 && bands.low <= bands.high)) {
    fail(ErrorCode::invalid_config,
         "low_freq_factor: expected one above 0 and at most high_freq_factor, got {} and {}",
         bands.low, bands.high);
  }
  ScheduleResult result;
  const std::vector<float> powers = model_powers(input, p.base, input.rotary_dim, input.pairs());
  for (std::int64_t i = 0; i < input.pairs(); ++i) {
    result.frequencies.push_back(to_double(scaled(power(p.base, i, input.rotary_dim), bands)));
    result.model_frequencies.push_back(
        model_scaled(1.0f / powers[static_cast<std::size_t>(i)], bands));
  }
  return result;
}

}  // namespace ropewalk::plan
