// Public reports of wrong frequencies and amplitudes, as inputs with their right values.
#include <gtest/gtest.h>

#include "ropewalk/config.h"
#include "ropewalk/error.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

RopeConfig config_with(RopeParameters parameters, std::int64_t head_dim) {
  RopeConfig config;
  config.head_dim = head_dim;
  config.by_layer_type.emplace("all", std::move(parameters));
  return config;
}

RotaryPlan exact_plan(const RopeConfig& config) {
  PlanOptions options;
  options.frequency_precision = FrequencyPrecision::formula;
  return make_plan(config, options);
}

RopeParameters gpt_oss(bool truncate) {
  RopeParameters p;
  p.type = "yarn";
  p.base = 150000.0;
  p.factor = 32.0;
  p.original_max_positions = 4096;
  p.beta_fast = 32.0;
  p.beta_slow = 1.0;
  p.truncate = truncate;
  return p;
}

/// `right` was printed with ten significant digits or more.
void expect_ten_digits(double got, double right) {
  EXPECT_NEAR(got / right, 1.0, verify::printed_digits(10));
}

/// `got` is `right` but for roundings: of the two plans' frequencies, of a product and a quotient.
void expect_same(double got, double right) {
  EXPECT_NEAR(got / right, 1.0, verify::roundings(Dtype::float64, 4));
}

// Bug7, vllm#27722, keras-hub#2981: the correction range with and without rounding to whole pairs.
TEST(YarnSchedule, TruncateMovesTheRamp_Bug7) {
  const RotaryPlan exact = exact_plan(config_with(gpt_oss(false), 64));
  EXPECT_EQ(exact.frequencies()[0], 1.0);
  expect_ten_digits(exact.frequencies()[8], 0.050813274815);
  expect_ten_digits(exact.frequencies()[9], 0.031705696185);
  expect_ten_digits(exact.frequencies()[16], 4.564839192e-4);
  expect_ten_digits(exact.frequencies()[17], 1.293187012e-4);
  expect_ten_digits(exact.frequencies()[18], 3.830881237e-5);
  expect_ten_digits(exact.frequencies()[31], 3.023511428e-7);

  const RotaryPlan rounded = exact_plan(config_with(gpt_oss(true), 64));
  expect_ten_digits(rounded.frequencies()[8], 0.050813274815);
  expect_ten_digits(rounded.frequencies()[9], 0.031620752275);
  expect_ten_digits(rounded.frequencies()[16], 5.809475019e-4);
  expect_ten_digits(rounded.frequencies()[17], 2.279477958e-4);
  expect_ten_digits(rounded.frequencies()[18], 3.830881237e-5);
}

// Bug7, torchtitan#4215: a range that is clamped to pair 0, and one of no width.
TEST(YarnSchedule, RangeThatClampsOrVanishesStaysFinite_Bug7) {
  RopeParameters p = gpt_oss(true);
  p.original_max_positions = 128;  // β_fast turns 32 times in less than one wavelength of pair 0
  const RotaryPlan clamped = exact_plan(config_with(p, 64));
  EXPECT_EQ(clamped.frequencies()[0], 1.0);

  p.beta_fast = p.beta_slow = 1.0;
  p.truncate = false;
  p.original_max_positions = 4096;
  const RotaryPlan step = exact_plan(config_with(p, 64));
  for (std::size_t i = 0; i < 32; ++i) {
    const double plain = make_plan(64, 150000.0).frequencies()[i];
    SCOPED_TRACE(i);
    expect_same(step.frequencies()[i] / plain, i <= 17 ? 1.0 : 1.0 / 32.0);
  }
}

struct Amplitude {
  double factor;
  double mscale, mscale_all_dim;
  std::optional<double> attention_factor;
  double table, softmax;
};

