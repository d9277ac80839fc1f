#include "plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
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
  field("channels", spec.channels);
  field("position_recipe", spec.position_recipe);
  field("rotated", spec.rotated);
}

/// Numbers as fixed-width hexadecimal digits of their bits: short, and exact.
template <class Bits, class Number>
std::string hex_of(const std::vector<Number>& numbers) {
  std::string text;
  for (const Number number : numbers) {
    text += fmt::format("{:0{}x}", std::bit_cast<Bits>(number), 2 * sizeof(Bits));
  }
  return text;
}

template <class Bits, class Number>
std::vector<Number> from_hex(const std::string& text, const char* key) {
  constexpr std::size_t kDigits = 2 * sizeof(Bits);
  std::vector<Number> numbers;
  for (std::size_t at = 0; at < text.size(); at += kDigits) {
    const char* const end = text.data() + std::min(at + kDigits, text.size());
    Bits bits = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, end, bits, 16);
    if (error != std::errc() || stop != end || text.size() % kDigits != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("plan: {} is not a list of {}-digit numbers", key, kDigits));
    }
    numbers.push_back(std::bit_cast<Number>(bits));
  }
  return numbers;
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
    value = enum_from_name<T>(
        json.get<std::string>(),
        {LengthPolicy::none, LengthPolicy::dynamic_ntk, LengthPolicy::longrope_switch});
  } else if constexpr (std::is_same_v<T, PairChannels>) {
    value = enum_from_name<T>(json.get<std::string>(),
                              {PairChannels::both, PairChannels::first, PairChannels::second});
  } else {
    json.get_to(value);
  }
}

constexpr const char* kBase = "base";
constexpr const char* kFrequencies = "frequencies";
constexpr const char* kModelFrequencies = "model_frequencies";

Json fields_of(PlanSpec spec) {
  if (spec.axes == 1) spec.axis.clear();
  const PlanSpec defaults;
  Json json;
  json[kFormatKey] = kFormat;
  for_each_field(spec, [&](const char* key, const auto& member) { json[key] = to_json(member); });
  for_each_field(defaults, [&](const char* key, const auto& member) {
    if (json[key] == to_json(member)) json.erase(key);
  });
  return json;
}

std::string plain_text_of(const PlanSpec& spec, const Json& base) {
  Json json = fields_of(spec);
  json[kBase] = base;
  return json.dump();
}

void read_frequencies(const Json& json, PlanSpec& spec) {
  if (json.contains(kBase)) {
    const std::int64_t width = spec.window.width == 0 ? spec.head_dim : spec.window.width;
    const PlanSpec plain = make_plan(width, json.at(kBase).get<double>()).spec();
    spec.frequencies = plain.frequencies;
    spec.model_frequencies = plain.model_frequencies;
    return;
  }
  if (json.contains(kModelFrequencies)) {
    spec.model_frequencies =
        from_hex<std::uint32_t, float>(json.at(kModelFrequencies), kModelFrequencies);
    spec.frequencies.assign(spec.model_frequencies.begin(), spec.model_frequencies.end());
  }
  if (json.contains(kFrequencies)) {
    spec.frequencies = from_hex<std::uint64_t, double>(json.at(kFrequencies), kFrequencies);
  }
}

PlanSpec parse(const Json& json) {
  PlanSpec spec;
  if (json.at(kFormatKey) != kFormat) {
    throw Error(ErrorCode::invalid_argument, fmt::format("plan: expected {} {}, got {}", kFormatKey,
                                                         kFormat, json.at(kFormatKey).dump()));
  }
  std::size_t known = 1;
  for_each_field(spec, [&](const char* key, auto& member) {
    if (!json.contains(key)) return;
    from_json(json.at(key), member);
    ++known;
  });
  for (const char* key : {kBase, kFrequencies, kModelFrequencies}) known += json.count(key);
  if (known != json.size() || (json.contains(kBase) && json.contains(kFrequencies))) {
    throw Error(ErrorCode::invalid_argument, "plan: the text has a key this version does not know");
  }
  read_frequencies(json, spec);
  return spec;
}

template <class Read>
auto read_text(std::string_view text, Read&& read) {
  try {
    return read(Json::parse(text));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("plan: not the text of a Ropewalk plan ({})", error.what()));
  }
}

}  // namespace

PairChannels pair_channels_from_name(const std::string& name) {
  return enum_from_name<PairChannels>(
      name, {PairChannels::both, PairChannels::first, PairChannels::second});
}

std::string text_of(const RotaryPlan& plan) {
  const PlanSpec& spec = plan.spec();
  Json json = fields_of(spec);
  const std::vector<double> widened(spec.model_frequencies.begin(), spec.model_frequencies.end());
  if (spec.rotates) json[kModelFrequencies] = hex_of<std::uint32_t>(spec.model_frequencies);
  if (spec.frequencies != widened) json[kFrequencies] = hex_of<std::uint64_t>(spec.frequencies);
  return json.dump();
}

std::string plain_text(std::int64_t head_dim, double base, std::int64_t rotary_dim,
                       std::int64_t offset, Pairing pairing) {
  const std::int64_t width = rotary_dim == 0 ? head_dim : rotary_dim;
  PlanSpec spec = make_plan(std::max(width, head_dim), base, width, pairing).spec();
  spec.head_dim = head_dim;
  spec.window.offset = offset;
  const RotaryPlan plan(std::move(spec));  // refuses a window that does not fit
  return plain_text_of(plan.spec(), base);
}

RotaryPlan plan_from_text(std::string_view text) {
  return read_text(text, [](const Json& json) { return RotaryPlan(parse(json)); });
}

std::string normalised_text(std::string_view text) {
  return read_text(text, [](const Json& json) {
    const RotaryPlan plan(parse(json));
    return json.contains(kBase) ? plain_text_of(plan.spec(), json.at(kBase)) : text_of(plan);
  });
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
