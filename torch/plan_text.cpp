#include "plan_text.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "ropewalk/error.h"

namespace ropewalk::torch_ops {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr const char* kFormatKey = "ropewalk_plan";

/// Calls field(key, member) for every field of a spec: the one list that writing and reading share.
template <class Spec, class Field>
void for_each_field(Spec& spec, Field&& field) {
  field("head_dim", spec.head_dim);
  field("offset", spec.window.offset);
  field("rotary_dim", spec.window.width);
  field("pairing", spec.pairing);
  field("block_width", spec.block_width);
  field("rotates", spec.rotates);
  field("scaling", spec.scaling);
  field("amplitude", spec.amplitude);
  field("sign", spec.sign);
  field("axes", spec.axes);
  field("axis", spec.axis);
  field("arithmetic", spec.arithmetic);
  field("frequency_precision", spec.frequency_precision);
  field("length_policy", spec.length_policy);
  field("length", spec.length);
  field("softmax_multiplier", spec.softmax_multiplier);
  field("query_scaling", spec.query_scaling.rule);
  field("frequencies", spec.frequencies);
  field("model_frequencies", spec.model_frequencies);
}

template <class T>
Json to_json(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else {
    return value;
  }
}

template <class T>
T enum_from_name(const std::string& name, std::initializer_list<T> values) {
  for (const T value : values) {
    if (name_of(value) == name) return value;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("plan: unknown value \"{}\"", name));
}

template <class T>
void from_json(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, Pairing>) {
    value = pairing_from_name(json.get<std::string>());
  } else if constexpr (std::is_same_v<T, Arithmetic>) {
    value = arithmetic_from_name(json.get<std::string>());
  } else if constexpr (std::is_same_v<T, FrequencyPrecision>) {
    value = enum_from_name<T>(json.get<std::string>(),
                              {FrequencyPrecision::formula, FrequencyPrecision::model});
  } else if constexpr (std::is_same_v<T, LengthPolicy>) {
    value = enum_from_name<T>(json.get<std::string>(),
                              {LengthPolicy::none, LengthPolicy::dynamic_ntk,
                               LengthPolicy::longrope_switch});
  } else {
    json.get_to(value);
  }
}

/// Fields that follow from the others are left out, so that texts stay short.
PlanSpec without_derived(PlanSpec spec) {
  const std::vector<float> rounded(spec.frequencies.begin(), spec.frequencies.end());
  if (spec.model_frequencies == rounded) spec.model_frequencies.clear();
  if (spec.axes == 1) spec.axis.clear();
  return spec;
}

PlanSpec parse(std::string_view text) {
  const Json json = Json::parse(text);
  PlanSpec spec;
  std::size_t known = 1;
  if (json.at(kFormatKey) != kFormat) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("plan: expected {} {}, got {}", kFormatKey, kFormat,
                            json.at(kFormatKey).dump()));
  }
  for_each_field(spec, [&](const char* key, auto& member) {
    if (!json.contains(key)) return;
    from_json(json.at(key), member);
    ++known;
  });
  if (known != json.size()) {
    throw Error(ErrorCode::invalid_argument, "plan: the text has a key this version does not know");
  }
  return spec;
}

}  // namespace

std::string text_of(const RotaryPlan& plan) {
  const PlanSpec spec = without_derived(plan.spec());
  const PlanSpec defaults;
  Json json;
  json[kFormatKey] = kFormat;
  for_each_field(spec, [&](const char* key, const auto& member) { json[key] = to_json(member); });
  for_each_field(defaults, [&](const char* key, const auto& member) {
    if (json[key] == to_json(member)) json.erase(key);
  });
  return json.dump();
}

RotaryPlan plan_from_text(std::string_view text) {
  try {
    return RotaryPlan(parse(text));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("plan: not the text of a Ropewalk plan ({})", error.what()));
  }
}

const RotaryPlan& cached_plan(std::string_view text) {
  struct Entry {
    std::string text;
    std::unique_ptr<const RotaryPlan> plan;
  };
  constexpr std::size_t kEntries = 32;  // more than the distinct plans of any model at one time
  thread_local std::array<Entry, kEntries> entries;
  thread_local std::size_t last = 0;
  thread_local std::size_t next = 0;
  if (entries[last].plan && entries[last].text == text) return *entries[last].plan;
  for (std::size_t i = 0; i < kEntries; ++i) {
    if (entries[i].plan && entries[i].text == text) {
      last = i;
      return *entries[i].plan;
    }
  }
  auto plan = std::make_unique<const RotaryPlan>(plan_from_text(text));
  last = next;
  next = (next + 1) % kEntries;
  entries[last] = {std::string(text), std::move(plan)};
  return *entries[last].plan;
}

}  // namespace ropewalk::torch_ops
