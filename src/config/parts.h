// Which nested object of a config describes the wanted part of the model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ropewalk::config {

/// One object of a config that describes a model with attention heads.
struct Part {
  const nlohmann::json* object = nullptr;
  std::string path;        ///< dotted; empty: the top level
  std::string model_type;  ///< as it says, or as the configs around it imply
  /// The objects around it, outermost first, and their paths.
  std::vector<const nlohmann::json*> around;
  std::vector<std::string> around_paths;
};

/// Follows `part` (RopeConfig's parse_config says what it may be) from the top level.
/// Error(invalid_argument) where it names no nested object, with those that there are.
[[nodiscard]] Part find_part(const nlohmann::json& top, std::string_view part);

/// The dotted paths of all nested objects that state a number of heads.
[[nodiscard]] std::vector<std::string> parts_with_heads(const nlohmann::json& top);

}  // namespace ropewalk::config
