#include "config/query_scaling.h"

#include "base/check.h"
#include "config/hf_fields.h"
#include "config/model_traits.h"

namespace ropewalk::config {
namespace {

/// Some checkpoints say a switch with a number.
bool is_on(ObjectReader& top, std::string_view key, bool fallback) {
  if (top.is_boolean(key)) return top.boolean(key).value_or(fallback);
  return top.number(key).value_or(fallback ? 1.0 : 0.0) != 0.0;
}

double scaling_beta(ObjectReader& top, double fallback) {
  for (const std::string_view key : {field::kRopeParameters, field::kRopeScaling}) {
    const nlohmann::json* dict = top.object(key);
    if (dict == nullptr) continue;
    ObjectReader reader(*dict, top.named(key));
    return reader.number(field::kLlama4ScalingBeta).value_or(0.0);
  }
  return fallback;
}

}  // namespace

QueryScaling query_scaling_of(ObjectReader& top, const RopeConfig& config) {
  const std::string model_type = canonical_model_type(config.model_type);
  if (model_type == "llama4" && is_on(top, field::kAttnTemperatureTuning, true)) {
    const double floor_scale = top.positive_number(field::kFloorScale).value_or(8192.0);
    const double attn_scale = top.number(field::kAttnScale).value_or(0.1);
    return {fmt::format("layers without rope: q * (1 + {} * ln(1 + floor((position + 1) / {})))",
                        attn_scale, floor_scale)};
  }
  if (model_type == "ministral3" || model_type == "mistral4") {
    constexpr double kClassBeta = 0.1;
    const double beta = scaling_beta(top, kClassBeta);
    const auto& parameters = config.by_layer_type.begin()->second;
    if (beta == 0.0 || !parameters || !parameters->original_max_positions) return {};
    return {fmt::format("after the rotation: q * (1 + {} * ln(1 + floor(position / {})))", beta,
                        *parameters->original_max_positions)};
  }
  return {};
}

}  // namespace ropewalk::config
