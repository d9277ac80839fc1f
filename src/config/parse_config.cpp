#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "config/gguf_config.h"
#include "config/gguf_fields.h"
#include "config/gguf_header.h"
#include "config/head_shape.h"
#include "config/hf_fields.h"
#include "config/json_reader.h"
#include "config/known_models.h"
#include "config/layer_types.h"
#include "config/model_traits.h"
#include "config/parts.h"
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

void copy_traits(const ModelTraits& traits, RopeConfig& config) {
  config.pairing = traits.pairing;
  config.model_arithmetic = traits.arithmetic;
  config.axis_layout = traits.axis_layout;
  config.window_at_end = traits.window_at_end;
  config.block_per_axis = traits.block_per_axis;
  config.sign = traits.sign;
  config.position_recipe = traits.position_recipe;
  config.rotated = traits.rotated;
  config.upstream = traits.upstream;
}

RopeConfig read_part(const Part& part) {
  RopeConfig config;
  config.part = part.path;
  config.model_type = part.model_type;
  ObjectReader top(*part.object, part.path);
  top.accept({field::kModelType, field::kSource});
  const std::string model_type = canonical_model_type(config.model_type);
  refuse_unsupported(model_type);
  const ModelTraits traits = traits_of(model_type);
  if (traits.position_recipe == "token") {
    refuse_unknown_without_rope(top, model_type, config.model_type);
  }
  copy_traits(traits, config);
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
  if (top.boolean(field::kRotaryValue).value_or(false)) config.rotated = "q k v";
  refuse_unread(top);
  return config;
}

/// Keys of rope around the chosen part would be ignored. Two models state there the parameters of
/// another part (".").
void refuse_unread_around(const Part& part) {
  for (std::size_t i = 0; i < part.around.size(); ++i) {
    ObjectReader around(*part.around[i], part.around_paths[i]);
    const std::string type = canonical_model_type(around.text(field::kModelType).value_or(""));
    if (type == "musicflamingo" || type == "blt" || type.ends_with("sam3_tracker_video")) {
      around.accept(field::kRopeParameters);
    }
    refuse_unread(around);
  }
}

RopeConfig read_config(const json& object, std::string_view chosen) {
  if (const auto header = object.find(gguf::kMark); header != object.end()) {
    if (!header->is_object()) {
      fail(ErrorCode::invalid_config, "{}: expected the header of a GGUF file", gguf::kMark);
    }
    require(chosen.empty() || chosen == "text", "part: a GGUF file has one, text; got '{}'",
            chosen);
    return config_from_gguf(*header);
  }
  const Part part = find_part(object, chosen);
  const bool is_default = chosen.empty() || chosen == "text";
  if (is_default) refuse_unread_around(part);
  return read_part(part);
}

}  // namespace
}  // namespace config

RopeConfig parse_config(std::string_view text, std::string_view part) {
  const nlohmann::json object = config::parse_object(text);
  return config::read_config(object, part);
}

std::vector<std::string> rotary_parts(std::string_view text) {
  const nlohmann::json object = config::parse_object(text);
  std::vector<std::string> candidates = config::parts_with_heads(object);
  candidates.insert(candidates.begin(), {"text", "."});
  std::vector<std::string> parts;
  std::vector<std::string> paths;
  for (const std::string& candidate : candidates) {
    try {
      const RopeConfig config = config::read_config(object, candidate);
      const bool is_new = std::find(paths.begin(), paths.end(), config.part) == paths.end();
      if (!config.rotates || !is_new) continue;
      paths.push_back(config.part);
      parts.push_back(candidate == "text" && !config.part.empty() ? config.part : candidate);
    } catch (const Error& error) {
      // Towers without rotary embeddings are no parts; the top level alone need not be a model.
      if (error.code() != ErrorCode::unsupported && candidate != ".") throw;
    }
  }
  return parts;
}

std::string read_config_text(const std::filesystem::path& path) {
  constexpr std::uint64_t kLargestConfig = 16u << 20;
  const InputFile file(path);
  if (config::is_gguf(file)) {
    return nlohmann::json{{std::string(config::gguf::kMark), config::read_gguf_header(file)}}.dump(
        -1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
  if (file.size() > kLargestConfig) {
    fail(ErrorCode::invalid_config, "{}: expected a config of at most {} bytes, got {}",
         in_quotes(path.string()), kLargestConfig, file.size());
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

RopeConfig load_config(const std::filesystem::path& path, std::string_view part) {
  return parse_config(read_config_text(path), part);
}

}  // namespace ropewalk
