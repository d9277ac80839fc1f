#include "config/rope_by_layer.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/check.h"
#include "config/hf_fields.h"
#include "config/layer_types.h"
#include "config/rope_dict.h"
#include "config/rotary_dim.h"

namespace ropewalk::config {
namespace {

using nlohmann::json;

constexpr std::string_view kAll = "all";

/// The parameters by layer type while they are collected.
using ByLayerType = std::map<std::string, std::optional<RopeParameters>>;

/// What stands at the top level beside the dicts, and applies to all of them.
struct Beside {
  std::optional<double> partial_factor;
  std::optional<std::int64_t> rotary_dim;
  std::optional<std::int64_t> original;
};

const json* non_empty(ObjectReader& top, std::string_view key) {
  const json* dict = top.object(key);
  return dict != nullptr && !dict->empty() ? dict : nullptr;
}

bool is_nested(const json& dict, const std::vector<std::string>& layer_types) {
  return std::any_of(dict.items().begin(), dict.items().end(), [&](const auto& item) {
    const bool names_layer =
        std::find(layer_types.begin(), layer_types.end(), item.key()) != layer_types.end();
    return item.value().is_object() || (item.value().is_null() && names_layer);
  });
}

class Reader {
 public:
  Reader(ObjectReader& top, const ModelTraits& traits, RopeConfig& config)
      : top_(top), traits_(traits), config_(config) {}

  void run() {
    const std::vector<std::string> layer_types = layer_types_of(top_, config_);
    beside_.partial_factor = top_.positive_number(field::kTopLevelPartial);
    beside_.rotary_dim = top_.positive_integer(field::kRotaryDim);
    if (!beside_.rotary_dim) beside_.rotary_dim = own_rotary_dim();
    beside_.original = top_.positive_integer(field::kOriginalMaxPositions);

    const json* scaling = non_empty(top_, field::kRopeScaling);
    const json* parameters = non_empty(top_, field::kRopeParameters);
    const bool per_layer = read_layer_bases(scaling, parameters);
    if (!per_layer) read_per_type(layer_types, scaling, parameters);
    check_layer_types();
    read_layer_sizes();
    for (auto& [name, of_type] : config_.by_layer_type) {
      if (of_type) finish(*of_type);
    }
  }

 private:
  /// The rotated channels where a model's code fixes them in a way of its own.
  std::optional<std::int64_t> own_rotary_dim() {
    const std::string name = canonical_model_type(config_.model_type);
    if (name == "deepseek_v4") return top_.positive_integer(field::kQkRopeHeadDim);
    if (name != "clvp_encoder") return traits_.rotary_dim;
    constexpr std::int64_t kLeast = 32;
    constexpr std::int64_t kClassProjection = 768;
    const std::int64_t projection =
        top_.positive_integer(field::kProjectionDim).value_or(kClassProjection);
    return std::max(projection / (2 * config_.query_heads), kLeast);
  }

  void read_per_type(const std::vector<std::string>& layer_types, const json* scaling,
                     const json* parameters) {
    if (read_layer_lists(layer_types, scaling)) {
      config_.layer_types = layer_types;
    } else if (parameters != nullptr && is_nested(*parameters, layer_types)) {
      refuse_both(scaling);
      read_nested(*parameters, field::kRopeParameters);
      config_.layer_types = layer_types;
    } else if (parameters == nullptr && scaling != nullptr && is_nested(*scaling, layer_types)) {
      read_nested(*scaling, field::kRopeScaling);
      config_.layer_types = layer_types;
    } else if (!traits_.layer_kinds.empty()) {
      if (parameters != nullptr && config_.model_type != "deepseek_v4") {
        fail(ErrorCode::invalid_config, "{}: expected one dict per layer type for '{}'",
             top_.named(field::kRopeParameters), config_.model_type);
      }
      if (parameters != nullptr) refuse_both(scaling);
      read_kinds(parameters != nullptr ? parameters : scaling);
      config_.layer_types = layer_types;
    } else {
      read_flat(scaling, parameters);
      config_.layer_types.assign(static_cast<std::size_t>(config_.layers), std::string(kAll));
    }
  }

  DictDefaults defaults(double base, double partial_factor, std::string_view type) const {
    DictDefaults result;
    result.model_type = canonical_model_type(config_.model_type);
    result.type = type;
    result.base = base;
    result.partial_factor = beside_.partial_factor.value_or(partial_factor);
    result.original_max_positions = config_.max_positions;
    return result;
  }

