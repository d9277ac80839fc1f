// Every key of a GGUF header that Ropewalk reads. "{arch}." stands before all but the first.
#pragma once

#include <array>
#include <string_view>

namespace ropewalk::config::gguf {

/// Marks a JSON object that was a GGUF header.
inline constexpr std::string_view kMark = "_gguf";

inline constexpr std::string_view kArchitecture = "general.architecture";
inline constexpr std::string_view kEmbedding = "embedding_length";
inline constexpr std::string_view kLayers = "block_count";
inline constexpr std::string_view kContext = "context_length";
inline constexpr std::string_view kHeads = "attention.head_count";
inline constexpr std::string_view kKeyHeads = "attention.head_count_kv";
inline constexpr std::string_view kKeyLength = "attention.key_length";
inline constexpr std::string_view kKeyLengthSliding = "attention.key_length_swa";
inline constexpr std::string_view kKvLoraRank = "attention.kv_lora_rank";
inline constexpr std::string_view kSlidingPattern = "attention.sliding_window_pattern";
inline constexpr std::string_view kTemperatureLength = "attention.temperature_length";
inline constexpr std::string_view kTemperatureScale = "attention.temperature_scale";

inline constexpr std::string_view kDimensions = "rope.dimension_count";
inline constexpr std::string_view kDimensionsSliding = "rope.dimension_count_swa";
inline constexpr std::string_view kSections = "rope.dimension_sections";
inline constexpr std::string_view kBase = "rope.freq_base";
inline constexpr std::string_view kBaseSliding = "rope.freq_base_swa";
inline constexpr std::string_view kScalingType = "rope.scaling.type";
inline constexpr std::string_view kFactor = "rope.scaling.factor";
inline constexpr std::string_view kFactorOld = "rope.scale_linear";
inline constexpr std::string_view kAlpha = "rope.scaling.alpha";
inline constexpr std::string_view kAttnFactor = "rope.scaling.attn_factor";
inline constexpr std::string_view kOriginalContext = "rope.scaling.original_context_length";
inline constexpr std::string_view kFinetuned = "rope.scaling.finetuned";
inline constexpr std::string_view kYarnLogMultiplier = "rope.scaling.yarn_log_multiplier";
inline constexpr std::string_view kYarnExtFactor = "rope.scaling.yarn_ext_factor";
inline constexpr std::string_view kYarnAttnFactor = "rope.scaling.yarn_attn_factor";
inline constexpr std::string_view kYarnBetaFast = "rope.scaling.yarn_beta_fast";
inline constexpr std::string_view kYarnBetaSlow = "rope.scaling.yarn_beta_slow";

inline constexpr std::string_view kFactorsTensor = "rope_freqs.weight";
inline constexpr std::string_view kLongTensor = "rope_factors_long.weight";
inline constexpr std::string_view kShortTensor = "rope_factors_short.weight";

}  // namespace ropewalk::config::gguf
