// RopeConfig → RotaryPlan, and the plain plan from a base alone.
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
    require(all.size() == 1, "layer_type: this model's layers differ, expected one of: {}",
            names_of(all));
    return all.begin()->second;
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
  if (!config.rotates || !chosen) {
    spec.rotates = false;
    spec.scaling = "none";
    return RotaryPlan(std::move(spec));
  }

  const plan::ScheduleInput input{*chosen, spec.head_dim,
                                  config::rotary_dim_of(*chosen, spec.head_dim),
                                  config.max_positions, options.length, &options.model_power};
  set_frequencies(spec, plan::run_schedule(input));
  if (!(spec.amplitude > 0.0 && std::isfinite(static_cast<float>(spec.amplitude)))) {
    fail(ErrorCode::invalid_config,
         "attention_factor: expected a factor on cos and sin above 0 and finite in fp32, got {}",
         spec.amplitude);
  }
  plan::AxisMap map = plan::axes_of(*chosen, static_cast<std::int64_t>(spec.frequencies.size()));
  spec.axes = map.axes;
  spec.axis = std::move(map.axis);
  spec.softmax_multiplier = softmax_multiplier_of(config, input);
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
  require(config::is_valid_base(base), "base: expected a positive number finite in fp32, got {}",
          base);
  RopeParameters parameters;
  parameters.base = base;
  PlanSpec spec;
  spec.head_dim = head_dim;
  spec.pairing = pairing;
  set_frequencies(spec, plan::default_schedule({parameters, head_dim, width, {}, {}, {}}));
  return RotaryPlan(std::move(spec));
}

}  // namespace ropewalk
