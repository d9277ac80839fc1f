#include "config/head_shape.h"

#include "base/check.h"
#include "config/hf_fields.h"

namespace ropewalk::config {
namespace {

constexpr std::int64_t kMaxLayers = 100000;  // every layer has an entry in memory

std::int64_t key_heads_of(ObjectReader& top, std::int64_t query_heads) {
  const auto given = top.positive_integer(field::kKeyHeads);
  // Falcon: multi_query means one key head unless the new architecture says how many.
  const bool multi_query =
      top.has(field::kMultiQuery) && top.boolean(field::kMultiQuery).value_or(false);
  const bool grouped = top.boolean(field::kNewDecoderArchitecture).value_or(false);
  if (multi_query && !grouped) return 1;
  return given.value_or(query_heads);
}

std::int64_t head_dim_of(ObjectReader& top, const ModelTraits& traits, const RopeConfig& config) {
  const auto given = top.positive_integer(field::kHeadDim);
  const auto hidden = top.positive_integer(field::kHiddenSize);
  const auto embed = top.positive_integer(field::kEmbedDim);
  if (given) return *given;
  if (traits.head_dim) return *traits.head_dim;
  // Zamba2 attends over the concatenation of two hidden states.
  const std::int64_t copies = config.model_type == "zamba2" ? 2 : 1;
  const auto width = embed ? embed : hidden;
  if (!width) {
    fail(ErrorCode::invalid_config, "{}: expected it, or {} to divide by the heads",
         top.named(field::kHeadDim.front()), top.named(field::kHiddenSize.front()));
  }
  return copies * *width / config.query_heads;
}

/// Towers whose config spells their sizes in a way of its own; false for all others.
bool read_own_shape(ObjectReader& top, RopeConfig& config) {
  const auto given = [&top](std::string_view key) {
    const auto value = top.positive_integer(key);
    if (!value) fail(ErrorCode::invalid_config, "{}: missing, expected a number", top.named(key));
    return *value;
  };
  const std::string name = canonical_model_type(config.model_type);
  if (name == "sam2_video" || name == "edgetam_video" || name == "sam3_tracker_video") {
    config.query_heads = config.key_heads = given(field::kMemoryHeads);
    const std::int64_t rate = given(field::kMemoryDownsampleRate);
    config.head_dim = given(field::kMemoryHiddenSize) / (rate * config.query_heads);
    config.layers = given(field::kMemoryLayers);
    for (const std::string_view key : field::kMemoryRope) top.accept(key);
    return true;
  }
  if (name == "efficientloftr") {  // rotates the hidden vector before heads are cut
    config.query_heads = config.key_heads = 1;
    config.head_dim = given(field::kHiddenSize.front());
    return true;
  }
  if (name == "musicflamingo") {  // rotates the embeddings of audio frames
    config.query_heads = config.key_heads = 1;
    config.head_dim = given(field::kHeadDim.front());
    return true;
  }
  if (name.starts_with("seamless_m4t")) {
    config.query_heads = config.key_heads = given(field::kSpeechHeads);
    config.layers = given(field::kSpeechLayers);
    config.head_dim = given(field::kHiddenSize.front()) / config.query_heads;
    return true;
  }
  if (name == "glm5_next") {  // its text model has no rotary slice: qk_rope_head_dim is 0
    config.query_heads = given(field::kQueryHeads.front());
    config.key_heads = given(field::kKeyHeads.front());
    config.layers = given(field::kLayers.front());
    config.head_dim = given(field::kQkNopeHeadDim);
    return true;
  }
  return false;
}

}  // namespace

void read_shape(ObjectReader& top, const ModelTraits& traits, RopeConfig& config) {
  if (read_own_shape(top, config)) return;
  const auto heads = top.positive_integer(field::kQueryHeads);
  if (!heads && !traits.query_heads) {
    fail(ErrorCode::invalid_config, "{}: missing, expected the number of query heads",
         top.named(field::kQueryHeads.front()));
  }
  config.query_heads = heads ? *heads : *traits.query_heads;
  config.key_heads =
      key_heads_of(top, traits.key_heads && !heads ? *traits.key_heads : config.query_heads);
  config.layers = top.positive_integer(field::kLayers).value_or(0);
  if (config.layers > kMaxLayers) {
    fail(ErrorCode::invalid_config, "{}: expected at most {} layers, got {}",
         top.named(field::kLayers.front()), kMaxLayers, config.layers);
  }
  config.max_positions = top.positive_integer(field::kMaxPositions);
  if (!config.max_positions) config.max_positions = traits.max_positions;
  config.latent_attention = traits.latent_attention;

  if (!traits.latent_attention) {
    config.head_dim = head_dim_of(top, traits, config);
    return;
  }
  const auto slice = top.positive_integer(field::kQkRopeHeadDim);
  if (!slice) {
    fail(ErrorCode::invalid_config, "{}: missing, expected the rotated channels of a head",
         top.named(field::kQkRopeHeadDim));
  }
  top.accept(field::kQkNopeHeadDim);
  config.head_dim = *slice;
  config.key_heads = 1;
}

}  // namespace ropewalk::config
