#include <gtest/gtest.h>

#include <set>

#include "ropewalk/config.h"
#include "ropewalk/error.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

RopeConfig plain_config(std::int64_t head_dim = 128) {
  RopeConfig config;
  config.head_dim = head_dim;
  config.max_positions = 4096;
  config.by_layer_type.emplace("all", RopeParameters{});
  return config;
}

RopeParameters& parameters_of(RopeConfig& config) { return *config.by_layer_type.at("all"); }

std::string message_of(const RopeConfig& config) {
  try {
    static_cast<void>(make_plan(config));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_config);
    return error.what();
  }
  return "accepted";
}

TEST(PlanFromConfig, PlainPlanHasItsFormulaAndTheModelsBits) {
  const RotaryPlan plan = make_plan(128);
  EXPECT_EQ(plan.frequencies()[0], 1.0);
  EXPECT_EQ(plan.frequencies()[16], 0.1);
  EXPECT_EQ(plan.frequencies()[32], 0.01);
  EXPECT_EQ(plan.model_frequencies()[0], 1.0f);
  EXPECT_EQ(plan.spec().frequency_precision, FrequencyPrecision::formula);
  EXPECT_THROW(static_cast<void>(make_plan(65)), Error);
  EXPECT_THROW(static_cast<void>(make_plan(64, 10000.0, 66)), Error);
  EXPECT_THROW(static_cast<void>(make_plan(64, 0.0)), Error);
  EXPECT_THROW(static_cast<void>(make_plan(64, -1.0)), Error);
  EXPECT_THROW(static_cast<void>(make_plan(64, 1e308)), Error);
  EXPECT_NO_THROW(static_cast<void>(make_plan(65, 10000.0, 64)));
}

TEST(PlanFromConfig, PrecisionChoosesWhatTheFrequenciesAre) {
  PlanOptions options;
  options.frequency_precision = FrequencyPrecision::formula;
  const RotaryPlan formula = make_plan(plain_config(), options);
  const RotaryPlan model = make_plan(plain_config());
  EXPECT_EQ(formula.frequencies(), make_plan(128).frequencies());
  EXPECT_EQ(formula.model_frequencies(), model.model_frequencies());
  EXPECT_NE(formula.frequencies(), model.frequencies());
  EXPECT_EQ(model.frequencies()[3], static_cast<double>(model.model_frequencies()[3]));
}

// Parameters that leave a frequency infinite, absent, zero or subnormal name the one to change.
TEST(PlanFromConfig, AbsurdFrequenciesAreRefused) {
  struct Case {
    std::string type, key;
    double base, factor;
  };
  for (const Case& c :
       {Case{"linear", "factor", 1e4, 1e300}, Case{"linear", "factor", 1e4, 1e-300},
        Case{"linear", "factor", 0x1p120, 0x1p20}, Case{"dynamic", "factor", 1e4, 1e300},
        Case{"yarn", "factor", 1e4, 1e300}, Case{"llama3", "factor", 1e4, 1e300},
        Case{"default", "base", 1e-300, 1}, Case{"proportional", "factor", 1e4, 1e300}}) {
    RopeConfig config = plain_config();
    RopeParameters& p = parameters_of(config);
    p.type = c.type;
    p.base = c.base;
    p.factor = c.factor;
    p.original_max_positions = 4096;
    p.low_freq_factor = 1.0;
    p.high_freq_factor = 4.0;
    PlanOptions options;
    options.length = 8192;
    try {
      static_cast<void>(make_plan(config, options));
      ADD_FAILURE() << c.type << " was accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.code(), ErrorCode::invalid_config) << message;
      EXPECT_TRUE(message.starts_with(c.key + ": ")) << message;
      EXPECT_EQ(message.find("nan"), std::string::npos) << message;
    }
  }
  for (const double base : {1e-308, 4.9e-324, 0x1p127, 1e308}) {
    EXPECT_THROW(static_cast<void>(make_plan(64, base)), Error) << base;
  }
  for (const double base : {0x1p-31, 0x1p126}) {
    EXPECT_NO_THROW(static_cast<void>(make_plan(64, base))) << base;
  }
}

// Bug12, transformers#48101, #35233, fla#1177: sizes that cannot be are refused, naming both.
TEST(PlanFromConfig, OddAndOversizedWindowsAreRefused_Bug12) {
  struct Case {
    std::int64_t head_dim;
    std::optional<std::int64_t> rotary_dim;
    double share;
    bool accepted;
  };
  const Case cases[] = {
      {65, {}, 1.0, false}, {4, {}, 0.75, false}, {64, 33, 1.0, false}, {65, 66, 1.0, false},
      {65, 64, 1.0, true},  {64, 2, 1.0, true},   {64, 4, 1.0, true},   {64, {}, 0.01, false},
      {0, {}, 1.0, false},  {64, 0, 1.0, false},  {64, {}, 1.5, false}, {64, {}, -1.0, false},
  };
  for (const Case& c : cases) {
    RopeConfig config = plain_config(c.head_dim);
    parameters_of(config).rotary_dim = c.rotary_dim;
    parameters_of(config).partial_factor = c.share;
    const std::string message = message_of(config);
    EXPECT_EQ(message == "accepted", c.accepted) << c.head_dim << " " << message;
  }
  RopeConfig config = plain_config(64);
  parameters_of(config).rotary_dim = 66;
  const std::string message = message_of(config);
  EXPECT_NE(message.find("64"), std::string::npos) << message;
  EXPECT_NE(message.find("66"), std::string::npos) << message;
}

