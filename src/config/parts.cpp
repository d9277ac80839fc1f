#include "config/parts.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "config/hf_fields.h"
#include "config/json_reader.h"

namespace ropewalk::config {
namespace {

using nlohmann::json;

constexpr int kDeepest = 4;  // configs nest towers within towers, no deeper

const json* nested_in(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() && !found->empty() ? &*found : nullptr;
}

bool has_value(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

bool states_heads(const json& object) {
  const auto has = [&object](std::string_view key) { return has_value(object, key); };
  return std::any_of(field::kQueryHeads.begin(), field::kQueryHeads.end(), has) ||
         has(field::kMemoryHeads) || has(field::kSpeechHeads);
}

bool is_text_key(std::string_view key) {
  return std::find(field::kTextConfigs.begin(), field::kTextConfigs.end(), key) !=
         field::kTextConfigs.end();
}

/// What a nested config's model is called: old vision configs repeat the name of the whole.
std::string model_type_of(const json& object, std::string_view key, const std::string& outer) {
  std::string own;
  if (const auto found = object.find(field::kModelType); found != object.end()) {
    if (found->is_string()) own = found->get<std::string>();
  }
  const bool is_vision = key == field::kVisionConfig;
  if (!own.empty() && !(is_vision && own == outer)) return own;
  if (outer.empty() || is_text_key(key)) return outer;
  return is_vision ? outer + "_vision" : fmt::format("{}.{}", outer, key);
}

std::string join(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

void step_into(Part& part, const json& nested, std::string_view key) {
  part.around.push_back(part.object);
  part.around_paths.push_back(part.path);
  part.model_type = model_type_of(nested, key, part.model_type);
  part.object = &nested;
  part.path = join(part.path, key);
}

bool step_into_any(Part& part, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    const json* nested = nested_in(*part.object, key);
    if (nested == nullptr) continue;
    step_into(part, *nested, key);
    return true;
  }
  return false;
}

/// The text model, or the only one: nested where the object states no heads itself.
void settle(Part& part) {
  for (int depth = 0; depth < kDeepest && !states_heads(*part.object); ++depth) {
    const bool no_text = part.model_type == "sam3";  // its text model is CLIP's
    if (!no_text && step_into_any(part, field::kTextConfigs)) continue;
    if (!step_into_any(part, field::kOtherConfigs)) return;
  }
}

[[noreturn]] void no_such_part(const json& top, std::string_view part) {
  const std::vector<std::string> known = parts_with_heads(top);
  fail(ErrorCode::invalid_argument, "part: expected {}, got '{}'",
       known.empty() ? "none for this config, which nests no model"
                     : fmt::format("one of text, {}", fmt::join(known, ", ")),
       part);
}

/// One segment of a part's path: the key itself, with "_config" added, or either of these among
/// the settings of the model that thinks (the Omni models).
bool follow(Part& part, std::string_view segment) {
  const std::string longer = std::string(segment) + std::string(field::kConfigSuffix);
  const std::string_view spellings[] = {segment, longer};
  if (step_into_any(part, spellings)) return true;
  const json* thinker = nested_in(*part.object, field::kThinkerConfig);
  if (thinker == nullptr) return false;
  Part within = part;
  step_into(within, *thinker, field::kThinkerConfig);
  if (!step_into_any(within, spellings)) return false;
  part = std::move(within);
  return true;
}

void collect(const json& object, const std::string& path, int depth,
             std::vector<std::string>& paths) {
  if (depth > kDeepest) return;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_object()) continue;
    const std::string here = join(path, key);
    if (states_heads(value)) paths.push_back(here);
    collect(value, here, depth + 1, paths);
  }
}

}  // namespace

Part find_part(const json& top, std::string_view part) {
  Part found;
  found.object = &top;
  found.model_type = model_type_of(top, {}, {});
  if (part == ".") return found;
  if (!part.empty() && part != "text") {
    std::string_view rest = part;
    while (!rest.empty()) {
      const std::size_t dot = std::min(rest.find('.'), rest.size());
      if (!follow(found, rest.substr(0, dot))) no_such_part(top, part);
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
  }
  settle(found);
  return found;
}

std::vector<std::string> parts_with_heads(const json& top) {
  std::vector<std::string> paths;
  collect(top, {}, 1, paths);
  return paths;
}

}  // namespace ropewalk::config
