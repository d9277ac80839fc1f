#include "config/rope_dict.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "config/hf_fields.h"
#include "config/rotary_dim.h"

namespace ropewalk::config {
namespace {

constexpr std::array<std::string_view, 8> kTypes = {"default",  "linear", "dynamic",      "yarn",
                                                    "longrope", "llama3", "proportional", "axial"};

std::string type_of(ObjectReader& dict, const DictDefaults& defaults) {
  const auto newer = dict.text(field::kRopeType);
  const auto older = dict.text(field::kType);
  std::string type = newer ? *newer : older.value_or(defaults.type);
  if (type == "mrope") type = "default";
  if (type == "xdrope") type = "dynamic";
  const bool phi = defaults.model_type == "phi3" || defaults.model_type == "phi4_multimodal" ||
                   defaults.model_type == "phi4mm";
  if (type == "su" || (phi && type == "yarn")) type = "longrope";
  if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
    fail(ErrorCode::invalid_config, "{}: expected one of {}; got '{}'",
         dict.named(newer ? field::kRopeType : field::kType), fmt::join(kTypes, ", "), type);
  }
  return type;
}

template <class T>
T required(const ObjectReader& dict, std::string_view key, const std::optional<T>& value,
           std::string_view type) {
  if (!value) {
    fail(ErrorCode::invalid_config, "{}: missing, rope type '{}' needs it", dict.named(key), type);
  }
  return *value;
}

/// The key as the config has it: a dict without it takes the value beside it.
std::string place_of(const ObjectReader& dict, std::string_view key) {
  return dict.has(key) ? dict.named(key) : std::string(key);
}

/// 0, or what fp32 holds in full.
std::optional<double> amplitude(ObjectReader& dict, std::string_view key) {
  const auto value = dict.number(key);
  if (value && *value != 0.0 && !(*value > 0.0 && std::isnormal(static_cast<float>(*value)))) {
    fail(ErrorCode::invalid_config, "{}: expected 0 or a positive normal number of fp32, got {}",
         dict.named(key), *value);
  }
  return value;
}

void check_stretch(const ObjectReader& dict, std::string_view key, double value) {
  if (is_valid_stretch(value)) return;
  fail(ErrorCode::invalid_config, "{}: expected a number {}, got {}", dict.named(key),
       kStretchRange, value);
}

std::optional<double> stretch(ObjectReader& dict, std::string_view key) {
  const auto value = dict.number(key);
  if (value) check_stretch(dict, key, *value);
  return value;
}

std::vector<double> stretch_list(ObjectReader& dict, std::string_view key) {
  std::vector<double> list = required(dict, key, dict.numbers(key), "longrope");
  for (const double value : list) check_stretch(dict, key, value);
  return list;
}

void read_original(ObjectReader& dict, const DictDefaults& defaults, RopeParameters& p) {
  const auto own = dict.positive_integer(field::kOriginalMaxPositions);
  p.original_max_positions = defaults.original_override ? defaults.original_override
                             : own                      ? own
                                                        : defaults.original_max_positions;
  required(dict, field::kOriginalMaxPositions, p.original_max_positions, p.type);
}

void read_yarn(ObjectReader& dict, const DictDefaults& defaults, RopeParameters& p) {
  // An explicit null leaves the factor to max_positions / original_max_positions.
  if (!dict.is_null(field::kFactor)) required(dict, field::kFactor, p.factor, p.type);
  read_original(dict, defaults, p);
  p.attention_factor = amplitude(dict, field::kAttentionFactor);
  p.beta_fast = amplitude(dict, field::kBetaFast);
  p.beta_slow = amplitude(dict, field::kBetaSlow);
  p.mscale = dict.number(field::kMscale);
  p.mscale_all_dim = dict.number(field::kMscaleAllDim);
  p.truncate = dict.boolean(field::kTruncate);
  // Said beside the parameters by some checkpoints; neither changes the frequencies.
  dict.accept({field::kFinetuned, field::kDictMaxPositions});
}

void read_dynamic(ObjectReader& dict, RopeParameters& p) {
  const auto alpha = dict.number(field::kAlpha);
  if (alpha && *alpha != 0.0) {
    check_stretch(dict, field::kAlpha, *alpha);
    p.alpha = alpha;
    // Hunyuan's configs carry YaRN's keys beside alpha; its code reads alpha alone.
    dict.accept({field::kBetaFast, field::kBetaSlow, field::kMscale, field::kMscaleAllDim});
    return;
  }
  required(dict, field::kFactor, p.factor, p.type);
}

void read_of_type(ObjectReader& dict, const DictDefaults& defaults, RopeParameters& p) {
  if (p.type == "default" || p.type == "axial") return;
  p.factor = stretch(dict, field::kFactor);
  if (p.type == "linear") {
    required(dict, field::kFactor, p.factor, p.type);
  } else if (p.type == "dynamic") {
    read_dynamic(dict, p);
  } else if (p.type == "yarn") {
    read_yarn(dict, defaults, p);
  } else if (p.type == "longrope") {
    p.short_factor = stretch_list(dict, field::kShortFactor);
    p.long_factor = stretch_list(dict, field::kLongFactor);
    read_original(dict, defaults, p);
    p.attention_factor = amplitude(dict, field::kAttentionFactor);
    p.short_mscale = amplitude(dict, field::kShortMscale);
    p.long_mscale = amplitude(dict, field::kLongMscale);
  } else if (p.type == "llama3") {
    required(dict, field::kFactor, p.factor, p.type);
    read_original(dict, defaults, p);
    p.low_freq_factor =
        required(dict, field::kLowFreqFactor, stretch(dict, field::kLowFreqFactor), p.type);
    p.high_freq_factor =
        required(dict, field::kHighFreqFactor, stretch(dict, field::kHighFreqFactor), p.type);
    if (*p.low_freq_factor > *p.high_freq_factor) {
      fail(ErrorCode::invalid_config, "{}: expected at most {} {}, got {}",
           dict.named(field::kLowFreqFactor), field::kHighFreqFactor, *p.high_freq_factor,
           *p.low_freq_factor);
    }
  }
}

void read_axes(ObjectReader& dict, RopeParameters& p) {
  const auto sections = dict.integers(field::kMropeSection);
  const auto older = dict.integers(field::kXdropeSection);
  if (sections && older && *sections != *older) {
    fail(ErrorCode::invalid_config, "{}: expected the same sections as {}",
         dict.named(field::kXdropeSection), field::kMropeSection);
  }
  p.mrope_section = sections ? *sections : older.value_or(std::vector<std::int64_t>{});
  p.mrope_interleaved = dict.boolean(field::kMropeInterleaved).value_or(false);
}

}  // namespace

