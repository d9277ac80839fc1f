// Bits of transformers 5.17 for 34 configurations (tests/data/transformers_inv_freq.json says where
// they come from). Its power function is within 1 ulp, ours is correctly rounded: a few last bits
// differ, and no more than were counted when the data were made.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ropewalk/config.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

using nlohmann::json;

constexpr int kLongest = 131072;
constexpr int kMostDifferent = 12;

json golden() {
  std::ifstream file(ROPEWALK_TEST_DATA "/transformers_inv_freq.json");
  return json::parse(file);
}

std::vector<float> floats_of(const std::string& hex) {
  std::vector<float> values;
  for (std::size_t at = 0; at < hex.size(); at += 8) {
    std::uint32_t bits = 0;
    for (int byte = 3; byte >= 0; --byte) {
      bits = bits << 8 | static_cast<std::uint32_t>(std::stoul(
                             hex.substr(at + static_cast<std::size_t>(2 * byte), 2), nullptr, 16));
    }
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

RopeConfig config_of(const json& entry, const json& data) {
  const json text = {{"model_type", "llama"},
                     {"head_dim", entry["head_dim"]},
                     {"num_attention_heads", 1},
                     {"max_position_embeddings", data["max_position_embeddings"]},
                     {"rope_parameters", entry["rope_parameters"]}};
  return parse_config(text.dump());
}

struct Count {
  int values = 0;
  int different = 0;
};

void compare(const RotaryPlan& plan, const std::vector<float>& right, Count& count) {
  ASSERT_EQ(plan.model_frequencies().size(), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    const auto got = std::bit_cast<std::int32_t>(plan.model_frequencies()[i]);
    const auto want = std::bit_cast<std::int32_t>(right[i]);
    EXPECT_LE(std::abs(got - want), 1) << "pair " << i;
    EXPECT_EQ(plan.frequencies()[i], static_cast<double>(plan.model_frequencies()[i]));
    count.different += got != want ? 1 : 0;
    ++count.values;
  }
}

TEST(GoldenSchedules, FrequenciesAndAmplitudesOfTransformers) {
  const json data = golden();
  ASSERT_EQ(data["configurations"].size(), 34u);
  Count as_built;
  Count at_length;
  for (const json& entry : data["configurations"]) {
    SCOPED_TRACE(entry["rope_parameters"].dump());
    const RopeConfig config = config_of(entry, data);
    const RotaryPlan plan = make_plan(config);
    compare(plan, floats_of(entry["inv_freq"]), as_built);
    const double scaling = entry["attention_scaling"].get<double>();
    EXPECT_NEAR(plan.amplitude() / scaling, 1.0, verify::roundings(Dtype::float64, 2));

    PlanOptions options;
    options.length = kLongest;
    const bool grows = entry.contains("inv_freq_at_131072");
    compare(make_plan(config, options), floats_of(entry[grows ? "inv_freq_at_131072" : "inv_freq"]),
            at_length);
  }
  fmt::print("as built: {} of {} frequencies differ by 1 ulp; at length {}: {} of {}\n",
             as_built.different, as_built.values, kLongest, at_length.different, at_length.values);
  EXPECT_EQ(as_built.values, 2032);
  EXPECT_LE(as_built.different, kMostDifferent);
  EXPECT_LE(at_length.different, kMostDifferent);
}

}  // namespace
}  // namespace ropewalk
