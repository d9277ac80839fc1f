// The forms a config.json takes, old and new, and which value wins.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ropewalk/config.h"
#include "ropewalk/error.h"

namespace ropewalk {
namespace {

using nlohmann::json;

json llama() {
  return {{"model_type", "llama"},    {"hidden_size", 4096},    {"num_attention_heads", 32},
          {"num_key_value_heads", 8}, {"num_hidden_layers", 4}, {"max_position_embeddings", 8192}};
}

RopeConfig parse(const json& object) { return parse_config(object.dump()); }

const RopeParameters& all(const RopeConfig& config) { return *config.by_layer_type.at("all"); }

TEST(ParseConfig, SizesAndDefaults) {
  const RopeConfig config = parse(llama());
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.query_heads, 32);
  EXPECT_EQ(config.key_heads, 8);
  EXPECT_EQ(config.layers, 4);
  EXPECT_EQ(config.max_positions, 8192);
  EXPECT_EQ(config.pairing, Pairing::half);
  EXPECT_EQ(all(config), RopeParameters{});
  EXPECT_EQ(config.layer_types, std::vector<std::string>(4, "all"));
  EXPECT_TRUE(config.rotates);
}

TEST(ParseConfig, HeadDimGivenNullOrAbsent) {
  json object = llama();
  object["head_dim"] = nullptr;
  EXPECT_EQ(parse(object).head_dim, 128);
  object["head_dim"] = 64;
  EXPECT_EQ(parse(object).head_dim, 64);
}

TEST(ParseConfig, OldAndNewFormSayTheSame) {
  json old_form = llama();
  old_form["rope_theta"] = 500000.0;
  old_form["rope_scaling"] = {{"type", "linear"}, {"factor", 8.0}};
  json new_form = llama();
  new_form["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 500000.0}};
  EXPECT_EQ(all(parse(old_form)), all(parse(new_form)));
  EXPECT_EQ(all(parse(old_form)).base, 500000.0);
  EXPECT_EQ(all(parse(old_form)).type, "linear");
}

TEST(ParseConfig, BothFormsMustAgree) {
  json object = llama();
  object["rope_theta"] = 500000.0;
  object["rope_scaling"] = {{"type", "linear"}, {"factor", 8.0}};
  object["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 500000.0}};
  EXPECT_EQ(all(parse(object)).factor, 8.0);
  object["rope_parameters"]["factor"] = 4.0;
  EXPECT_THROW(parse(object), Error);
}

TEST(ParseConfig, EmptyAndNullScalingMeanNone) {
  for (const json& nothing : {json(nullptr), json::object()}) {
    json object = llama();
    object["rope_scaling"] = nothing;
    EXPECT_EQ(all(parse(object)).type, "default");
  }
}

TEST(ParseConfig, ValueInTheDictBeatsTheTopLevelBeatsTheClass) {
  json object = llama();
  object["model_type"] = "mixtral";
  EXPECT_EQ(all(parse(object)).base, 1e6);
  object["rope_theta"] = 5.0;
  object["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(all(parse(object)).base, 5.0);
  EXPECT_EQ(all(parse(object)).partial_factor, 0.5);
  object["rope_parameters"] = {
      {"rope_type", "default"}, {"rope_theta", 7.0}, {"partial_rotary_factor", 0.25}};
  EXPECT_EQ(all(parse(object)).base, 7.0);
  EXPECT_EQ(all(parse(object)).partial_factor, 0.25);
}

TEST(ParseConfig, TypeSpellings) {
  json object = llama();
  object["rope_scaling"] = {{"rope_type", nullptr}, {"type", "linear"}, {"factor", 2}};
  EXPECT_EQ(all(parse(object)).type, "linear");
  object["rope_scaling"] = {
      {"rope_type", "default"}, {"type", "mrope"}, {"mrope_section", {16, 24, 24}}};
  EXPECT_EQ(all(parse(object)).type, "default");
  object["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {16, 24, 24}}};
  EXPECT_EQ(all(parse(object)).mrope_section, (std::vector<std::int64_t>{16, 24, 24}));
  const json list = std::vector<double>(64, 1.5);
  object["rope_scaling"] = {{"type", "su"}, {"short_factor", list}, {"long_factor", list}};
  EXPECT_EQ(all(parse(object)).type, "longrope");
  object["rope_scaling"]["type"] = "yarn";
  EXPECT_THROW(parse(object), Error);
  object["model_type"] = "phi3";
  EXPECT_EQ(all(parse(object)).type, "longrope");
}

TEST(ParseConfig, OriginalLengthOfTheTopLevelOverridesAFlatDict) {
  json object = llama();
  object["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
  EXPECT_EQ(all(parse(object)).original_max_positions, 8192);  // from max_position_embeddings
  object["rope_scaling"]["original_max_position_embeddings"] = 2048;
  EXPECT_EQ(all(parse(object)).original_max_positions, 2048);
  object["original_max_position_embeddings"] = 1024;
  EXPECT_EQ(all(parse(object)).original_max_positions, 1024);
}

TEST(ParseConfig, NestedDictsKeepTheirOwnOriginalLength) {
  json object = llama();
  object["layer_types"] = {"full_attention", "sliding_attention", "full_attention",
                           "sliding_attention"};
  object["original_max_position_embeddings"] = 1024;
  object["rope_theta"] = 3.0;
  object["rope_parameters"] = {
      {"full_attention", {{"rope_type", "yarn"}, {"factor", 4.0}, {"rope_theta", 9.0}}},
      {"sliding_attention", {{"rope_type", "default"}}}};
  const RopeConfig config = parse(object);
  EXPECT_EQ(config.by_layer_type.at("full_attention")->original_max_positions, 8192);
  EXPECT_EQ(config.by_layer_type.at("full_attention")->base, 9.0);
  EXPECT_EQ(config.by_layer_type.at("sliding_attention")->base, 3.0);
  EXPECT_EQ(config.layer_types[1], "sliding_attention");
}

TEST(ParseConfig, NestedDictsUnderTheOldName) {
  json object = llama();
  object["layer_types"] = {"a", "b", "a", "b"};
  object["rope_scaling"] = {{"a", {{"rope_theta", 9.0}}}, {"b", {{"rope_theta", 3.0}}}};
  EXPECT_EQ(parse(object).by_layer_type.at("b")->base, 3.0);
  object["layer_types"] = {"a", "b", "c", "b"};
  EXPECT_THROW(parse(object), Error);
}

TEST(ParseConfig, NullLayerTypeHasNoRope) {
  json object = llama();
  object["layer_types"] = {"a", "b", "a", "b"};
  object["rope_parameters"] = {{"a", {{"rope_theta", 9.0}}}, {"b", nullptr}};
  const RopeConfig config = parse(object);
  EXPECT_FALSE(config.by_layer_type.at("b").has_value());
  EXPECT_EQ(config.by_layer_type.at("a")->base, 9.0);
}

TEST(ParseConfig, FlatDictHoldsForAllLayerTypes) {
  json object = llama();
  object["layer_types"] = {"full_attention", "sliding_attention", "full_attention",
                           "sliding_attention"};
  object["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 9.0}};
  EXPECT_EQ(all(parse(object)).base, 9.0);
}

TEST(ParseConfig, NestedTextConfigIsUsedWhereTheTopLevelHasNone) {
  json text = llama();
  text["rope_theta"] = 77.0;
  json object = {{"model_type", "llava"}, {"text_config", text}, {"vision_config", {{"depth", 2}}}};
  EXPECT_EQ(all(parse(object)).base, 77.0);
  EXPECT_EQ(parse(object).model_type, "llama");
  json both = llama();
  both["rope_theta"] = 5.0;
  both["text_config"] = text;
  EXPECT_EQ(all(parse(both)).base, 5.0);
  object["rope_theta"] = 5.0;  // nobody would read it
  EXPECT_THROW(parse(object), Error);
}

TEST(ParseConfig, NoRopeLayersByListAndByInterval) {
  json object = llama();
  object["model_type"] = "smollm3";
  EXPECT_EQ(parse(object).layer_rotates, (std::vector<bool>{true, true, true, false}));
  object["no_rope_layer_interval"] = 2;
  EXPECT_EQ(parse(object).layer_rotates, (std::vector<bool>{true, false, true, false}));
  object["no_rope_layers"] = {0, 1, 1, 0};  // 1 means rope
  EXPECT_EQ(parse(object).layer_rotates, (std::vector<bool>{false, true, true, false}));
}

TEST(ParseConfig, BasePerLayer) {
  json object = llama();
  object["model_type"] = "granite_swa";
  object["layer_rope_theta"] = {10000.0, 0, 10000.0, 0};
  RopeConfig config = parse(object);
  EXPECT_EQ(config.layer_types, (std::vector<std::string>{"all", "no_rope", "all", "no_rope"}));
  EXPECT_EQ(config.layer_rotates, (std::vector<bool>{true, false, true, false}));
  EXPECT_FALSE(config.by_layer_type.at("no_rope").has_value());
  object["layer_rope_theta"] = {10000.0, 5.0, 0, 5.0};
  config = parse(object);
  EXPECT_EQ(config.by_layer_type.at("base_5")->base, 5.0);
  EXPECT_EQ(config.layer_types[3], "base_5");
}

TEST(ParseConfig, ListsOfBasesAndShares) {
  json object = llama();
  object["model_type"] = "step3p7";
  object["layer_types"] = {"full_attention", "sliding_attention", "full_attention",
                           "sliding_attention"};
  object["rope_theta"] = {5e6, 1e4, 5e6, 1e4};
  object["partial_rotary_factors"] = {0.5, 1.0, 0.5, 1.0};
  const RopeConfig config = parse(object);
  EXPECT_EQ(config.by_layer_type.at("full_attention")->base, 5e6);
  EXPECT_EQ(config.by_layer_type.at("full_attention")->partial_factor, 0.5);
  EXPECT_EQ(config.by_layer_type.at("sliding_attention")->base, 1e4);
  object["rope_theta"] = {5e6, 1e4, 5e6, 2e4};
  EXPECT_THROW(parse(object), Error);
}

TEST(ParseConfig, SwitchesThatDisableRope) {
  json falcon = llama();
  falcon["model_type"] = "falcon";
  falcon["alibi"] = true;
  EXPECT_FALSE(parse(falcon).rotates);
  falcon["alibi"] = false;
  EXPECT_TRUE(parse(falcon).rotates);
  json granite = llama();
  granite["model_type"] = "granitemoehybrid";
  EXPECT_FALSE(parse(granite).rotates);
  granite["position_embedding_type"] = "rope";
  EXPECT_TRUE(parse(granite).rotates);
  json zamba = llama();
  zamba["model_type"] = "zamba2";
  EXPECT_FALSE(parse(zamba).rotates);
  zamba["use_mem_rope"] = true;
  EXPECT_TRUE(parse(zamba).rotates);
  EXPECT_EQ(parse(zamba).head_dim, 256);
  json olmo = llama();
  olmo["model_type"] = "olmo_hybrid";
  olmo["rope_theta"] = nullptr;
  EXPECT_FALSE(parse(olmo).rotates);
}

TEST(ParseConfig, KeyHeads) {
  json object = llama();
  object.erase("num_key_value_heads");
  EXPECT_EQ(parse(object).key_heads, 32);
  object["model_type"] = "falcon";
  object["multi_query"] = true;
  EXPECT_EQ(parse(object).key_heads, 1);
  object["new_decoder_architecture"] = true;
  object["num_kv_heads"] = 8;
  EXPECT_EQ(parse(object).key_heads, 8);
}

TEST(ParseConfig, QueryScalingIsReported) {
  json object = llama();
  EXPECT_TRUE(parse(object).query_scaling.rule.empty());
  object["model_type"] = "llama4_text";
  EXPECT_NE(parse(object).query_scaling.rule.find("8192"), std::string::npos);
  object["attn_temperature_tuning"] = 0;
  EXPECT_TRUE(parse(object).query_scaling.rule.empty());
  object["model_type"] = "ministral3";
  EXPECT_NE(parse(object).query_scaling.rule.find("16384"), std::string::npos);
}

TEST(ParseConfig, KeysOfPublishedConfigsThatSayNothingAreAccepted) {
  json object = llama();
  object["use_mrope"] = false;
  object["use_rotary_pos_emb"] = true;
  object["rotary_scaling_factor"] = nullptr;
  object["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}, {"attention_factor", nullptr}};
  EXPECT_NO_THROW(parse(object));
  object["use_rotary_pos_emb"] = false;
  EXPECT_THROW(parse(object), Error);
  object["use_rotary_pos_emb"] = true;
  object["use_mrope"] = true;
  EXPECT_THROW(parse(object), Error);
}

TEST(ParseConfig, BasesUnderTwoNamesMustAgree) {
  json object = llama();
  object["rope_theta"] = 5.0;
  object["rotary_emb_base"] = 5;
  EXPECT_EQ(all(parse(object)).base, 5.0);
  object["rotary_emb_base"] = 6;
  EXPECT_THROW(parse(object), Error);
}

TEST(ParseConfig, SourceNoteIsIgnored) {
  json object = llama();
  object["_source"] = "rope, theta, anything";
  EXPECT_NO_THROW(parse(object));
}

}  // namespace
}  // namespace ropewalk
