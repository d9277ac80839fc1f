// What a model's own code fixes beside its config: pairing, arithmetic, class defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ropewalk/config.h"

namespace ropewalk::config {

/// Defaults of one kind of layer, for models whose kinds differ.
struct LayerKind {
  std::string_view name;
  double base;
  double partial_factor;
  std::string_view base_key;  ///< top-level key that replaces `base`; empty: none
  bool takes_rope_scaling;    ///< a legacy rope_scaling applies to this kind
  std::string_view type;
};

struct ModelTraits {
  Pairing pairing = Pairing::half;
  Arithmetic arithmetic = Arithmetic::parity_p0;
  bool latent_attention = false;  ///< the rotated tensor is a slice of its own (MLA)
  double base = 10000.0;
  double partial_factor = 1.0;
  std::optional<std::int64_t> head_dim;     ///< of the class, where it is not hidden / heads
  std::optional<std::int64_t> query_heads;  ///< these three where published configs omit them
  std::optional<std::int64_t> key_heads;
  std::optional<std::int64_t> max_positions;
  std::optional<std::int64_t> rotary_dim;       ///< of the class, where the config says it as such
  std::span<const LayerKind> layer_kinds;       ///< empty: one kind of layer
  std::span<const std::int64_t> mrope_section;  ///< class default; empty: one axis
  std::optional<bool> mrope_interleaved;  ///< fixed by the model's code; empty: the config says
  std::string_view rope_type = {};        ///< fixed by the model's code; empty: the config says
  AxisLayout axis_layout;
  bool window_at_end = false;
  bool block_per_axis = false;
  int sign = 1;
  std::string_view position_recipe = "token";
  std::string_view rotated = "q k";
  UpstreamDefects upstream;
};

/// The name under which a model type is looked up: without "_text", known aliases resolved.
[[nodiscard]] std::string canonical_model_type(std::string_view model_type);

/// Traits of a canonical model type. An unknown one has those of the Llama kind.
[[nodiscard]] ModelTraits traits_of(std::string_view model_type);

/// The rope parameters of a class whose default is not the plain schedule; used where a config
/// says nothing about rope at all.
[[nodiscard]] std::optional<RopeParameters> default_parameters_of(std::string_view model_type);

/// Fills what kTowers says of a canonical model type: axes, pairing, arithmetic, positions.
void set_tower_traits(ModelTraits& traits, std::string_view model_type);

/// Fills what is rotated, in which direction and window, and where transformers departs.
void set_rotation_traits(ModelTraits& traits, std::string_view model_type);

/// Error(unsupported), saying what is missing, for a model type that no plan can express.
void refuse_unsupported(std::string_view model_type);

/// The model has no rotary embedding, or defines one that it never applies.
[[nodiscard]] bool never_rotates(std::string_view model_type);

}  // namespace ropewalk::config
