// The formulas in 80-digit arithmetic (tests/python/make_formula_frequencies.py), to the last bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ropewalk/config.h"

namespace ropewalk {
namespace {

using nlohmann::json;

RopeConfig config_of(const json& entry) {
  RopeParameters p;
  p.type = entry["type"];
  p.base = entry["base"];
  if (entry.contains("factor")) p.factor = entry["factor"].get<double>();
  if (entry.contains("alpha")) p.alpha = entry["alpha"].get<double>();
  if (entry.contains("low")) p.low_freq_factor = entry["low"].get<double>();
  if (entry.contains("high")) p.high_freq_factor = entry["high"].get<double>();
  if (entry.contains("truncate")) p.truncate = entry["truncate"].get<bool>();
  if (entry.contains("original")) {
    p.original_max_positions = entry["original"].get<std::int64_t>();
  }
  if (entry.contains("rotary_dim")) p.rotary_dim = entry["rotary_dim"].get<std::int64_t>();
  p.partial_factor = entry.value("partial_factor", 1.0);
  RopeConfig config;
  config.head_dim = entry["head_dim"];
  if (entry.contains("max_positions")) {
    config.max_positions = entry["max_positions"].get<std::int64_t>();
  }
  config.by_layer_type.emplace("all", p);
  return config;
}

TEST(FormulaSchedules, EqualTheCorrectlyRoundedFormula) {
  std::ifstream file(ROPEWALK_TEST_DATA "/formula_frequencies.json");
  const json data = json::parse(file);
  ASSERT_GE(data.size(), 11u);
  for (const json& entry : data) {
    SCOPED_TRACE(entry["type"].get<std::string>() + " " + entry["head_dim"].dump());
    PlanOptions options;
    options.frequency_precision = FrequencyPrecision::formula;
    if (entry.contains("length")) options.length = entry["length"].get<std::int64_t>();
    const RotaryPlan plan = make_plan(config_of(entry), options);
    ASSERT_EQ(plan.frequencies().size(), entry["frequencies"].size());
    for (std::size_t i = 0; i < plan.frequencies().size(); ++i) {
      const std::string hex = entry["frequencies"][i];
      EXPECT_EQ(plan.frequencies()[i], std::strtod(hex.c_str(), nullptr)) << "pair " << i;
    }
  }
}

}  // namespace
}  // namespace ropewalk