TEST(PlanFromConfig, PlansThatDifferInOneFieldShareNothing) {
  std::vector<RotaryPlan> plans;
  const auto add = [&plans](const auto& change, const PlanOptions& options = {}) {
    RopeConfig config = plain_config();
    RopeParameters& p = parameters_of(config);
    p.type = "yarn";
    p.factor = 4.0;
    p.original_max_positions = 4096;
    change(config, p);
    plans.push_back(make_plan(config, options));
  };
  add([](RopeConfig&, RopeParameters&) {});
  add([](RopeConfig&, RopeParameters& p) { p.base = 10001.0; });
  add([](RopeConfig&, RopeParameters& p) { p.factor = 8.0; });
  add([](RopeConfig&, RopeParameters& p) { p.truncate = false; });
  add([](RopeConfig&, RopeParameters& p) { p.attention_factor = 1.0; });
  add([](RopeConfig& c, RopeParameters&) { c.pairing = Pairing::interleaved; });
  add([](RopeConfig&, RopeParameters& p) { p.rotary_dim = 64; });
  add([](RopeConfig& c, RopeParameters&) {
    c.head_dim = 192;
    parameters_of(c).rotary_dim = 128;
  });
  PlanOptions parity;
  parity.arithmetic = Arithmetic::parity_p0;
  add([](RopeConfig&, RopeParameters&) {}, parity);
  PlanOptions formula;
  formula.frequency_precision = FrequencyPrecision::formula;
  add([](RopeConfig&, RopeParameters&) {}, formula);

  std::set<std::string> fingerprints;
  for (const RotaryPlan& plan : plans) fingerprints.insert(plan.fingerprint());
  EXPECT_EQ(fingerprints.size(), plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(plans[i] == plans[j]) << i << " " << j;
  }
}

TEST(PlanFromConfig, DynamicFollowsTheLengthBeyondTheTrainedOne) {
  RopeConfig config = plain_config();
  parameters_of(config).type = "dynamic";
  parameters_of(config).factor = 2.0;
  const auto at = [&config](std::optional<std::int64_t> length) {
    PlanOptions options;
    options.length = length;
    return make_plan(config, options);
  };
  EXPECT_TRUE(at({}) == at(100));
  EXPECT_TRUE(at({}) == at(4096));
  EXPECT_EQ(at({}).spec().length, 4096);
  EXPECT_EQ(at({}).model_frequencies(), make_plan(128).model_frequencies());
  EXPECT_EQ(at(8192).spec().length_policy, LengthPolicy::dynamic_ntk);
  EXPECT_EQ(at(8192).spec().length, 8192);
  EXPECT_LT(at(8192).frequencies()[63], at(4096).frequencies()[63]);
  EXPECT_THROW(at(0), Error);

  parameters_of(config).alpha = 1000.0;  // Hunyuan: one base for every length
  EXPECT_TRUE(at({}) == at(8192));
  EXPECT_EQ(at({}).spec().length_policy, LengthPolicy::none);
}

TEST(PlanFromConfig, LongRopeSwitchesListsAfterTheOriginalLength) {
  RopeConfig config = plain_config(8);
  RopeParameters& p = parameters_of(config);
  p.type = "longrope";
  p.original_max_positions = 1024;
  p.short_factor = {1.0, 1.0, 1.0, 1.0};
  p.long_factor = {2.0, 4.0, 8.0, 16.0};
  const auto at = [&config](std::int64_t length) {
    PlanOptions options;
    options.length = length;
    return make_plan(config, options);
  };
  EXPECT_EQ(at(1024).frequencies()[0], 1.0);
  EXPECT_EQ(at(1025).frequencies()[0], 0.5);
  EXPECT_EQ(at(1025).spec().length_policy, LengthPolicy::longrope_switch);
  EXPECT_EQ(at(1025).spec().length, 1025);
  // √(1 + ln 4 / ln 1024)
  EXPECT_NEAR(at(10).amplitude() / 1.0954451150103321, 1.0, verify::roundings(Dtype::float64, 2));
  p.short_mscale = 1.1;
  p.long_mscale = 1.3;
  EXPECT_EQ(at(1024).amplitude(), 1.1);
  EXPECT_EQ(at(1025).amplitude(), 1.3);
  p.long_factor.pop_back();
  EXPECT_THROW(at(1025), Error);
}

TEST(PlanFromConfig, LayerTypeMustBeChosenWhereLayersDiffer) {
  RopeConfig config = plain_config();
  RopeParameters sliding;
  sliding.base = 1e6;
  config.by_layer_type = {{"full", RopeParameters{}}, {"sliding", sliding}, {"none", {}}};
  PlanOptions options;
  EXPECT_THROW(static_cast<void>(make_plan(config, options)), Error);
  options.layer_type = "other";
  EXPECT_THROW(static_cast<void>(make_plan(config, options)), Error);
  options.layer_type = "sliding";
  EXPECT_EQ(make_plan(config, options).frequencies()[1],
            static_cast<double>(make_plan(128, 1e6).model_frequencies()[1]));
  options.layer_type = "none";
  const RotaryPlan none = make_plan(config, options);
  EXPECT_FALSE(none.rotates());
  EXPECT_EQ(none.rotary_dim(), 0);
  EXPECT_EQ(none.head_dim(), 128);
}

TEST(PlanFromConfig, ModelThatDisablesRopeDoesNotRotate) {
  RopeConfig config = plain_config();
  config.rotates = false;
  EXPECT_FALSE(make_plan(config).rotates());
  EXPECT_TRUE(make_plan(plain_config()).rotates());
}

TEST(PlanFromConfig, UnknownScheduleIsNamed) {
  RopeConfig config = plain_config();
  parameters_of(config).type = "spiral";
  EXPECT_NE(message_of(config).find("spiral"), std::string::npos);
}

}  // namespace
}  // namespace ropewalk
