
// Model configurations: Hugging Face config.json in, RopeConfig out, and from it the plans.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/export.h"
#include "ropewalk/plan.h"

namespace ropewalk {

/// The rope parameters of one kind of layer, normalised from whichever keys the config spelled.
/// Values absent in the config and without a default stay empty.
struct RopeParameters {
  std::string type = "default";  ///< default, linear, dynamic, yarn, longrope, llama3,
                                 ///< proportional, axial
  double base = 10000.0;
  double partial_factor = 1.0;             ///< rotary_dim = int(head_dim · partial_factor)
  std::optional<std::int64_t> rotary_dim;  ///< given as such (gptj, minimax_m2)
  std::optional<std::int64_t> head_dim;    ///< where this layer type has its own (gemma4)
  std::optional<double> factor;
  std::optional<std::int64_t> original_max_positions;
  std::optional<double> attention_factor;
  std::optional<double> beta_fast, beta_slow, mscale, mscale_all_dim;
  std::optional<bool> truncate;
  std::optional<double> low_freq_factor, high_freq_factor;
  std::vector<double> short_factor, long_factor;
  std::optional<double> short_mscale, long_mscale;
  std::optional<double> alpha;              ///< Hunyuan's dynamic
  std::vector<std::int64_t> mrope_section;  ///< pairs per axis; empty: one axis
  bool mrope_interleaved = false;
  [[nodiscard]] bool operator==(const RopeParameters&) const = default;
};

/// A model's rotary embedding as its config states it.
struct RopeConfig {
  std::string model_type;
  std::int64_t head_dim = 0;  ///< of the rotated tensor (MLA: qk_rope_head_dim)
  std::int64_t query_heads = 0;
  std::int64_t key_heads = 0;  ///< 1 for MLA's shared key slice
  std::int64_t layers = 0;
  bool latent_attention = false;  ///< MLA: YaRN also scales the softmax (mscale_all_dim)
  std::optional<std::int64_t> max_positions;
  Pairing pairing = Pairing::half;
  Arithmetic model_arithmetic = Arithmetic::parity_p0;  ///< class of the model's own eager code
  bool rotates = true;  ///< false: the model disables rope (alibi, absolute, …)
  /// Rope parameters by layer type; one entry named "all" where layers do not differ. A null
  /// entry in the config (a layer type without rope) is an empty optional.
  std::map<std::string, std::optional<RopeParameters>> by_layer_type;
  /// Layer type of each layer ("all" everywhere where layers do not differ; empty where unknown).
  std::vector<std::string> layer_types;
  std::vector<bool> layer_rotates;  ///< NoPE layers are false; empty: all as `rotates`
  QueryScaling query_scaling;
};

/// Reads the text of a config.json. Every rope key is consumed: an unknown rope type, a missing
/// required key, an unread rope key, a value of the wrong type, or an impossible size is
/// Error(invalid_config) that names the key and what was expected. Nested text_config is used
/// where the top level has none of its own.
[[nodiscard]] ROPEWALK_API RopeConfig parse_config(std::string_view json);

/// The same from a file; Error(io) where it cannot be read.
[[nodiscard]] ROPEWALK_API RopeConfig load_config(const std::filesystem::path& path);

/// Fills out[i] with base^(2i / denominator) in fp32.
using ModelPower = std::function<void(float base, std::int64_t denominator, std::span<float> out)>;

struct PlanOptions {
  std::string layer_type = {};         ///< empty: the only one; Error(invalid_argument) otherwise
  std::optional<std::int64_t> length;  ///< sequence length for dynamic and longrope
  FrequencyPrecision frequency_precision = FrequencyPrecision::model;
  Arithmetic arithmetic = Arithmetic::exact;
  /// The power function of the fp32 recipe behind model_frequencies; empty: one that is correctly
  /// rounded. PyTorch's is not, in about 0.5 % of values: pass it here to reach every bit.
  ModelPower model_power = {};
};

/// The plan of a layer type. A layer type without rope, or a model that disables it, gives a plan
/// whose rotates() is false.
[[nodiscard]] ROPEWALK_API RotaryPlan make_plan(const RopeConfig& config,
                                                const PlanOptions& options = {});

}  // namespace ropewalk
