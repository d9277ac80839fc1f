#include "config/layer_types.h"

#include <algorithm>

#include "base/check.h"
#include "config/hf_fields.h"

namespace ropewalk::config {
namespace {

constexpr std::string_view kFull = "full_attention";
constexpr std::string_view kSliding = "sliding_attention";

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Layer `phase`, `phase` + `period`, … have full attention, the others a sliding window.
std::vector<std::string> every(std::int64_t period, std::int64_t phase, std::int64_t layers) {
  std::vector<std::string> types;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    types.emplace_back(layer % period == phase ? kFull : kSliding);
  }
  return types;
}

/// Period of the full-attention layers where a model's class has one; 0 where it has none.
std::int64_t default_period(std::string_view model_type) {
  if (is_one_of(model_type, {"gemma3", "gemma4", "gemma4_unified", "diffusion_gemma", "t5gemma2",
                             "mimo_v2_flash"})) {
    return 6;
  }
  if (model_type == "gemma3n") return 5;
  if (is_one_of(model_type, {"olmo3", "cohere2", "exaone4", "exaone4_5", "exaone_moe"})) return 4;
  return 0;
}

std::vector<std::string> derived(ObjectReader& top, std::string_view model_type,
                                 std::int64_t layers) {
  const auto uniform = [layers](std::string_view type) {
    return std::vector<std::string>(static_cast<std::size_t>(layers), std::string(type));
  };
  if (is_one_of(model_type, {"modernbert", "modernbert_decoder"})) {
    return every(top.positive_integer(field::kGlobalAttentionEvery).value_or(3), 0, layers);
  }
  if (model_type == "afmoe") {
    const std::int64_t period = top.positive_integer(field::kGlobalAttentionEvery).value_or(4);
    return every(period, period - 1, layers);
  }
  if (is_one_of(model_type, {"laguna", "mellum", "step3p7"})) return uniform(kFull);
  if (model_type == "zaya") return uniform("hybrid");

  const std::int64_t fallback = default_period(model_type);
  if (fallback == 0) return {};
  const std::int64_t period = top.positive_integer(field::kSlidingWindowPattern).value_or(fallback);
  std::vector<std::string> types = every(period, period - 1, layers);
  if (types.empty()) return types;
  if (model_type == "mimo_v2_flash") types.front() = kFull;
  if (model_type.starts_with("gemma4")) types.back() = kFull;
  return types;
}

bool switched_off(ObjectReader& top, std::string_view model_type) {
  if (model_type.starts_with("wav2vec2_") || model_type.starts_with("seamless_m4t")) {
    const bool is_off = top.text(field::kPositionEmbeddingsType).value_or("") != "rotary";
    if (is_off) top.accept(field::kTopLevelBase.back());
    return is_off;
  }
  if (never_rotates(model_type)) return true;
  if (top.boolean(field::kAlibi).value_or(false)) return true;
  if (model_type == "zamba2") return !top.boolean(field::kUseMemRope).value_or(false);
  if (is_one_of(model_type, {"granitemoehybrid", "esm"})) {
    const std::string kind = top.text(field::kPositionEmbeddingType).value_or("");
    return kind != "rope" && kind != "rotary";
  }
  if (model_type == "olmo_hybrid") {
    const bool no_dict = !top.has(field::kRopeParameters) && !top.has(field::kRopeScaling);
    return top.is_null(field::kRopeTheta) && no_dict;
  }
  return false;
}

std::vector<bool> from_list(ObjectReader& top, const std::vector<std::int64_t>& list,
                            std::int64_t layers) {
  if (list.size() != static_cast<std::size_t>(layers)) {
    fail(ErrorCode::invalid_config, "{}: expected {} entries, one per layer, got {}",
         top.named(field::kNoRopeLayers), layers, list.size());
  }
  std::vector<bool> rotates;
  rotates.reserve(list.size());
  for (const std::int64_t flag : list) rotates.push_back(flag != 0);  // 1 means rope, as in use
  return rotates;
}

/// Models that rotate their sliding layers alone.
std::vector<bool> sliding_alone(const std::vector<std::string>& types) {
  std::vector<bool> rotates;
  rotates.reserve(types.size());
  for (const std::string& type : types) rotates.push_back(type == kSliding);
  return rotates;
}

/// DeepSeek-V4 names its attention; layers that compress share one set of frequencies.
std::vector<std::string> by_compression(const std::vector<std::string>& attention) {
  std::vector<std::string> types;
  types.reserve(attention.size());
  for (const std::string& type : attention)
    types.emplace_back(type == kSliding ? "main" : "compress");
  return types;
}

}  // namespace

std::vector<std::string> layer_types_of(ObjectReader& top, const RopeConfig& config) {
  if (auto given = top.texts(field::kLayerTypes)) {
    const bool padded = config.model_type.starts_with("step3p7");
    const auto layers = static_cast<std::size_t>(config.layers);
    if (config.layers > 0 && (padded ? given->size() < layers : given->size() != layers)) {
      fail(ErrorCode::invalid_config, "{}: expected {} entries, one per layer, got {}",
           top.named(field::kLayerTypes), config.layers, given->size());
    }
    if (padded && layers > 0) given->resize(layers);
    if (config.model_type == "deepseek_v4") return by_compression(*given);
    return *given;
  }
  return derived(top, canonical_model_type(config.model_type), config.layers);
}

void read_layer_rotation(ObjectReader& top, RopeConfig& config) {
  const std::string model_type = canonical_model_type(config.model_type);
  config.rotates = !switched_off(top, model_type);
  if (!config.rotates) return;

  constexpr std::int64_t kEveryFourth = 4;
  const bool has_nope_layers = is_one_of(model_type, {"llama4", "smollm3"});
  const auto list = top.integers(field::kNoRopeLayers);
  const auto interval = top.positive_integer(field::kNoRopeLayerInterval);
  if (list && !list->empty()) {
    config.layer_rotates = from_list(top, *list, config.layers);
  } else if (interval || has_nope_layers) {
    const std::int64_t period = interval.value_or(kEveryFourth);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      config.layer_rotates.push_back((layer + 1) % period != 0);
    }
  }

  if (model_type == "cohere2_moe" && top.integer(field::kFirstKDenseReplace).value_or(0) > 0) {
    fail(ErrorCode::unsupported, "{}: dense layers at the start of '{}' are not supported yet",
         top.named(field::kFirstKDenseReplace), config.model_type);
  }
  const bool windowed = top.has(field::kSlidingWindow);
  const bool exaone = is_one_of(model_type, {"exaone4", "exaone4_5", "exaone_moe"}) && windowed;
  if (exaone || is_one_of(model_type, {"cohere2", "cohere2_moe", "afmoe"})) {
    config.layer_rotates = sliding_alone(layer_types_of(top, config));
  }
  if (model_type == "muse_glimmer" && !top.has(field::kLayerRopeTheta)) {
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      config.layer_rotates.push_back((config.layers - 1 - layer) % kEveryFourth != 0);
    }
  }
}

}  // namespace ropewalk::config
