
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
                                 ///< proportional, axial, coordinates, factors
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
  std::optional<double> spatial_base;         ///< coordinates: the base of x, y, z
  std::optional<std::int64_t> counted_pairs;  ///< coordinates: pairs of the counter that turn
  [[nodiscard]] bool operator==(const RopeParameters&) const = default;
};

/// How frequencies and the components of a position are dealt to the pairs. "The list" is what the
/// schedule gives; h, w, t are axes.
enum class AxisRule : std::uint8_t {
  sections_of_config,  ///< runs of mrope_section, or Qwen3-VL's round robin; one axis without it
  doubled_sections,    ///< runs of twice each section over the channels (HunYuan-VL, transformers)
  alternating,         ///< pair j has axis j mod 2 (NeoMME)
  alternating_tail,    ///< sections h, w, t: axes 1 2 1 2 … and then 0 (ERNIE 4.5 VL)
  split,             ///< even entries of the list on axis 0, then the odd ones on axis 1 (Pixtral)
  split_tail,        ///< split on axes 1 and 2, then a tail of axis 0 (Cohere Compass)
  each,              ///< the whole list on axis 0, then on axis 1, … (axial)
  each_alternating,  ///< pair j has entry j / 2 and axis j mod 2 (EfficientLoFTR)
  each_alternating_back,  ///< pair j has entry j / 2 and axis 1 − j mod 2 (Kimi K2.5)
  each_wrapped,           ///< each, but channel c of an axis' block has entry c mod n (V-JEPA2)
};

/// A rule with the number of axes, which only the `each` rules do not derive.
struct AxisLayout {
  AxisRule rule = AxisRule::sections_of_config;
  int axes = 2;
  [[nodiscard]] bool operator==(const AxisLayout&) const = default;
};

/// Where transformers' code departs from what the checkpoints were trained with
/// (docs/models_defects.md): parity follows these, exact does not.
struct UpstreamDefects {
  std::optional<AxisLayout> axis_layout;
  bool short_factors_at_every_length = false;  ///< Phi-3.5-MoE
  bool ignores_rotary_dim = false;             ///< MiniMax-M2, M3
  bool ignores_truncate = false;               ///< YaRN parameters given by layer type
  [[nodiscard]] bool operator==(const UpstreamDefects&) const = default;
};

/// A model's rotary embedding as its config states it.
struct RopeConfig {
  std::string model_type;
  std::string part;           ///< dotted path of the part it describes; empty: the top level
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
  AxisLayout axis_layout;
  bool window_at_end = false;   ///< the last channels rotate (DeepSeek-V4)
  bool block_per_axis = false;  ///< each axis' channels have a half pairing of their own (Gemma 4)
  int sign = 1;                 ///< −1: nanochat
  std::string position_recipe = "token";
  std::string rotated = "q k";
  UpstreamDefects upstream;
};

/// Reads the text of a config.json. Every rope key is consumed: an unknown rope type, a missing
/// required key, an unread rope key, a value of the wrong type, or an impossible size is
/// Error(invalid_config) that names the key and what was expected. Nested text_config is used
/// where the top level has none of its own.
/// A config may hold several rotary towers. `part` chooses: empty or "text", the text model or the
/// only one; "vision", "audio", … or the dotted path of a nested config ("thinker_config.vision",
/// with or without "_config"); ".", the top level itself. Error(invalid_argument) where there is
/// no such part, with those that there are.
[[nodiscard]] ROPEWALK_API RopeConfig parse_config(std::string_view json,
                                                   std::string_view part = {});

/// The parts of a config that have rotary embeddings, as dotted paths, the one that an empty
/// `part` chooses first ("text" where it is the top level).
[[nodiscard]] ROPEWALK_API std::vector<std::string> rotary_parts(std::string_view json);

/// The same from a file; Error(io) where it cannot be read.
[[nodiscard]] ROPEWALK_API RopeConfig load_config(const std::filesystem::path& path,
                                                  std::string_view part = {});

/// The text of a config file, as the two above take it. A GGUF file gives its key-value header and
/// rope tensors as JSON (general.architecture decides pairing and rules); Error(io), or
/// Error(invalid_config) where it is too large to be one.
[[nodiscard]] ROPEWALK_API std::string read_config_text(const std::filesystem::path& path);

/// Fills out[i] with base^(2i / denominator) in fp32.
using ModelPower = std::function<void(float base, std::int64_t denominator, std::span<float> out)>;

struct PlanOptions {
  std::string layer_type = {};         ///< empty: the only one; Error(invalid_argument) otherwise
  std::optional<std::int64_t> length;  ///< sequence length for dynamic and longrope
  FrequencyPrecision frequency_precision = FrequencyPrecision::model;
  Arithmetic arithmetic = Arithmetic::exact;
  /// first or second where the two channels of a pair turn by different angles (PairChannels);
  /// Error(invalid_argument) where the model needs a choice or has none to make.
  PairChannels channels = PairChannels::both;
  /// The power function of the fp32 recipe behind model_frequencies; empty: one that is correctly
  /// rounded. PyTorch's is not, in about 0.5 % of values: pass it here to reach every bit.
  ModelPower model_power = {};
};

/// The plan of a layer type. A layer type without rope, or a model that disables it, gives a plan
/// whose rotates() is false.
[[nodiscard]] ROPEWALK_API RotaryPlan make_plan(const RopeConfig& config,
                                                const PlanOptions& options = {});

}  // namespace ropewalk
