// Every config that cannot be understood ends in one error that names the key.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "ropewalk/config.h"
#include "ropewalk/error.h"

namespace ropewalk {
namespace {

struct Refused {
  ErrorCode code;
  std::string message;
};

Refused refusal_of(std::string_view text) {
  try {
    static_cast<void>(parse_config(text));
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::cuda, "accepted"};
}

std::string llama_with(const std::string& members) {
  return fmt::format(R"({{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
                          "num_hidden_layers": 2, "max_position_embeddings": 8192{}{}}})",
                     members.empty() ? "" : ", ", members);
}

void expect_refused(const std::string& members, const std::string& named) {
  const Refused refused = refusal_of(llama_with(members));
  EXPECT_EQ(refused.code, ErrorCode::invalid_config) << members << ": " << refused.message;
  EXPECT_NE(refused.message.find(named), std::string::npos) << refused.message;
  EXPECT_LT(refused.message.size(), 400u);
}

TEST(ConfigErrors, ThePlainConfigIsAccepted) {
  EXPECT_EQ(refusal_of(llama_with("")).message, "accepted");
}

TEST(ConfigErrors, UnknownType) {
  expect_refused(R"("rope_scaling": {"rope_type": "spiral", "factor": 2})",
                 "rope_scaling.rope_type");
  expect_refused(R"("rope_scaling": {"type": "ntk", "factor": 2})", "rope_scaling.type");
}

TEST(ConfigErrors, MissingRequiredKeys) {
  expect_refused(R"("rope_scaling": {"type": "linear"})", "rope_scaling.factor");
  expect_refused(R"("rope_scaling": {"type": "dynamic"})", "rope_scaling.factor");
  expect_refused(R"("rope_scaling": {"type": "yarn"})", "rope_scaling.factor");
  expect_refused(R"("rope_scaling": {"type": "longrope", "long_factor": [1]})", "short_factor");
  expect_refused(R"("rope_scaling": {"type": "llama3", "factor": 8, "high_freq_factor": 4})",
                 "rope_scaling.low_freq_factor");
  EXPECT_NE(refusal_of(R"({"model_type": "llama", "hidden_size": 8})")
                .message.find("num_attention_heads"),
            std::string::npos);
  EXPECT_NE(
      refusal_of(R"({"model_type": "llama", "num_attention_heads": 8})").message.find("head_dim"),
      std::string::npos);
  EXPECT_NE(refusal_of(R"({"model_type": "deepseek_v3", "num_attention_heads": 8})")
                .message.find("qk_rope_head_dim"),
            std::string::npos);
}

TEST(ConfigErrors, KeysThatNothingReads) {
  expect_refused(R"("rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 32})",
                 "rope_scaling.beta_fast");
  expect_refused(R"("rope_parameters": {"rope_type": "default", "factr": 2})",
                 "rope_parameters.factr");
  for (const char* key : {"rope_ratio", "swa_rope_theta", "rotary_percentage", "theta_base",
                          "use_mrope", "rope_scaling_factor", "yarn_factor", "rope"}) {
    expect_refused(fmt::format(R"("{}": 2)", key), key);
  }
  EXPECT_EQ(refusal_of(llama_with(R"("property": 1, "europe": 2)")).message, "accepted");
}

TEST(ConfigErrors, WrongTypes) {
  expect_refused(R"("rope_theta": "10000")", "rope_theta");
  expect_refused(R"("rope_scaling": [1, 2])", "rope_scaling");
  expect_refused(R"("rope_scaling": {"type": "linear", "factor": true})", "rope_scaling.factor");
  expect_refused(R"("rope_scaling": {"type": 3})", "rope_scaling.type");
  expect_refused(R"("rope_scaling": {"type": "yarn", "factor": 2, "truncate": 1})", "truncate");
  expect_refused(R"("head_dim": 12.5)", "head_dim");
  expect_refused(R"("head_dim": [128])", "head_dim");
  expect_refused(R"("layer_types": "full")", "layer_types");
  expect_refused(R"("num_key_value_heads": -1)", "num_key_value_heads");
}

TEST(ConfigErrors, ImpossibleValues) {
  expect_refused(R"("rope_theta": 0)", "rope_theta");
  expect_refused(R"("rope_theta": -10000.0)", "rope_theta");
  expect_refused(R"("rope_theta": 1e308)", "rope_theta");
  expect_refused(R"("rope_theta": 1e999)", "config");
  expect_refused(R"("rope_scaling": {"type": "linear", "factor": 0})", "rope_scaling.factor");
  expect_refused(R"("rotary_dim": 33)", "rotary_dim");
  expect_refused(R"("rotary_dim": 130)", "130");
  expect_refused(R"("partial_rotary_factor": 0)", "partial_rotary_factor");
  expect_refused(R"("partial_rotary_factor": 1.5)", "partial_rotary_factor");
  expect_refused(R"("head_dim": 65)", "65");
  expect_refused(R"("head_dim": 1e300)", "head_dim");
  expect_refused(R"("rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]})",
                 "short_factor");
  expect_refused(R"("layer_types": ["full_attention"])", "layer_types");
  expect_refused(R"("rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4,
                     "high_freq_factor": 1})",
                 "low_freq_factor");
}

