// Every key of a Hugging Face config.json that Ropewalk reads, old spellings and new. No other
// file spells them.
#pragma once

#include <array>
#include <string_view>

namespace ropewalk::config::field {

// The model and its sizes.
inline constexpr std::string_view kModelType = "model_type";
inline constexpr std::string_view kSource = "_source";  // ours: where a shipped config comes from
inline constexpr std::array<std::string_view, 4> kHiddenSize = {"hidden_size", "n_embd", "d_model",
                                                                "dim"};
inline constexpr std::string_view kEmbedDim = "embed_dim";  // vision towers
inline constexpr std::array<std::string_view, 5> kQueryHeads = {
    "num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_num_attention_heads"};
inline constexpr std::array<std::string_view, 4> kKeyHeads = {
    "num_key_value_heads", "num_kv_heads", "n_kv_heads", "decoder_num_key_value_heads"};
inline constexpr std::array<std::string_view, 6> kLayers = {
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth", "decoder_num_hidden_layers"};
inline constexpr std::array<std::string_view, 3> kHeadDim = {"head_dim", "attention_head_dim",
                                                             "kv_channels"};
inline constexpr std::array<std::string_view, 3> kMaxPositions = {"max_position_embeddings",
                                                                  "n_positions", "max_seq_len"};
inline constexpr std::string_view kGlobalHeadDim = "global_head_dim";
inline constexpr std::string_view kPerLayerConfig = "per_layer_config";
inline constexpr std::string_view kMultiQuery = "multi_query";
inline constexpr std::string_view kNewDecoderArchitecture = "new_decoder_architecture";
inline constexpr std::string_view kQkNopeHeadDim = "qk_nope_head_dim";
inline constexpr std::string_view kQkRopeHeadDim = "qk_rope_head_dim";
inline constexpr std::string_view kKvLoraRank = "kv_lora_rank";
inline constexpr std::string_view kRopeInterleave = "rope_interleave";
inline constexpr std::string_view kIndexerRopeInterleave = "indexer_rope_interleave";

// Where the text model of a composite config lies, and DBRX's attention settings.
inline constexpr std::array<std::string_view, 4> kTextConfigs = {"text_config", "thinker_config",
                                                                 "llm_config", "language_config"};
inline constexpr std::string_view kVisionConfig = "vision_config";
inline constexpr std::string_view kThinkerConfig = "thinker_config";
inline constexpr std::string_view kConfigSuffix = "_config";
/// Where the model that rotates lies in a composite config without a text model.
inline constexpr std::array<std::string_view, 7> kOtherConfigs = {
    "decoder_config", "decoder",         "global_config", "encoder_config",
    "atom_encoder",   "backbone_config", kVisionConfig};
inline constexpr std::string_view kAttentionConfig = "attn_config";

// Rope parameters: the two places and what stands inside or beside them.
inline constexpr std::string_view kRopeParameters = "rope_parameters";
inline constexpr std::string_view kRopeScaling = "rope_scaling";
inline constexpr std::string_view kRopeType = "rope_type";
inline constexpr std::string_view kType = "type";
inline constexpr std::string_view kRopeTheta = "rope_theta";
inline constexpr std::array<std::string_view, 3> kTopLevelBase = {kRopeTheta, "rotary_emb_base",
                                                                  "rotary_embedding_base"};
inline constexpr std::string_view kPartialRotaryFactor = "partial_rotary_factor";
inline constexpr std::array<std::string_view, 3> kTopLevelPartial = {kPartialRotaryFactor,
                                                                     "rotary_pct", "rope_pct"};
inline constexpr std::string_view kRotaryDim = "rotary_dim";
inline constexpr std::string_view kFactor = "factor";
inline constexpr std::string_view kOriginalMaxPositions = "original_max_position_embeddings";
inline constexpr std::string_view kAttentionFactor = "attention_factor";
inline constexpr std::string_view kBetaFast = "beta_fast";
inline constexpr std::string_view kBetaSlow = "beta_slow";
inline constexpr std::string_view kMscale = "mscale";
inline constexpr std::string_view kMscaleAllDim = "mscale_all_dim";
inline constexpr std::string_view kTruncate = "truncate";
inline constexpr std::string_view kLowFreqFactor = "low_freq_factor";
inline constexpr std::string_view kHighFreqFactor = "high_freq_factor";
inline constexpr std::string_view kShortFactor = "short_factor";
inline constexpr std::string_view kLongFactor = "long_factor";
inline constexpr std::string_view kShortMscale = "short_mscale";
inline constexpr std::string_view kLongMscale = "long_mscale";
inline constexpr std::string_view kAlpha = "alpha";
inline constexpr std::string_view kMropeSection = "mrope_section";
inline constexpr std::string_view kMropeInterleaved = "mrope_interleaved";
inline constexpr std::string_view kXdropeSection = "xdrope_section";
inline constexpr std::string_view kLlama4ScalingBeta = "llama_4_scaling_beta";
inline constexpr std::string_view kDictMaxPositions = "max_position_embeddings";
inline constexpr std::string_view kFinetuned = "finetuned";

// Layers that differ.
inline constexpr std::string_view kLayerTypes = "layer_types";
inline constexpr std::string_view kRopeLocalBaseFreq = "rope_local_base_freq";
inline constexpr std::string_view kGlobalRopeTheta = "global_rope_theta";
inline constexpr std::string_view kLocalRopeTheta = "local_rope_theta";
inline constexpr std::string_view kPartialRotaryFactors = "partial_rotary_factors";
inline constexpr std::string_view kCompressRopeTheta = "compress_rope_theta";
inline constexpr std::string_view kLayerRopeTheta = "layer_rope_theta";
inline constexpr std::string_view kNoRopeLayers = "no_rope_layers";
inline constexpr std::string_view kNoRopeLayerInterval = "no_rope_layer_interval";
inline constexpr std::array<std::string_view, 2> kSlidingWindowPattern = {
    "sliding_window_pattern", "_sliding_window_pattern"};
inline constexpr std::string_view kGlobalAttentionEvery = "global_attn_every_n_layers";
inline constexpr std::string_view kSlidingWindow = "sliding_window";
inline constexpr std::string_view kFirstKDenseReplace = "first_k_dense_replace";

// Towers with sizes of their own: SAM's memory attention, CLVP, SeamlessM4T, ESMFold2.
inline constexpr std::string_view kMemoryHiddenSize = "memory_attention_hidden_size";
inline constexpr std::string_view kMemoryHeads = "memory_attention_num_attention_heads";
inline constexpr std::string_view kMemoryLayers = "memory_attention_num_layers";
inline constexpr std::string_view kMemoryDownsampleRate = "memory_attention_downsample_rate";
inline constexpr std::array<std::string_view, 3> kMemoryRope = {"memory_attention_rope_feat_sizes",
                                                                "memory_attention_rope_k_sizes",
                                                                "memory_attention_rope_dropout"};
inline constexpr std::string_view kProjectionDim = "projection_dim";
inline constexpr std::string_view kSpeechHeads = "speech_encoder_attention_heads";
inline constexpr std::string_view kSpeechLayers = "speech_encoder_layers";
inline constexpr std::string_view kSpatialPairs = "num_spatial_rope_pairs_per_axis";
inline constexpr std::string_view kSpatialBase = "spatial_rope_base_frequency";
inline constexpr std::string_view kCountedPairs = "num_uid_rope_pairs";
inline constexpr std::string_view kCountedBase = "uid_rope_base_frequency";

// Switches.
inline constexpr std::string_view kPositionEmbeddingsType = "position_embeddings_type";
inline constexpr std::string_view kPositionEmbeddingType = "position_embedding_type";
inline constexpr std::string_view kUseMemRope = "use_mem_rope";
inline constexpr std::string_view kAlibi = "alibi";
inline constexpr std::array<std::string_view, 3> kRotary = {"rotary", "use_rotary_pos_emb",
                                                            "use_rotary_embedding"};
inline constexpr std::string_view kUseMrope = "use_mrope";
inline constexpr std::string_view kRotaryValue = "rotary_value";

// Scaling of queries by position.
inline constexpr std::string_view kAttnTemperatureTuning = "attn_temperature_tuning";
inline constexpr std::string_view kFloorScale = "floor_scale";
inline constexpr std::string_view kAttnScale = "attn_scale";

}  // namespace ropewalk::config::field