  RopeParameters read(const json& dict, std::string_view path, const DictDefaults& with) const {
    ObjectReader reader(dict, top_.named(path));
    return read_rope_dict(reader, with);
  }

  double top_level_base() {
    const auto base = top_.positive_number(field::kTopLevelBase);
    return base ? *base : attention_config_base().value_or(traits_.base);
  }

  /// DBRX keeps its base among the settings of its attention.
  std::optional<double> attention_config_base() {
    const json* attention = top_.object(field::kAttentionConfig);
    if (attention == nullptr) return std::nullopt;
    return ObjectReader(*attention, top_.named(field::kAttentionConfig))
        .positive_number(field::kRopeTheta);
  }

  void refuse_both(const json* scaling) const {
    if (scaling == nullptr) return;
    fail(ErrorCode::invalid_config, "{}: expected it or {}, not both",
         top_.named(field::kRopeScaling), field::kRopeParameters);
  }

  void read_flat(const json* scaling, const json* parameters) {
    const bool says_nothing = scaling == nullptr && parameters == nullptr;
    const auto class_default = default_parameters_of(canonical_model_type(config_.model_type));
    const double base = top_level_base();
    DictDefaults with = defaults(base, traits_.partial_factor, "default");
    with.original_override = beside_.original;
    RopeParameters result;
    if (says_nothing && class_default) {
      result = *class_default;
      result.base = base;
    } else {
      static const json kEmpty = json::object();
      const json& first = scaling != nullptr ? *scaling : says_nothing ? kEmpty : *parameters;
      const auto path = scaling != nullptr ? field::kRopeScaling : field::kRopeParameters;
      result = read(first, path, with);
    }
    if (scaling != nullptr && parameters != nullptr &&
        !(read(*parameters, field::kRopeParameters, with) == result)) {
      fail(ErrorCode::invalid_config, "{}: expected the same parameters as {}",
           top_.named(field::kRopeScaling), field::kRopeParameters);
    }
    config_.by_layer_type.emplace(kAll, std::move(result));
  }

  const LayerKind* kind_of(std::string_view name) const {
    const auto found = std::find_if(traits_.layer_kinds.begin(), traits_.layer_kinds.end(),
                                    [name](const LayerKind& kind) { return kind.name == name; });
    return found == traits_.layer_kinds.end() ? nullptr : &*found;
  }

  double base_of(const LayerKind& kind) {
    if (kind.base_key.empty()) return kind.base;
    return top_.positive_number(kind.base_key).value_or(kind.base);
  }

  /// rope_parameters keyed by layer type; a kind of the model that the dict leaves out has the
  /// defaults of its class.
  void read_nested(const json& nested, std::string_view path) {
    const bool one_base = traits_.layer_kinds.empty();
    const double shared = one_base ? top_level_base() : traits_.base;
    for (const auto& [name, value] : nested.items()) {
      if (value.is_null()) {
        config_.by_layer_type.emplace(name, std::nullopt);
        continue;
      }
      if (name == field::kRopeType && config_.model_type == "zaya") continue;
      if (!value.is_object()) {
        fail(ErrorCode::invalid_config, "{}.{}: expected a dict of one layer type",
             top_.named(path), name);
      }
      const LayerKind* kind = kind_of(name);
      const DictDefaults with = kind != nullptr
                                    ? defaults(base_of(*kind), kind->partial_factor, kind->type)
                                    : defaults(shared, traits_.partial_factor, "default");
      RopeParameters of_type = read(value, fmt::format("{}.{}", path, name), with);
      if (of_type.truncate == false) config_.upstream.ignores_truncate = true;
      config_.by_layer_type.emplace(name, std::move(of_type));
    }
    for (const LayerKind& kind : traits_.layer_kinds) {
      if (config_.by_layer_type.contains(std::string(kind.name))) continue;
      add_kind(kind, nullptr);
    }
  }

  void add_kind(const LayerKind& kind, const json* scaling) {
    static const json kEmpty = json::object();
    const DictDefaults with = defaults(base_of(kind), kind.partial_factor, kind.type);
    const bool scaled = scaling != nullptr && kind.takes_rope_scaling;
    config_.by_layer_type.emplace(kind.name,
                                  read(scaled ? *scaling : kEmpty, field::kRopeScaling, with));
  }