// Numbers that leave no usable frequency, together or alone, are refused under their own name.
TEST(ConfigErrors, AbsurdBasesAndFactors) {
  for (const char* base : {"1e-308", "4.9e-324", "1e-20", "1e38", "3.4e38"}) {
    expect_refused(fmt::format(R"("rope_theta": {})", base), "rope_theta: expected a number from");
  }
  for (const char* factor : {"1e300", "1e38", "1e-300", "1e-320", "-1"}) {
    for (const char* type : {"linear", "dynamic", "yarn"}) {
      expect_refused(fmt::format(R"("rope_scaling": {{"type": "{}", "factor": {}}})", type, factor),
                     "rope_scaling.factor: expected a number from");
    }
    expect_refused(fmt::format(R"("rope_scaling": {{"type": "dynamic", "alpha": {}}})", factor),
                   "rope_scaling.alpha: expected a number from");
    expect_refused(fmt::format(R"("rope_scaling": {{"type": "longrope", "short_factor": [{}],
                                   "long_factor": [1]}})",
                               factor),
                   "rope_scaling.short_factor: expected a number from");
  }
  for (const char* key : {"attention_factor", "beta_fast", "beta_slow"}) {
    for (const char* value : {"-1", "1e300", "1e-320"}) {
      expect_refused(
          fmt::format(R"("rope_scaling": {{"type": "yarn", "factor": 2, "{}": {}}})", key, value),
          fmt::format("rope_scaling.{}: expected 0 or a positive normal number", key));
    }
  }
}

TEST(ConfigErrors, TextFromTheConfigIsMadePrintable) {
  const Refused refused = refusal_of(
      R"({"model_type": "\u001b[31mred\u009b\n", "hidden_size": 8, "num_attention_heads": 1})");
  EXPECT_EQ(refused.code, ErrorCode::unsupported);
  EXPECT_NE(refused.message.find(R"(\x1b[31mred\u009b\n)"), std::string::npos) << refused.message;
  for (const char c : refused.message) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
}

TEST(ConfigErrors, TextThatIsNotAConfig) {
  for (const char* text :
       {"", "{", "[]", "3", "null", "NaN", "{\"a\": 1,}", "{NaN: 1}", "{\"a\": Nan}",
        "{\"a\": +Infinity}", "{\"a\": 1Infinity}", "{\"a\": InfinityNaN}", "\xff\xfe"}) {
    const Refused refused = refusal_of(text);
    EXPECT_EQ(refused.code, ErrorCode::invalid_config) << text;
    EXPECT_NE(refused.message.find("config"), std::string::npos) << refused.message;
  }
}

// Python writes these words; Bamba's and Falcon-H1's published configs have them.
TEST(ConfigErrors, BareInfinityAndNanMatterOnlyToKeysOfRope) {
  for (const char* word : {"Infinity", "-Infinity", "NaN"}) {
    const std::string elsewhere =
        fmt::format(R"("time_step_limit": [0.0, {0}], "nested": {{"a": {0}}}, "b":{0},
                       "text": "\"{0} \\\\", "c": {0})",
                    word);
    EXPECT_EQ(refusal_of(llama_with(elsewhere)).message, "accepted");
    for (const char* key : {"rope_theta", "head_dim", "num_key_value_heads"}) {
      expect_refused(fmt::format(R"("{}": {})", key, word),
                     fmt::format("{}: expected a finite number, got ", key));
    }
    expect_refused(fmt::format(R"("rope_scaling": {{"type": "linear", "factor": {}}})", word),
                   "rope_scaling.factor");
    expect_refused(fmt::format(R"("rope_scaling": {{"type": {}}})", word), "rope_scaling.type");
    expect_refused(fmt::format(R"("rope_scaling": {})", word), "rope_scaling");
  }
}

TEST(ConfigErrors, DuplicateKeys) {
  const Refused refused = refusal_of(llama_with(R"("rope_theta": 1.0, "rope_theta": 2.0)"));
  EXPECT_EQ(refused.code, ErrorCode::invalid_config);
  EXPECT_NE(refused.message.find("rope_theta"), std::string::npos) << refused.message;
}

TEST(ConfigErrors, DeepNesting) {
  constexpr std::size_t kDepth = 200000;
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text = "{\"a\":";
    for (std::size_t i = 0; i < kDepth; ++i) text += open;
    const Refused refused = refusal_of(text);
    EXPECT_EQ(refused.code, ErrorCode::invalid_config);
    EXPECT_NE(refused.message.find("nested"), std::string::npos) << refused.message;
  }
}

TEST(ConfigErrors, LearnedAnglesAreRefusedWithTheWayOut) {
  const Refused refused =
      refusal_of(R"({"num_attention_heads": 8, "hidden_size": 64, "model_type": "lightglue"})");
  EXPECT_EQ(refused.code, ErrorCode::unsupported);
  EXPECT_NE(refused.message.find("table"), std::string::npos) << refused.message;
}

TEST(ConfigErrors, PartsThatAreNotThere) {
  const std::string text = llama_with(R"("vision_config": {"num_heads": 4})");
  try {
    static_cast<void>(parse_config(text, "audio"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string_view(error.what()).find("vision_config"), std::string_view::npos)
        << error.what();
  }
}

TEST(ConfigErrors, MissingFile) {
  try {
    static_cast<void>(load_config("no/such/config.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
}

}  // namespace
}  // namespace ropewalk
