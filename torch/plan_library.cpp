// Plans for the Python package, as a C interface without PyTorch (python/ropewalk/plans.py loads it
// with ctypes), so that plans and the reference work where the operators cannot be loaded.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan_text.h"
#include "python_result.h"
#include "ropewalk/config.h"
#include "ropewalk/error.h"
#include "ropewalk/export.h"

namespace {

using namespace ropewalk;
using python::keep;

std::string facts_of(const RotaryPlan& plan) {
  return nlohmann::json{{"fingerprint", plan.fingerprint()},
                        {"description", to_string(plan)},
                        {"frequencies", plan.frequencies()},
                        {"model_frequencies", plan.model_frequencies()},
                        {"axis", plan.axis()}}
      .dump();
}

std::string facts_of(const RopeConfig& config, const std::vector<std::string>& parts) {
  nlohmann::json types = nlohmann::json::array();
  for (const auto& [name, parameters] : config.by_layer_type) types.push_back(name);
  return nlohmann::json{{"model_type", config.model_type},
                        {"part", config.part},
                        {"parts", parts},
                        {"rotates", config.rotates},
                        {"arithmetic", name_of(config.model_arithmetic)},
                        {"layer_types", types},
                        {"layer_type_of_layer", config.layer_types},
                        {"layer_rotates", config.layer_rotates},
                        {"head_dim", config.head_dim},
                        {"query_heads", config.query_heads},
                        {"key_heads", config.key_heads},
                        {"layers", config.layers},
                        {"query_scaling", config.query_scaling.rule},
                        {"position_recipe", config.position_recipe},
                        {"rotated", config.rotated},
                        {"differs_upstream", !(config.upstream == UpstreamDefects{})},
                        {"latent_attention", config.latent_attention}}
      .dump();
}

}  // namespace

extern "C" {

/// The text of the last call on this thread: the answer, or the message of the failure.
ROPEWALK_API const char* ropewalk_python_text() { return python::result().c_str(); }

ROPEWALK_API int ropewalk_python_make_plan(std::int64_t head_dim, double base,
                                           std::int64_t rotary_dim, std::int64_t offset,
                                           const char* pairing) {
  return keep([&] {
    return torch_ops::plain_text(head_dim, base, rotary_dim, offset, pairing_from_name(pairing));
  });
}

/// `length` 0: none. `arithmetic` "parity": that of the model's own code. `power` fills out[i] with
/// base^(2i / denominator), i < count; null: correctly rounded. `part` empty: the text model.
ROPEWALK_API int ropewalk_python_plan_from_config(
    const char* json, const char* layer_type, std::int64_t length, int model_frequencies,
    const char* arithmetic,
    void (*power)(float base, std::int64_t denominator, std::int64_t count, float* out),
    const char* part, const char* channels) {
  return keep([&] {
    const RopeConfig config = parse_config(json, part);
    const std::string_view name = arithmetic;
    PlanOptions options{
        .layer_type = layer_type,
        .length = {},
        .frequency_precision =
            model_frequencies != 0 ? FrequencyPrecision::model : FrequencyPrecision::formula,
        .arithmetic = name == "parity" ? config.model_arithmetic : arithmetic_from_name(name),
        .channels = torch_ops::pair_channels_from_name(channels),
        .model_power = {}};
    if (length > 0) options.length = length;
    if (power != nullptr) {
      options.model_power = [power](float base, std::int64_t denominator, std::span<float> out) {
        power(base, denominator, static_cast<std::int64_t>(out.size()), out.data());
      };
    }
    return torch_ops::text_of(make_plan(config, options));
  });
}

/// The text of a config.json or of a GGUF file's header, as the functions here take it.
ROPEWALK_API int ropewalk_python_config_text(const char* path) {
  return keep([&] { return read_config_text(path); });
}

/// JSON: what a config says of its part, with the layers, and the names of all parts.
ROPEWALK_API int ropewalk_python_config_facts(const char* json, const char* part) {
  return keep([&] { return facts_of(parse_config(json, part), rotary_parts(json)); });
}

/// Validates a plan's text and writes it in the one form that equal plans share.
ROPEWALK_API int ropewalk_python_normalise_plan(const char* text) {
  return keep([&] { return torch_ops::normalised_text(text); });
}

/// The text of relative_plan.
ROPEWALK_API int ropewalk_python_relative_plan(const char* text) {
  return keep([&] { return torch_ops::text_of(relative_plan(torch_ops::plan_from_text(text))); });
}

/// JSON: fingerprint, description, frequencies, model_frequencies and axis of a plan.
ROPEWALK_API int ropewalk_python_plan_facts(const char* text) {
  return keep([&] { return facts_of(torch_ops::plan_from_text(text)); });
}

ROPEWALK_API const char* ropewalk_python_version() { return ROPEWALK_VERSION; }

}  // extern "C"