  /// The legacy form of a model whose kinds of layers differ.
  void read_kinds(const json* scaling) {
    const bool any_takes = std::any_of(traits_.layer_kinds.begin(), traits_.layer_kinds.end(),
                                       [](const LayerKind& k) { return k.takes_rope_scaling; });
    if (scaling != nullptr && !any_takes) {
      fail(ErrorCode::invalid_config, "{}: expected {} with one dict per layer type",
           top_.named(field::kRopeScaling), field::kRopeParameters);
    }
    for (const LayerKind& kind : traits_.layer_kinds) add_kind(kind, scaling);
  }

  /// Lists with one base (and share) per layer: every layer of a type must agree.
  bool read_layer_lists(const std::vector<std::string>& layer_types, const json* scaling) {
    if (!top_.is_array(field::kRopeTheta)) return false;
    const auto bases = top_.numbers(field::kRopeTheta).value_or(std::vector<double>{});
    const auto shares = top_.numbers(field::kPartialRotaryFactors);
    if (layer_types.empty() || bases.size() < layer_types.size() ||
        (shares && shares->size() < layer_types.size())) {
      fail(ErrorCode::invalid_config, "{}: expected one number per entry of {}, got {} for {}",
           top_.named(field::kRopeTheta), field::kLayerTypes, bases.size(), layer_types.size());
    }
    static const json kEmpty = json::object();
    for (std::size_t layer = 0; layer < layer_types.size(); ++layer) {
      const bool scaled = scaling != nullptr && layer_types[layer] == "full_attention";
      RopeParameters p = read(scaled ? *scaling : kEmpty, field::kRopeScaling,
                              defaults(bases[layer], shares ? (*shares)[layer] : 1.0, "default"));
      const auto [entry, is_new] = config_.by_layer_type.emplace(layer_types[layer], p);
      if (!is_new && entry->second != p) {
        fail(ErrorCode::invalid_config, "{}: expected one value for all layers of type '{}'",
             top_.named(field::kRopeTheta), layer_types[layer]);
      }
    }
    return true;
  }

  /// A base per layer, 0 for a layer without rope: layers with one base share a type.
  bool read_layer_bases(const json* scaling, const json* parameters) {
    const auto bases = top_.numbers(field::kLayerRopeTheta);
    if (!bases) return false;
    if (bases->size() != static_cast<std::size_t>(config_.layers)) {
      fail(ErrorCode::invalid_config, "{}: expected {} numbers, one per layer, got {}",
           top_.named(field::kLayerRopeTheta), config_.layers, bases->size());
    }
    read_flat(scaling, parameters);
    const auto shared = config_.by_layer_type.at(std::string(kAll)).value_or(RopeParameters{});
    config_.by_layer_type.clear();
    const std::set<double> distinct(bases->begin(), bases->end());
    const bool one = distinct.size() - distinct.count(0.0) == 1;
    for (const double base : *bases) {
      RopeParameters p = shared;
      p.base = base;
      std::string type = base == 0.0 ? "no_rope"
                         : one       ? std::string(kAll)
                                     : fmt::format("base_{}", base);
      if (base != 0.0 && !is_valid_base(base)) {
        fail(ErrorCode::invalid_config, "{}: expected bases {}, or 0 for no rope, got {}",
             top_.named(field::kLayerRopeTheta), kBaseRange, base);
      }
      config_.by_layer_type.emplace(type, base == 0.0 ? std::nullopt : std::optional(p));
      config_.layer_types.push_back(std::move(type));
      config_.layer_rotates.push_back(base != 0.0);
    }
    return true;
  }

  void check_layer_types() const {
    for (const std::string& type : config_.layer_types) {
      if (config_.by_layer_type.contains(type)) continue;
      fail(ErrorCode::invalid_config, "{}: expected rope parameters for '{}' in {}",
           top_.named(field::kLayerTypes), type, field::kRopeParameters);
    }
  }