// Bug8, mobius#548, mlx-lm#1507, atlas#342: the table's scale and the softmax's are two numbers.
TEST(YarnSchedule, AmplitudeAndSoftmaxMultiplier_Bug8) {
  const Amplitude cases[] = {
      {40, 0.707, 0.707, {}, 1.0, 1.589626165},
      {40, 1, 1, {}, 1.0, 1.873854207},
      {8, 0, 0, {}, 1.207944154, 1.0},
      {16, 0, 0, {}, 1.277258872, 1.0},
      {32, 0, 0, {}, 1.346573590, 1.0},
      {8, 0, 0, 1.0, 1.0, 1.0},
      {16, 0, 0, 1.0, 1.0, 1.0},
  };
  for (const Amplitude& c : cases) {
    RopeParameters p = gpt_oss(true);
    p.factor = c.factor;
    p.attention_factor = c.attention_factor;
    if (c.mscale != 0) p.mscale = c.mscale;
    if (c.mscale_all_dim != 0) p.mscale_all_dim = c.mscale_all_dim;
    RopeConfig config = config_with(p, 64);
    config.latent_attention = true;
    const RotaryPlan plan = exact_plan(config);
    EXPECT_NEAR(plan.amplitude(), c.table, verify::printed_decimals(9));
    EXPECT_NEAR(plan.spec().softmax_multiplier, c.softmax, verify::printed_decimals(9));
    // YaRN's frequencies whatever the amplitude.
    const double plain = make_plan(64, 150000.0).frequencies()[31];
    expect_same(plan.frequencies()[31] * c.factor, plain);

    config.latent_attention = false;
    EXPECT_EQ(exact_plan(config).spec().softmax_multiplier, 1.0);
  }
}

// Bug11, vllm#16904, #43676: the denominator of a partial rotation is its own width …
TEST(PartialRotation, DenominatorIsTheRotatedWidth_Bug11) {
  const RotaryPlan plan = make_plan(128, 10000.0, 64);
  EXPECT_EQ(plan.rotary_dim(), 64);
  EXPECT_EQ(plan.pairs(), 32);
  expect_ten_digits(100.0 * plan.frequencies()[1], 74.989420933);
}

// … except for the proportional kind, which keeps the head's and rests with frequency 0.
TEST(PartialRotation, ProportionalKeepsTheHeadsDenominator_Bug11) {
  RopeParameters p;
  p.type = "proportional";
  p.base = 1e6;
  p.partial_factor = 0.25;
  const RotaryPlan plan = exact_plan(config_with(p, 512));
  EXPECT_EQ(plan.rotary_dim(), 512);
  expect_ten_digits(100.0 * plan.frequencies()[1], 94.746352566);
  expect_ten_digits(plan.frequencies()[63], 0.03337624694);
  for (std::size_t i = 64; i < 256; ++i) EXPECT_EQ(plan.frequencies()[i], 0.0);

  RopeParameters ordinary;
  ordinary.base = 1e6;
  ordinary.partial_factor = 0.25;
  expect_ten_digits(100.0 * exact_plan(config_with(ordinary, 512)).frequencies()[1], 80.584218776);
}

TEST(LlamaSchedule, EqualFactorsHaveNoBandInBetween) {
  RopeParameters p;
  p.type = "llama3";
  p.base = 500000.0;
  p.factor = 16.0;
  p.low_freq_factor = p.high_freq_factor = 1.0;
  p.original_max_positions = 8192;
  const RotaryPlan plan = exact_plan(config_with(p, 128));
  const RotaryPlan plain = make_plan(128, 500000.0);
  for (std::size_t i = 0; i < 64; ++i) {
    const bool is_long = 6.283185307179586 / plain.frequencies()[i] > 8192.0;
    SCOPED_TRACE(i);
    expect_same(plan.frequencies()[i] / plain.frequencies()[i], is_long ? 1.0 / 16.0 : 1.0);
  }
}

TEST(Schedules, MissingParametersAreNamed) {
  for (const char* type : {"linear", "yarn", "llama3", "longrope", "dynamic"}) {
    RopeParameters p;
    p.type = type;
    try {
      static_cast<void>(make_plan(config_with(p, 64)));
      FAIL() << type;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_config);
      EXPECT_NE(std::string(error.what()).find(type), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace ropewalk
