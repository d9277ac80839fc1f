#include "cli/model_shape.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "config/hf_fields.h"

namespace ropewalk::cli {
namespace {

std::int64_t integer_or_zero(const nlohmann::json& config, std::string_view key) {
  const auto found = config.find(std::string(key));
  return found != config.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

}  // namespace

SliceLeads slice_leads(const std::filesystem::path& path) {
  namespace field = config::field;
  std::ifstream file(path);
  nlohmann::json config = nlohmann::json::parse(file, nullptr, false);
  if (!config.is_object()) return {};
  for (const std::string_view name : field::kTextConfigs) {
    const auto nested = config.find(std::string(name));
    if (nested != config.end() && nested->is_object() &&
        integer_or_zero(*nested, field::kQkRopeHeadDim) > 0) {
      config = nlohmann::json(*nested);
      break;
    }
  }
  if (integer_or_zero(config, field::kQkRopeHeadDim) == 0) return {};
  return {integer_or_zero(config, field::kQkNopeHeadDim),
          integer_or_zero(config, field::kKvLoraRank)};
}

}  // namespace ropewalk::cli
