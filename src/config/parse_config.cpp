#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "config/head_shape.h"
#include "config/hf_fields.h"
#include "config/json_reader.h"
#include "config/known_models.h"
#include "config/layer_types.h"
#include "config/model_traits.h"
#include "config/query_scaling.h"
#include "config/rope_by_layer.h"
#include "ropewalk/config.h"

namespace ropewalk {
namespace config {
namespace {

using nlohmann::json;

/// A key that speaks of rope, by the words between its underscores ("property" does not).
bool speaks_of_rope(std::string_view key) {
  constexpr std::array<std::string_view, 8> kWords = {"rope",  "mrope", "xdrope", "rotary",
                                                      "theta", "yarn",  "ntk",    "alibi"};
  std::string word;
  for (std::size_t i = 0; i <= key.size(); ++i) {
    if (i < key.size() && key[i] != '_') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(key[i])));
      continue;
    }
    const bool known = std::find(kWords.begin(), kWords.end(), word) != kWords.end();
    if (known) return true;
    word.clear();
  }
  return false;
}

void refuse_unread(const ObjectReader& top) {
  for (const std::string& key : top.unread()) {
    if (!speaks_of_rope(key)) continue;
    fail(ErrorCode::invalid_config,
         "{}: expected a key of rotary embeddings that is known for this model", top.named(key));
  }
}

/// Many models do not rotate. One that is not known must at least say that it does.
void refuse_unknown_without_rope(const ObjectReader& top, std::string_view model_type,
                                 const std::string& as_given) {
  if (is_known_model(model_type)) return;
  const std::vector<std::string> keys = top.keys();
  if (std::any_of(keys.begin(), keys.end(), speaks_of_rope)) return;
  fail(
      ErrorCode::unsupported,
      "{}: '{}' is not known to have rotary embeddings, and no key of the config says that it does",
      top.named(field::kModelType), as_given);
}

/// The text model of a composite config, where the top level is not one itself.
const json* text_config_of(ObjectReader& top, std::string_view& path) {
  const bool is_text = std::any_of(field::kQueryHeads.begin(), field::kQueryHeads.end(),
                                   [&top](std::string_view key) { return top.has(key); });
  for (const std::string_view key : field::kTextConfigs) {
    const json* nested = top.object(key);
    if (nested == nullptr || is_text) continue;
    path = key;
    return nested;
  }
  return nullptr;
}

void refuse_vision_tower(ObjectReader& top, const RopeConfig& config) {
  if (!top.has(field::kEmbedDim)) return;
  for (const auto& [name, parameters] : config.by_layer_type) {
    if (parameters && parameters->type == "axial") continue;
    fail(ErrorCode::unsupported,
         "{}: a vision tower's config needs {} 'axial', which this one does not say",
         top.named(field::kEmbedDim), field::kRopeType);
  }
}

/// Switches that have one supported position.
void check_switches(ObjectReader& top, const RopeConfig& config) {
  for (const std::string_view key : field::kRotary) {
    if (top.boolean(key).value_or(true)) continue;
    fail(ErrorCode::invalid_config, "{}: expected true for '{}', which always rotates, got false",
         top.named(key), config.model_type);
  }
  if (top.has(field::kPerLayerConfig)) {
    fail(ErrorCode::unsupported, "{}: sizes by layer are not supported yet",
         top.named(field::kPerLayerConfig));
  }
  if (top.boolean(field::kRotaryValue).value_or(false)) {
    fail(ErrorCode::unsupported, "{}: rotating values as well is not supported yet",
         top.named(field::kRotaryValue));
  }
  // The indexer of sparse attention rotates tensors of its own, which this plan is not about.
  top.accept(field::kIndexerRopeInterleave);
}

void check_axes(ObjectReader& top, const RopeConfig& config) {
  if (!top.boolean(field::kUseMrope).value_or(false)) return;
  for (const auto& [name, parameters] : config.by_layer_type) {
    if (!parameters || !parameters->mrope_section.empty()) continue;
    fail(ErrorCode::invalid_config, "{}: expected {} with it, the pairs of each axis",
         top.named(field::kUseMrope), field::kMropeSection);
  }
}

RopeConfig read_text_config(ObjectReader& top, const std::string& outer_model_type) {
  RopeConfig config;
  config.model_type = top.text(field::kModelType).value_or(outer_model_type);
  const std::string model_type = canonical_model_type(config.model_type);
  refuse_unsupported(model_type);
  refuse_unknown_without_rope(top, model_type, config.model_type);
  const ModelTraits traits = traits_of(model_type);
  config.pairing = traits.pairing;
  config.model_arithmetic = traits.arithmetic;
  read_shape(top, traits, config);
  read_layer_rotation(top, config);
  if (!config.rotates) {
    config.by_layer_type.emplace("all", std::nullopt);
    config.layer_types.assign(static_cast<std::size_t>(config.layers), "all");
    return config;
  }

  if (traits.pairing == Pairing::interleaved_to_half &&
      !top.boolean(field::kRopeInterleave).value_or(true)) {
    config.pairing = Pairing::half;
  }
  check_switches(top, config);
  read_rope_parameters(top, traits, config);
  refuse_vision_tower(top, config);
  check_axes(top, config);
  config.query_scaling = query_scaling_of(top, config);
  refuse_unread(top);
  return config;
}

RopeConfig read_config(const json& object, std::string path, const std::string& outer_model_type) {
  ObjectReader top(object, std::move(path));
  top.accept(field::kSource);
  std::string_view nested_key;
  const json* nested = text_config_of(top, nested_key);
  if (nested == nullptr) return read_text_config(top, outer_model_type);

  const std::string model_type = top.text(field::kModelType).value_or(outer_model_type);
  refuse_unsupported(canonical_model_type(model_type));
  refuse_unread(top);
  return read_config(*nested, top.named(nested_key), model_type);
}

}  // namespace
}  // namespace config

RopeConfig parse_config(std::string_view text) {
  const nlohmann::json object = config::parse_object(text);
  return config::read_config(object, {}, {});
}

RopeConfig load_config(const std::filesystem::path& path) {
  constexpr std::uint64_t kLargestConfig = 16u << 20;
  const InputFile file(path);
  if (file.size() > kLargestConfig) {
    fail(ErrorCode::invalid_config, "{}: expected a config of at most {} bytes, got {}",
         in_quotes(path.string()), kLargestConfig, file.size());
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return parse_config(text);
}

}  // namespace ropewalk