RopeParameters read_rope_dict(ObjectReader& dict, const DictDefaults& defaults) {
  RopeParameters p;
  p.type = type_of(dict, defaults);
  p.base = dict.positive_number(field::kRopeTheta).value_or(defaults.base);
  if (!is_valid_base(p.base)) {
    fail(ErrorCode::invalid_config, "{}: expected a number {}, got {}",
         place_of(dict, field::kRopeTheta), kBaseRange, p.base);
  }
  p.partial_factor =
      dict.positive_number(field::kPartialRotaryFactor).value_or(defaults.partial_factor);
  // EfficientLoFTR's share is of the head, but it rotates the hidden vector that heads are cut
  // from.
  if (p.partial_factor > 1.0 && defaults.model_type != "efficientloftr") {
    fail(ErrorCode::invalid_config, "{}: expected a share of the head of at most 1, got {}",
         place_of(dict, field::kPartialRotaryFactor), p.partial_factor);
  }
  read_of_type(dict, defaults, p);
  read_axes(dict, p);
  dict.accept(field::kLlama4ScalingBeta);  // read with the query scaling
  for (const std::string& key : dict.unread()) {
    fail(ErrorCode::invalid_config, "{}: rope type '{}' has no such key, expected none unread",
         dict.named(key), p.type);
  }
  return p;
}

}  // namespace ropewalk::config
