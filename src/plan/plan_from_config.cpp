// RopeConfig → RotaryPlan, and the plain plan from a base alone.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "config/rotary_dim.h"
#include "plan/axes.h"
#include "plan/schedule.h"
#include "ropewalk/config.h"
#include "ropewalk/plan.h"

namespace ropewalk {
namespace {

using ParametersByLayer = std::map<std::string, std::optional<RopeParameters>>;

std::string names_of(const ParametersByLayer& by_layer_type) {
  std::vector<std::string> names;
  for (const auto& [name, parameters] : by_layer_type) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const std::optional<RopeParameters>& choose_layer_type(const RopeConfig& config,
                                                       const std::string& layer_type) {
  const ParametersByLayer& all = config.by_layer_type;
  if (all.empty()) fail(ErrorCode::invalid_config, "by_layer_type: expected at least one entry");
  if (layer_type.empty()) {
    const auto turns = [](const auto& entry) { return entry.second.has_value(); };
    const auto first = std::find_if(all.begin(), all.end(), turns);
    const auto rotating = std::count_if(all.begin(), all.end(), turns);
    require(rotating <= 1, "layer_type: this model's layers differ, expected one of: {}",
            names_of(all));
    return rotating == 1 ? first->second : all.begin()->second;
  }
  const auto found = all.find(layer_type);
  require(found != all.end(), "layer_type: expected one of: {}; got '{}'", names_of(all),
          layer_type);
  return found->second;
}

/// A model with latent attention scales its softmax by the square of YaRN's 0.1·m·ln F + 1.
double softmax_multiplier_of(const RopeConfig& config, const plan::ScheduleInput& input) {
  const double mscale = input.parameters.mscale_all_dim.value_or(0.0);
  if (!config.latent_attention || input.parameters.type == "default" || mscale == 0.0) return 1.0;
  const double scale = plan::yarn_mscale(plan::stretch_factor(input), mscale);
  return scale * scale;
}

/// Deals the schedule's list to the pairs.
void deal(plan::ScheduleResult& schedule, const plan::AxisMap& map) {
  if (map.entry.empty()) return;
  plan::ScheduleResult dealt = schedule;
  dealt.frequencies.clear();
  dealt.model_frequencies.clear();
  for (const std::size_t entry : map.entry) {
    dealt.frequencies.push_back(schedule.frequencies.at(entry));
    dealt.model_frequencies.push_back(schedule.model_frequencies.at(entry));
  }
  schedule = std::move(dealt);
}

/// The parameters and the layout of the axes that the arithmetic asks for.
struct Chosen {
  RopeParameters parameters;
  AxisLayout layout;
  bool short_factors_at_every_length = false;
};

Chosen chosen_for(const RopeConfig& config, const RopeParameters& parameters, bool parity) {
  Chosen chosen{parameters, config.axis_layout, false};
  const bool axial_alone = config.axis_layout.rule == AxisRule::sections_of_config;
  if (parameters.type == "axial" && axial_alone) chosen.layout = {AxisRule::each, 2};
  if (!parity) return chosen;
  const UpstreamDefects& upstream = config.upstream;
  if (upstream.axis_layout) chosen.layout = *upstream.axis_layout;
  chosen.short_factors_at_every_length = upstream.short_factors_at_every_length;
  if (upstream.ignores_rotary_dim) chosen.parameters.rotary_dim.reset();
  if (upstream.ignores_truncate) chosen.parameters.truncate.reset();
  return chosen;
}

void check_channels(PairChannels channels, AxisRule rule) {
  if (plan::has_two_angles(rule)) {
    require(channels != PairChannels::both,
            "channels: this model turns the two channels of a pair by different angles, expected "
            "first or second, got {}",
            name_of(channels));
  } else {
    require(channels == PairChannels::both, "channels: expected both for this model, got {}",
            name_of(channels));
  }
}

void set_window(PlanSpec& spec, const RopeConfig& config) {
  const auto width = static_cast<std::int64_t>(2 * spec.frequencies.size());
  spec.window = {config.window_at_end ? spec.head_dim - width : 0, width};
  if (config.block_per_axis) spec.block_width = width / spec.axes;
}

/// The parameter that, beside the base, decides the frequencies.
std::string_view decisive(const RopeParameters& p, const plan::ScheduleResult& schedule) {
  if (p.type == "default" || p.type == "axial") return "base";
  if (p.type == "longrope") {
    return schedule.length > *p.original_max_positions ? "long_factor" : "short_factor";
  }
  if (p.type == "factors") return "rope_freqs";
  if (p.type == "coordinates") return "spatial_base";
  return p.type == "dynamic" && p.alpha ? "alpha" : "factor";
}

/// Parameters that are possible one by one can be absurd together.
void check_schedule(const RopeParameters& p, const plan::ScheduleResult& schedule) {
  for (std::size_t pair = 0; pair < schedule.frequencies.size(); ++pair) {
    const double omega = schedule.frequencies[pair];
    const float model_omega = schedule.model_frequencies[pair];
    const bool has_tail = p.type == "proportional" || p.type == "coordinates";
    const bool stands_still = has_tail && omega == 0.0 && model_omega == 0.0f;
    const bool normal = std::isnormal(static_cast<float>(omega)) && std::isnormal(model_omega);
    if (stands_still || (normal && std::fabs(omega) < 0x1p32)) continue;
    fail(ErrorCode::invalid_config,
         "{}: expected one that gives every pair a normal fp32 frequency below 2^32, but with base "
         "{} pair {} gets {}",
         decisive(p, schedule), p.base, pair,
         std::isnan(omega) ? "none" : fmt::format("{}", omega));
  }
}

void set_frequencies(PlanSpec& spec, plan::ScheduleResult schedule) {
  spec.window = {0, static_cast<std::int64_t>(2 * schedule.frequencies.size())};
  if (spec.frequency_precision == FrequencyPrecision::model) {
    spec.frequencies.assign(schedule.model_frequencies.begin(), schedule.model_frequencies.end());
  } else {
    spec.frequencies = std::move(schedule.frequencies);
  }
  spec.model_frequencies = std::move(schedule.model_frequencies);
  spec.amplitude = schedule.amplitude;
  spec.length_policy = schedule.length_policy;
  spec.length = schedule.length;
}

}  // namespace

RotaryPlan make_plan(const RopeConfig& config, const PlanOptions& options) {
  if (options.length) {
    require(*options.length > 0, "length: expected a positive sequence length, got {}",
            *options.length);
  }
  const std::optional<RopeParameters>& chosen = choose_layer_type(config, options.layer_type);
  PlanSpec spec;
  spec.head_dim = chosen && chosen->head_dim ? *chosen->head_dim : config.head_dim;
  spec.pairing = config.pairing;
  spec.arithmetic = options.arithmetic;
  spec.frequency_precision = options.frequency_precision;
  spec.query_scaling = config.query_scaling;
  spec.sign = config.sign;
  spec.position_recipe = config.position_recipe;
  spec.rotated = config.rotated;
  if (!config.rotates || !chosen) {
    spec.rotates = false;
    spec.scaling = "none";
    return RotaryPlan(std::move(spec));
  }

  const bool parity = options.arithmetic != Arithmetic::exact;
  const Chosen by_arithmetic = chosen_for(config, *chosen, parity);
  const RopeParameters& parameters = by_arithmetic.parameters;
  check_channels(options.channels, by_arithmetic.layout.rule);
  const plan::ScheduleInput input{
      parameters,
      spec.head_dim,
      config::rotary_dim_of(parameters, spec.head_dim,
                            parity ? config::OddWidth::rounded_up : config::OddWidth::refused),
      config.max_positions,
      options.length,
      by_arithmetic.layout.axes,
      by_arithmetic.short_factors_at_every_length,
      &options.model_power};
  plan::ScheduleResult schedule = plan::run_schedule(input);
  check_schedule(parameters, schedule);
  plan::AxisMap map =
      plan::axes_of(parameters, static_cast<std::int64_t>(schedule.frequencies.size()),
                    by_arithmetic.layout, options.channels);
  deal(schedule, map);
  set_frequencies(spec, std::move(schedule));
  if (!(spec.amplitude > 0.0 && std::isfinite(static_cast<float>(spec.amplitude)))) {
    fail(ErrorCode::invalid_config,
         "attention_factor: expected a factor on cos and sin above 0 and finite in fp32, got {}",
         spec.amplitude);
  }
  spec.axes = map.axes;
  spec.axis = std::move(map.axis);
  spec.channels = options.channels;
  set_window(spec, config);
  spec.softmax_multiplier = softmax_multiplier_of(config, input);
  if (!std::isnormal(static_cast<float>(spec.softmax_multiplier))) {
    fail(ErrorCode::invalid_config,
         "mscale_all_dim: expected one whose factor on the softmax scale is normal in fp32, got {}",
         *chosen->mscale_all_dim);
  }
  spec.scaling = chosen->type;
  return RotaryPlan(std::move(spec));
}

RotaryPlan make_plan(std::int64_t head_dim, double base, std::int64_t rotary_dim, Pairing pairing) {
  require(head_dim > 0, "head_dim: expected a positive number of channels, got {}", head_dim);
  const std::int64_t width = rotary_dim == 0 ? head_dim : rotary_dim;
  require(width > 0 && width % 2 == 0 && width <= head_dim,
          "rotary_dim: expected an even number from 2 to head_dim {}, got {}", head_dim, width);
  require(width <= kMaxRotaryDim, "rotary_dim: expected at most {} channels, got R = {}",
          kMaxRotaryDim, width);
  require(config::is_valid_base(base), "base: expected a number {}, got {}", config::kBaseRange,
          base);
  RopeParameters parameters;
  parameters.base = base;
  PlanSpec spec;
  spec.head_dim = head_dim;
  spec.pairing = pairing;
  set_frequencies(spec, plan::default_schedule({parameters, head_dim, width, {}, {}}));
  return RotaryPlan(std::move(spec));
}

}  // namespace ropewalk
