// The oracle against values computed elsewhere with 50 digits, and against the definition.
#include "verify/oracle.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "verify/tolerance.h"

namespace ropewalk::verify {
namespace {

PlanSpec spec_of(std::int64_t head_dim, Pairing pairing, std::vector<double> frequencies) {
  PlanSpec spec;
  spec.head_dim = head_dim;
  spec.window = {0, static_cast<std::int64_t>(2 * frequencies.size())};
  spec.pairing = pairing;
  spec.frequencies = std::move(frequencies);
  return spec;
}

std::vector<Expected> rotate_one(const PlanSpec& spec, const Positions& positions,
                                 std::vector<Quad> x, Direction direction = Direction::forward) {
  Oracle oracle(spec, positions, direction);
  oracle.seek(0, 0);
  std::vector<Expected> out(x.size());
  oracle.row(x, out);
  return out;
}

/// `want` has six printed decimals.
void expect_values(const std::vector<Expected>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got[i].exact.y), want[i], printed_decimals(6))
        << "channel " << i;
  }
}

// mpmath, 60 digits: cos and sin of p·w for the doubles p and w given.
TEST(Oracle, CosinesMatchFiftyDigitValues) {
  const double printed = printed_decimals(12);
  EXPECT_NEAR(static_cast<double>(exact_cos_sin(48040, 1.0).c), 0.329654534247, printed);
  EXPECT_NEAR(static_cast<double>(exact_cos_sin(131071, 1.0).c), -0.817983499388, printed);
  EXPECT_NEAR(static_cast<double>(exact_cos_sin(131071, 1.0).s), -0.575241683755, printed);
  EXPECT_NEAR(static_cast<double>(exact_cos_sin(15962, 1.0).s), 0.418935702794, printed);
}

TEST(Oracle, ReducesHugeAnglesExactly) {
  // 2^85 rad is beyond any two-term reduction; the identities below hold only where the angle is
  // reduced with enough of pi.
  for (const double position : {0x1p35 - 1, -0x1p52 - 1, 0x1p53 - 101}) {
    for (const double omega : {1.0, 0.73129403121, 0x1.fffffp31}) {
      const CosSin once = exact_cos_sin(position, omega);
      const CosSin less = exact_cos_sin(position - 1, omega);
      const CosSin step = exact_cos_sin(1, omega);
      EXPECT_LT(static_cast<double>(magnitude(once.c - (less.c * step.c - less.s * step.s))),
                kOracleError);
      EXPECT_LT(static_cast<double>(magnitude(once.s - (less.s * step.c + less.c * step.s))),
                kOracleError);
      EXPECT_LT(static_cast<double>(magnitude(once.c * once.c + once.s * once.s - 1)),
                kOracleError);
    }
  }
}

// Public golden vectors of both pairings (Bug5).
TEST(Oracle, GoldenVectorsOfPairings_Bug5) {
  const std::vector<Quad> x{1, 2, 3, 4};
  const Positions at_one = Positions::from_offset(1);
  expect_values(rotate_one(spec_of(4, Pairing::half, {1.0, 0.01}), at_one, x),
                {-1.984111, 1.959901, 2.462378, 4.019800});
  expect_values(rotate_one(spec_of(4, Pairing::interleaved, {1.0, 0.01}), at_one, x),
                {-1.142640, 1.922076, 2.959851, 4.029800});
  expect_values(rotate_one(spec_of(4, Pairing::interleaved_to_half, {1.0, 0.01}), at_one, x),
                {-1.142640, 2.959851, 1.922076, 4.029800});
}

TEST(Oracle, InverseIsTheTransposedMap) {
  for (const Pairing pairing :
       {Pairing::half, Pairing::interleaved, Pairing::interleaved_to_half}) {
    PlanSpec spec = spec_of(5, pairing, {1.0, 0.3});
    spec.amplitude = 1.5;
    const Positions at = Positions::from_offset(1234567);
    const std::vector<Quad> x{1, 2, 3, 4, 5};
    std::vector<Quad> y;
    for (const Expected& e : rotate_one(spec, at, x)) y.push_back(e.exact.y);
    const auto back = rotate_one(spec, at, y, Direction::inverse);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(static_cast<double>(back[i].exact.y / (1.5 * 1.5)), static_cast<double>(x[i]),
                  roundings(Dtype::float64, 1));
    }
    EXPECT_EQ(back[4].copied_from, 4);
  }
}

