// What a model type fixes beside its config: pairing, arithmetic, class defaults.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <string_view>

#include "ropewalk/config.h"
#include "ropewalk/error.h"

namespace ropewalk {
namespace {

using nlohmann::json;

json sized(const char* model_type) {
  return {{"model_type", model_type},       {"hidden_size", 4096},    {"num_attention_heads", 32},
          {"num_hidden_layers", 12},        {"qk_rope_head_dim", 64}, {"qk_nope_head_dim", 128},
          {"max_position_embeddings", 8192}};
}

RopeConfig parse(json object) {
  const std::string type = object["model_type"];
  const bool latent = type.starts_with("deepseek") || type == "kimi_k2" || type == "minicpm3" ||
                      type == "mistral4" || type == "glm4_moe_lite";
  if (!latent) object.erase("qk_rope_head_dim");
  return parse_config(object.dump());
}

struct Family {
  const char* model_type;
  Pairing pairing;
  Arithmetic arithmetic;
  double base;
  std::int64_t head_dim, rotary_dim;
};

TEST(ModelFamilies, PairingArithmeticAndDefaults) {
  using enum Pairing;
  using enum Arithmetic;
  const Family families[] = {
      {"llama", half, parity_p0, 1e4, 128, 128},
      {"qwen3", half, parity_p0, 1e4, 128, 128},
      {"gemma2", half, parity_p0, 1e4, 256, 256},
      {"olmo2", half, parity_p2, 1e4, 128, 128},
      {"cohere", interleaved, parity_p1, 5e5, 128, 128},
      {"ernie4_5", interleaved, parity_p2, 5e5, 128, 128},
      {"helium", interleaved, parity_p0, 1e5, 128, 128},
      {"glm4", interleaved, parity_p0, 1e4, 128, 64},
      {"gptj", interleaved, parity_p0, 1e4, 128, 64},
      {"phi", half, parity_p0, 1e4, 128, 64},
      {"stablelm", half, parity_p0, 1e4, 128, 32},
      {"qwen3_next", half, parity_p0, 1e4, 256, 64},
      {"gpt_neox", half, parity_p0, 1e4, 128, 32},
      {"bamba", half, parity_p0, 1e4, 128, 64},
      {"llama4_text", interleaved, parity_p3, 5e5, 128, 128},
      {"deepseek_v2", interleaved, parity_p3, 1e4, 64, 64},
      {"deepseek_v3", interleaved_to_half, parity_p0, 1e4, 64, 64},
      {"kimi_k2", interleaved_to_half, parity_p0, 1e4, 64, 64},
      {"minicpm3", half, parity_p0, 1e4, 64, 64},
      {"minimax_m2", half, parity_p0, 5e6, 128, 128},
  };
  for (const Family& family : families) {
    SCOPED_TRACE(family.model_type);
    const RopeConfig config = parse(sized(family.model_type));
    EXPECT_EQ(config.pairing, family.pairing);
    EXPECT_EQ(config.model_arithmetic, family.arithmetic);
    EXPECT_EQ(config.by_layer_type.at("all")->base, family.base);
    EXPECT_EQ(config.head_dim, family.head_dim);
    EXPECT_EQ(make_plan(config).rotary_dim(), family.rotary_dim);
  }
}

TEST(ModelFamilies, LatentAttentionSharesOneKeySlice) {
  json object = sized("deepseek_v3");
  object["num_key_value_heads"] = 32;
  EXPECT_EQ(parse(object).key_heads, 1);
  object["rope_interleave"] = false;
  EXPECT_EQ(parse(object).pairing, Pairing::half);
  json mistral = sized("mistral4");
  mistral["rope_parameters"] = {{"type", "yarn"},
                                {"factor", 128.0},
                                {"original_max_position_embeddings", 8192},
                                {"mscale", 1.0},
                                {"mscale_all_dim", 1.0},
                                {"llama_4_scaling_beta", 0.1},
                                {"rope_theta", 10000.0},
                                {"beta_fast", 32.0},
                                {"beta_slow", 1.0},
                                {"rope_type", "yarn"},
                                {"partial_rotary_factor", 64.0 / 192.0},
                                {"max_position_embeddings", 1048576}};
  const RotaryPlan plan = make_plan(parse(mistral));
  EXPECT_EQ(plan.rotary_dim(), 64);
  EXPECT_GT(plan.spec().softmax_multiplier, 1.0);
  EXPECT_FALSE(plan.spec().query_scaling.rule.empty());
}

TEST(ModelFamilies, ClassDefaultThatIsNotPlain) {
  const RopeConfig config = parse(sized("gpt_oss"));
  EXPECT_EQ(config.by_layer_type.at("all")->type, "yarn");
  EXPECT_EQ(config.by_layer_type.at("all")->truncate, false);
  EXPECT_EQ(parse(sized("apertus")).by_layer_type.at("all")->type, "llama3");
  EXPECT_EQ(parse(sized("apertus")).by_layer_type.at("all")->base, 1.2e7);
}

TEST(ModelFamilies, RotaryDimOfMiniMax) {
  json object = sized("minimax_m2");
  object["rotary_dim"] = 64;
  EXPECT_EQ(make_plan(parse(object)).rotary_dim(), 64);
}

TEST(ModelFamilies, TwoBasesOfGemma3) {
  json old_form = sized("gemma3_text");
  old_form["rope_theta"] = 2e6;
  old_form["rope_local_base_freq"] = 3e4;
  old_form["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  RopeConfig config = parse(old_form);
  EXPECT_EQ(config.by_layer_type.at("full_attention")->base, 2e6);
  EXPECT_EQ(config.by_layer_type.at("full_attention")->type, "linear");
  EXPECT_EQ(config.by_layer_type.at("sliding_attention")->base, 3e4);
  EXPECT_EQ(config.by_layer_type.at("sliding_attention")->type, "default");
  EXPECT_EQ(config.layer_types[4], "sliding_attention");
  EXPECT_EQ(config.layer_types[5], "full_attention");

  json new_form = sized("gemma3_text");
  new_form["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 3e4}}}};
  EXPECT_EQ(parse(new_form).by_layer_type, config.by_layer_type);

  config = parse(sized("gemma3_text"));
  EXPECT_EQ(config.by_layer_type.at("full_attention")->base, 1e6);
  EXPECT_EQ(config.by_layer_type.at("sliding_attention")->base, 1e4);
}

TEST(ModelFamilies, Gemma4HasAHeadOfItsOwnInFullLayers) {
  const RopeConfig config = parse(sized("gemma4_text"));
  PlanOptions options;
  options.layer_type = "full_attention";
  const RotaryPlan full = make_plan(config, options);
  EXPECT_EQ(full.head_dim(), 512);
  EXPECT_EQ(full.rotary_dim(), 512);
  EXPECT_EQ(full.frequencies()[64], 0.0);
  EXPECT_GT(full.frequencies()[63], 0.0);
  options.layer_type = "sliding_attention";
  EXPECT_EQ(make_plan(config, options).head_dim(), 256);
}

TEST(ModelFamilies, LayersThatRotate) {
  const RopeConfig cohere = parse(sized("cohere2"));
  EXPECT_TRUE(cohere.layer_rotates[0]);
  EXPECT_FALSE(cohere.layer_rotates[3]);
  json exaone = sized("exaone4");
  EXPECT_TRUE(parse(exaone).layer_rotates.empty());
  exaone["sliding_window"] = 4096;
  EXPECT_FALSE(parse(exaone).layer_rotates[3]);
  EXPECT_FALSE(parse(sized("llama4_text")).layer_rotates[3]);
  EXPECT_FALSE(parse(sized("muse_glimmer_text")).layer_rotates[11]);
  EXPECT_TRUE(parse(sized("muse_glimmer_text")).layer_rotates[0]);
}

TEST(ModelFamilies, AxesOfVisionLanguageModels) {
  EXPECT_EQ(make_plan(parse(sized("qwen2_vl"))).axes(), 3);
  EXPECT_EQ(make_plan(parse(sized("qwen2_vl"))).axis()[1], 0);
  EXPECT_EQ(make_plan(parse(sized("qwen3_vl_text"))).axis()[1], 1);
  const RopeConfig qwen35 = parse(sized("qwen3_5_text"));
  EXPECT_EQ(make_plan(qwen35).rotary_dim(), 64);
  EXPECT_EQ(make_plan(qwen35).axis()[2], 2);
}

/// Many models do not rotate: one that is not known must say that it does.
TEST(ModelFamilies, AnUnknownModelNeedsAKeyThatSpeaksOfRope) {
  constexpr std::string_view kSilent =
      R"({"model_type": "some_new_model", "hidden_size": 4096, "num_attention_heads": 32})";
  try {
    (void)parse_config(kSilent);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string_view(error.what()).find("some_new_model"), std::string_view::npos);
  }
  const RopeConfig config = parse_config(
      R"({"model_type": "some_new_model", "hidden_size": 4096, "num_attention_heads": 32,
          "rope_theta": 10000.0})");
  EXPECT_EQ(config.pairing, Pairing::half);
  EXPECT_EQ(config.head_dim, 128);
}

TEST(ModelFamilies, ImpossibleSizesAreRefusedAtOnce) {
  const auto refuses = [](std::string_view text, std::string_view name) {
    try {
      (void)make_plan(parse_config(text));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_config);
      EXPECT_NE(std::string_view(error.what()).find(name), std::string_view::npos) << error.what();
    }
  };
  refuses(R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 1099511627776})",
          "rotary_dim");
  refuses(R"({"model_type": "llama", "num_attention_heads": 1, "head_dim": 64,
              "num_hidden_layers": 1000000000})",
          "num_hidden_layers");
  for (const std::string_view factor : {"1e308", "0.0", "-1.0"}) {
    refuses(fmt::format(R"({{"model_type": "llama", "num_attention_heads": 1, "head_dim": 64,
                             "max_position_embeddings": 4096,
                             "rope_scaling": {{"rope_type": "yarn", "factor": 4.0,
                             "original_max_position_embeddings": 1024,
                             "attention_factor": {}}}}})",
                        factor),
            "attention_factor");
  }
  refuses(std::string_view("{\"model_type\": \"llama\"}\0{", 25), "NUL");
}

}  // namespace
}  // namespace ropewalk
