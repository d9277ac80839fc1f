// The configs under configs/: each parses, and its plan is what its model's card says.
#include <gtest/gtest.h>

#include <filesystem>

#include "ropewalk/config.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

struct Shipped {
  const char* name;
  const char* layer_type;
  Pairing pairing;
  std::int64_t query_heads, key_heads, head_dim, rotary_dim;
  const char* scaling;
  int axes;
};

RopeConfig shipped(const std::string& name) {
  return load_config(std::filesystem::path(ROPEWALK_CONFIG_DIR) / (name + ".json"));
}

TEST(ShippedConfigs, PlansOfKnownModels) {
  using enum Pairing;
  const Shipped models[] = {
      {"llama-3.1-8b", "", half, 32, 8, 128, 128, "llama3", 1},
      {"llama-2-7b", "", half, 32, 32, 128, 128, "default", 1},
      {"qwen2.5-7b", "", half, 28, 4, 128, 128, "default", 1},
      {"qwen3-8b", "", half, 32, 8, 128, 128, "default", 1},
      {"mistral-7b-v0.3", "", half, 32, 8, 128, 128, "default", 1},
      {"bielik-1.5b-v3", "", half, 12, 2, 128, 128, "default", 1},
      {"gemma-3-4b", "full_attention", half, 8, 4, 256, 256, "linear", 1},
      {"gemma-3-4b", "sliding_attention", half, 8, 4, 256, 256, "default", 1},
      {"phi-3.5-mini", "", half, 32, 32, 96, 96, "longrope", 1},
      {"gpt-oss-20b", "", half, 64, 8, 64, 64, "yarn", 1},
      {"deepseek-v3", "", interleaved_to_half, 128, 1, 64, 64, "yarn", 1},
      {"glm-4-9b-0414", "", interleaved, 32, 2, 128, 64, "default", 1},
      {"gpt-neox-20b", "", half, 64, 64, 96, 24, "default", 1},
      {"gpt-j-6b", "", interleaved, 16, 16, 256, 64, "default", 1},
      {"qwen2-vl-7b", "", half, 28, 4, 128, 128, "default", 3},
      {"qwen3-vl-8b", "", half, 32, 8, 128, 128, "default", 3},
      {"modernbert-base", "full_attention", half, 12, 12, 64, 64, "default", 1},
      {"modernbert-base", "sliding_attention", half, 12, 12, 64, 64, "default", 1},
      {"command-r-v01", "", interleaved, 64, 64, 128, 128, "default", 1},
  };
  for (const Shipped& model : models) {
    SCOPED_TRACE(model.name);
    const RopeConfig config = shipped(model.name);
    PlanOptions options;
    options.layer_type = model.layer_type;
    const RotaryPlan plan = make_plan(config, options);
    EXPECT_EQ(config.query_heads, model.query_heads);
    EXPECT_EQ(config.key_heads, model.key_heads);
    EXPECT_EQ(plan.pairing(), model.pairing);
    EXPECT_EQ(plan.head_dim(), model.head_dim);
    EXPECT_EQ(plan.rotary_dim(), model.rotary_dim);
    EXPECT_EQ(plan.spec().scaling, model.scaling);
    EXPECT_EQ(plan.axes(), model.axes);
  }
}

TEST(ShippedConfigs, EveryFileParsesAndIsTested) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ROPEWALK_CONFIG_DIR)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().string());
    EXPECT_NO_THROW(static_cast<void>(load_config(entry.path())));
    ++files;
  }
  EXPECT_EQ(files, 17);
}

TEST(ShippedConfigs, NumbersThatTheModelsArePublishedWith) {
  const double printed = verify::printed_decimals(9);
  const RotaryPlan deepseek = make_plan(shipped("deepseek-v3"));
  EXPECT_EQ(deepseek.amplitude(), 1.0);
  EXPECT_NEAR(deepseek.spec().softmax_multiplier, 1.873854207, printed);
  EXPECT_NEAR(make_plan(shipped("gpt-oss-20b")).amplitude(), 1.346573590, printed);
  EXPECT_NEAR(make_plan(shipped("phi-3.5-mini")).amplitude(), 1.190238071, printed);
  PlanOptions options;
  options.layer_type = "full_attention";
  EXPECT_EQ(make_plan(shipped("gemma-3-4b"), options).frequencies()[0], 0.125);
}

}  // namespace
}  // namespace ropewalk