TEST(Oracle, BlocksHaveAHalfPairingEach) {
  PlanSpec spec = spec_of(8, Pairing::half, {1.0, 2.0, 3.0, 4.0});
  spec.block_width = 4;
  const auto y = rotate_one(spec, Positions::from_offset(1), {1, 0, 0, 0, 0, 1, 0, 0});
  const double last_bits = roundings(Dtype::float64, 3);  // two in the standard library's functions
  EXPECT_NEAR(static_cast<double>(y[0].exact.y), std::cos(1.0), last_bits);
  EXPECT_NEAR(static_cast<double>(y[2].exact.y), std::sin(1.0), last_bits);
  EXPECT_NEAR(static_cast<double>(y[5].exact.y), std::cos(4.0), last_bits);
  EXPECT_NEAR(static_cast<double>(y[7].exact.y), std::sin(4.0), last_bits);
}

TEST(Oracle, WindowSignAndAmplitude) {
  PlanSpec spec = spec_of(4, Pairing::half, {1.0});
  spec.window = {1, 2};
  spec.sign = -1;
  spec.amplitude = 2;
  const auto y = rotate_one(spec, Positions::from_offset(1), {7, 1, 0, 9});
  EXPECT_EQ(y[0].copied_from, 0);
  const double last_bits = 2 * roundings(Dtype::float64, 3);
  EXPECT_NEAR(static_cast<double>(y[1].exact.y), 2 * std::cos(1.0), last_bits);
  EXPECT_NEAR(static_cast<double>(y[2].exact.y), -2 * std::sin(1.0), last_bits);
  EXPECT_EQ(y[3].copied_from, 3);
}

TEST(Oracle, PositionsOfEveryKind) {
  const std::vector<std::int64_t> starts{10, 20};
  const Positions per_batch = Positions::from_batch_offsets(std::span<const std::int64_t>(starts));
  EXPECT_EQ(static_cast<double>(position_component(per_batch, 0, 1, 3)), 23);

  const std::vector<std::int32_t> tokens{5, -6, 7};
  const Positions per_token = Positions::from_tokens(std::span<const std::int32_t>(tokens));
  EXPECT_EQ(static_cast<double>(position_component(per_token, 0, 4, 1)), -6)
      << "broadcast over batch";

  const std::vector<std::int64_t> rows{1, 2, 3, 4, 5, 6, 7, 8};
  const Positions matrix = Positions::from_batch_tokens(std::span<const std::int64_t>(rows), 4);
  EXPECT_EQ(static_cast<double>(position_component(matrix, 0, 1, 2)), 7);
  const Positions axes = Positions::from_axes(std::span<const std::int64_t>(rows), 2, 2, 2);
  EXPECT_EQ(static_cast<double>(position_component(axes, 1, 0, 1)), 6);

  const std::vector<std::int32_t> cu{0, 2, 2, 5};
  Positions packed = Positions::from_cu_seqlens(std::span<const std::int32_t>(cu));
  EXPECT_EQ(static_cast<double>(position_component(packed, 0, 0, 1)), 1);
  EXPECT_EQ(static_cast<double>(position_component(packed, 0, 0, 2)), 0)
      << "behind an empty sequence";
  EXPECT_EQ(static_cast<double>(position_component(packed, 0, 0, 4)), 2);
  const std::vector<std::int64_t> sequence_starts{100, 200, 300};
  packed.data = sequence_starts.data();
  EXPECT_EQ(static_cast<double>(position_component(packed, 0, 0, 4)), 302);

  const std::vector<float> floats{0.25f, 1.0f / 3};
  const Positions fractions = Positions::from_floats(std::span<const float>(floats), 1, 1, 2);
  EXPECT_EQ(static_cast<double>(position_component(fractions, 0, 0, 1)), double{1.0f / 3});
}

TEST(Oracle, PaddingAndPlansWithoutRopeCopy) {
  PlanSpec spec = spec_of(2, Pairing::half, {1.0});
  Positions positions = Positions::from_offset(3);
  positions.padding = 3;
  EXPECT_EQ(rotate_one(spec, positions, {1, 2})[0].copied_from, 0);
  positions.padding = 4;
  EXPECT_EQ(rotate_one(spec, positions, {1, 2})[0].copied_from, -1);
  spec.rotates = false;
  EXPECT_EQ(rotate_one(spec, positions, {1, 2})[1].copied_from, 1);
}

}  // namespace
}  // namespace ropewalk::verify