  /// What holds for every kind of parameters once they are read.
  void finish(RopeParameters& p) const {
    if (beside_.rotary_dim) p.rotary_dim = beside_.rotary_dim;
    // Its share is that of the rotated slice in the full head; the slice is rotated whole.
    if (canonical_model_type(config_.model_type) == "mistral4") p.partial_factor = 1.0;
    if (config_.model_type == "bamba") p.partial_factor = 0.5;
    if (p.mrope_section.empty() && !traits_.mrope_section.empty()) {
      p.mrope_section.assign(traits_.mrope_section.begin(), traits_.mrope_section.end());
    }
    if (traits_.mrope_interleaved) p.mrope_interleaved = *traits_.mrope_interleaved;
    if (!traits_.rope_type.empty()) p.type = traits_.rope_type;
    if (p.type == "coordinates") read_coordinates(p);
    const std::string name = canonical_model_type(config_.model_type);
    if (name == "efficientloftr") p.partial_factor = 1.0;
    if (name == "deepseek_v4" && p.type == "yarn" && !p.attention_factor) p.attention_factor = 1.0;
    if (p.type == "proportional" && !p.head_dim) p.head_dim = global_head_dim();
    check_sizes(p);
  }

  /// ESMFold2: pairs and bases stand beside each other; what is left of the head does not turn.
  void read_coordinates(RopeParameters& p) const {
    const auto given = [this](std::string_view key) {
      const auto value = top_.positive_integer(key);
      if (!value) fail(ErrorCode::invalid_config, "{}: missing", top_.named(key));
      return *value;
    };
    const std::int64_t spatial = given(field::kSpatialPairs);
    const std::int64_t counted = given(field::kCountedPairs);
    const std::int64_t rest = config_.head_dim / 2 - 3 * spatial;
    if (spatial > config_.head_dim || counted > rest) {
      fail(ErrorCode::invalid_config, "{}: expected at most {} for a head of {} channels, got {}",
           top_.named(field::kCountedPairs), rest, config_.head_dim, counted);
    }
    p.spatial_base = top_.positive_number(field::kSpatialBase).value_or(20.0);
    p.base = top_.positive_number(field::kCountedBase).value_or(1e4);
    p.counted_pairs = counted;
    p.mrope_section = {spatial, spatial, spatial, rest};
  }

  /// Sizes of single layers: those of one type must agree. Gemma 4 widens its full layers so.
  void read_layer_sizes() {
    const json* layers = top_.object(field::kPerLayerConfig);
    if (layers == nullptr) return;
    for (const auto& [key, sizes] : layers->items()) {
      const std::string path = fmt::format("{}.{}", field::kPerLayerConfig, key);
      std::size_t layer = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
      if (error != std::errc() || end != key.data() + key.size() || !sizes.is_object()) {
        fail(ErrorCode::invalid_config, "{}: expected the sizes of a layer by its number",
             top_.named(path));
      }
      ObjectReader reader(sizes, top_.named(path));
      const auto head_dim = reader.positive_integer(field::kHeadDim);
      if (!head_dim || layer >= config_.layer_types.size()) continue;
      const auto of_type = config_.by_layer_type.find(config_.layer_types[layer]);
      if (of_type == config_.by_layer_type.end() || !of_type->second) continue;
      std::optional<std::int64_t>& known = of_type->second->head_dim;
      if (known && *known != *head_dim) {
        fail(ErrorCode::invalid_config, "{}: expected one size for all layers of type '{}'",
             top_.named(path), of_type->first);
      }
      known = head_dim;
    }
  }

  void check_sizes(const RopeParameters& p) const {
    const std::int64_t width =
        rotary_dim_of(p, p.head_dim.value_or(config_.head_dim), OddWidth::rounded_up);
    for (const auto& [key, list] : {std::pair{field::kShortFactor, &p.short_factor},
                                    std::pair{field::kLongFactor, &p.long_factor}}) {
      if (p.type == "longrope" && list->size() != static_cast<std::size_t>((width + 1) / 2)) {
        fail(ErrorCode::invalid_config, "{}: expected {} numbers, one per pair, got {}", key,
             width / 2, list->size());
      }
    }
  }

  std::int64_t global_head_dim() const {
    constexpr std::int64_t kGemma4Global = 512;
    const bool gemma4 = !traits_.layer_kinds.empty();
    return top_.positive_integer(field::kGlobalHeadDim)
        .value_or(gemma4 ? kGemma4Global : config_.head_dim);
  }

  ObjectReader& top_;
  const ModelTraits& traits_;
  RopeConfig& config_;
  Beside beside_;
};

}  // namespace

void read_rope_parameters(ObjectReader& top, const ModelTraits& traits, RopeConfig& config) {
  Reader(top, traits, config).run();
}

}  // namespace ropewalk::config
