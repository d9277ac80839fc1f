// Values that public reports give as right, derived with 50 digits.
#include "rotate_fixture.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

using namespace testing_support;

/// One head of four channels through the active kernel, in float64.
std::vector<double> rotated(Pairing pairing, std::array<double, 4> x, Direction direction,
                            double amplitude = 1) {
  PlanSpec spec = make_plan(4, 1e4, 0, pairing).spec();
  spec.amplitude = amplitude;
  const HostTensor tensor(Dtype::float64, {1, 1, 1, 4});
  tensor.assign(x);
  rotate_one(RotaryPlan(spec), tensor.view(), Positions::from_offset(1), options_of(direction));
  return values_of(tensor);
}

/// `want` has six printed decimals; `got` is `scale` times it.
void expect_printed(const std::vector<double>& got, std::array<double, 4> want, double scale = 1) {
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(got[i], scale * want[i], scale * verify::printed_decimals(6)) << "channel " << i;
  }
}

constexpr std::array kX{1.0, 2.0, 3.0, 4.0};

TEST(GoldenValues, PairingVectors_Bug5) {
  expect_printed(rotated(Pairing::half, kX, Direction::forward),
                 {-1.984111, 1.959901, 2.462378, 4.019800});
  expect_printed(rotated(Pairing::interleaved, kX, Direction::forward),
                 {-1.142640, 1.922076, 2.959851, 4.029800});
  // DeepSeek's third way is the interleaved result, deinterleaved.
  expect_printed(rotated(Pairing::interleaved_to_half, kX, Direction::forward),
                 {-1.142640, 2.959851, 1.922076, 4.029800});
}

// Bug2: neither frequencies nor products are computed in the type of the data. Pair 1 of row 1857
// turns by 1044.27 rad; in half precision it would be 1045.
TEST(GoldenValues, AnglesOfHalfPrecisionDataAreNotHalf_Bug2) {
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
    const HostTensor x(dtype, {1, 1, 1, 32});
    std::vector<double> one(32);
    one[1] = 1;
    x.assign(one);
    rotate_one(make_plan(32), x.view(), Positions::from_offset(1857));
    EXPECT_NEAR(x.at(0, 0, 0, 1), 0.3066928098, verify::unit_input_bound(dtype));
  }
}

// Bug21: the gradient of sum(y) is the inverse rotation of ones; with an amplitude, times it.
TEST(GoldenValues, GradientVectors_Bug21) {
  const std::array ones{1.0, 1.0, 1.0, 1.0};
  expect_printed(rotated(Pairing::half, ones, Direction::inverse),
                 {1.381773, 1.009950, -0.301169, 0.989950});
  expect_printed(rotated(Pairing::interleaved, ones, Direction::inverse),
                 {1.381773, -0.301169, 1.009950, 0.989950});
  expect_printed(rotated(Pairing::half, ones, Direction::inverse, 2.0),
                 {1.381773, 1.009950, -0.301169, 0.989950}, 2.0);
}

// Bug21: the directional derivative of a linear map is the map itself, so its adjoint must satisfy
// ⟨R x, g⟩ = ⟨x, Rᵀ g⟩ for every x and g.
TEST(GoldenValues, InverseIsTheAdjoint_Bug21) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  for (const Pairing pairing : kAllPairings) {
    PlanSpec spec = make_plan(20, 1e4, 16, pairing).spec();
    spec.amplitude = 1.25;
    spec.sign = -1;
    const RotaryPlan plan(spec);
    const Positions positions = Positions::from_offset(1000);
    const HostTensor x = random_tensor(Dtype::float64, {2, 3, 2, 20}, seed);
    const HostTensor g = random_tensor(Dtype::float64, {2, 3, 2, 20}, seed + 1);
    const HostTensor y(Dtype::float64, x.view().size);
    const HostTensor dx(Dtype::float64, x.view().size);
    rotate_one(plan, x, y, positions);
    rotate_one(plan, g, dx, positions, options_of(Direction::inverse));
    const auto xs = values_of(x), gs = values_of(g), ys = values_of(y), dxs = values_of(dx);
    double left = 0, right = 0, size = 0;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      left += ys[i] * gs[i];
      right += xs[i] * dxs[i];
      size += std::abs(ys[i] * gs[i]) + std::abs(xs[i] * dxs[i]);
    }
    EXPECT_LE(std::abs(left - right), 2 * verify::kTrigError64 * size) << name_of(pairing);
  }
}

// Bug21: the functional call leaves its input alone, and a second call gives the first's bits.
TEST(GoldenValues, InputIsUnchangedAndASecondCallAgrees_Bug21) {
  const HostTensor x = random_tensor(Dtype::bfloat16, {1, 5, 2, 64}, 3);
  const auto before = x.buffer().snapshot();
  const HostTensor first(Dtype::bfloat16, x.view().size);
  const HostTensor second(Dtype::bfloat16, x.view().size);
  const RotaryPlan plan = make_plan(64);
  rotate_one(plan, x, first, Positions::from_offset(9));
  rotate_one(plan, x, second, Positions::from_offset(9));
  EXPECT_EQ(x.buffer().snapshot(), before);
  EXPECT_TRUE(compare_bits(first, second).pass());
}

// Bug14a: dimensions of size one. Every row and head is the same, none is zero.
TEST(GoldenValues, OnesWithAxesOfSizeOne_Bug14) {
  const HostTensor x(Dtype::float32, {2, 1, 16, 256});
  x.assign(std::vector<double>(2 * 16 * 256, 1.0));
  rotate_one(make_plan(256), x.view(), Positions::from_offset(6));
  const double start[] = {1.23959, 1.40903, 1.35021, 1.11484};
  const double middle[] = {0.68075, 0.12097, -0.42063, -0.87013};
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 16; ++h) {
      for (std::int64_t c = 0; c < 4; ++c) {
        EXPECT_NEAR(x.at(b, 0, h, c), start[c], verify::printed_decimals(5));
        EXPECT_NEAR(x.at(b, 0, h, 128 + c), middle[c], verify::printed_decimals(5));
      }
      for (std::int64_t c = 0; c < 256; ++c) {
        EXPECT_NE(x.at(b, 0, h, c), 0.0);
        EXPECT_EQ(x.at(b, 0, h, c), x.at(0, 0, 0, c));
      }
    }
  }
}

}  // namespace
}  // namespace ropewalk
