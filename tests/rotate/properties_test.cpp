// Laws that hold for every rotation, whatever the oracle says.
#include "rotate_fixture.h"
#include "verify/number.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

using namespace testing_support;
using verify::Quad;

const std::vector<std::int64_t>& places() {
  static const std::vector<std::int64_t> list = verify::landmark_positions(Dtype::float32);
  return list;
}
std::int64_t count_of_places() { return static_cast<std::int64_t>(places().size()); }
Positions at_places() { return Positions::from_tokens(std::span<const std::int64_t>(places())); }

/// Each element's error allowance after a second rotation of `middle`, itself the result of a first
/// one whose allowance was the largest of `first` in the same head.
void expect_two_step(const verify::Expectation& first, const verify::Expectation& second,
                     const HostTensor& got, const std::vector<double>& want, double amplitude) {
  const auto channels = static_cast<std::size_t>(got.view().size[kChannel]);
  const std::vector<double> values = values_of(got);
  for (std::size_t row = 0; row < values.size(); row += channels) {
    Quad input_error = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      input_error = std::max(input_error, first.elements[row + c].bound);
    }
    for (std::size_t c = 0; c < channels; ++c) {
      const Quad allowed =
          second.elements[row + c].bound + verify::carried_error(amplitude, input_error);
      ASSERT_LE(std::abs(values[row + c] - want[row + c]), static_cast<double>(allowed))
          << "row " << row / channels << " channel " << c;
    }
  }
}

TEST(Properties, NormIsPreserved) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : kAllPairings) {
      const RotaryPlan plan = make_plan(64, 5e5, 0, pairing);
      const HostTensor in =
          random_tensor(dtype, {1, count_of_places(), 1, 64}, verify::fresh_seed());
      const HostTensor out(dtype, in.view().size);
      rotate_one(plan, in, out, at_places());
      const auto truth = verify::expect(plan.spec(), at_places(), Direction::forward, in);
      const auto x = values_of(in), y = values_of(out);
      for (std::size_t row = 0; row < x.size(); row += 64) {
        double before = 0, after = 0, slack = 0;
        for (std::size_t c = row; c < row + 64; ++c) {
          before += x[c] * x[c];
          after += y[c] * y[c];
          slack += static_cast<double>(truth.elements[c].bound * truth.elements[c].bound);
        }
        EXPECT_LE(std::abs(std::sqrt(after) - std::sqrt(before)), std::sqrt(slack))
            << name_of(dtype) << " position " << places()[row / 64];
      }
    }
  }
}

TEST(Properties, InverseUndoesForward) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : kAllPairings) {
      const RotaryPlan plan = make_plan(66, 5e5, 64, pairing);
      const HostTensor x =
          random_tensor(dtype, {1, count_of_places(), 2, 66}, verify::fresh_seed());
      const HostTensor y(dtype, x.view().size), back(dtype, x.view().size);
      rotate_one(plan, x, y, at_places());
      rotate_one(plan, y, back, at_places(), options_of(Direction::inverse));
      expect_two_step(verify::expect(plan.spec(), at_places(), Direction::forward, x),
                      verify::expect(plan.spec(), at_places(), Direction::inverse, y), back,
                      values_of(x), 1);
    }
  }
}

// Bug25: rotating by a and then by b is rotating by a + b.
TEST(Properties, RotationsCompose_Bug25) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  std::vector<std::int64_t> b(places().size()), sum(places().size());
  for (std::size_t i = 0; i < b.size(); ++i) {
    b[i] = random.integer(-1000000, 1000000);
    if (std::abs(places()[i]) > (std::int64_t{1} << 35))
      b[i] = places()[i] > 0 ? -b[i] * b[i] % 1000 : 7;
    sum[i] = places()[i] + b[i];
  }
  const auto tokens = [](const std::vector<std::int64_t>& list) {
    return Positions::from_tokens(std::span<const std::int64_t>(list));
  };
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : {Pairing::half, Pairing::interleaved}) {
      const RotaryPlan plan = make_plan(64, 5e5, 0, pairing);
      const HostTensor x = random_tensor(dtype, {1, count_of_places(), 1, 64}, seed);
      const HostTensor y(dtype, x.view().size), z(dtype, x.view().size);
      rotate_one(plan, x, y, at_places());
      rotate_one(plan, y, z, tokens(b));
      std::vector<double> want;
      for (const auto& e :
           verify::expect(plan.spec(), tokens(sum), Direction::forward, x).elements) {
        want.push_back(static_cast<double>(e.y));
      }
      expect_two_step(verify::expect(plan.spec(), at_places(), Direction::forward, x),
                      verify::expect(plan.spec(), tokens(b), Direction::forward, y), z, want, 1);
    }
  }
}

// Bug25: a thousand shifts of −1 on float16 keys lose accuracy that one shift of −1000 keeps, so a
// cache must keep the total.
TEST(Properties, OneShiftIsWithinARoundingAThousandAreNot_Bug25) {
  const RotaryPlan plan = make_plan(128);
  const HostTensor key = random_tensor(Dtype::float16, {1, 1, 8, 128}, 17);
  const Positions total = Positions::from_offset(-1000);
  const auto truth = verify::expect(plan.spec(), total, Direction::forward, key);
  const HostTensor once(Dtype::float16, key.view().size), stepwise(Dtype::float16, key.view().size);
  rotate_one(plan, key, once, total);
  verify::copy_elements(key, stepwise);
  for (int i = 0; i < 1000; ++i) rotate_one(plan, stepwise.view(), Positions::from_offset(-1));
  const Comparison one = compare(truth, once);
  EXPECT_TRUE(one.pass()) << one.detail;
  EXPECT_FALSE(compare(truth, stepwise).pass()) << "repeated rounding went unnoticed";
}

// The score of a query at m and a key at n depends on m − n, wherever they stand.
TEST(Properties, ScoresDependOnTheDistanceAloneUpTo2Pow31) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  const RotaryPlan plan = make_plan(128, 5e5);
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    const HostTensor q = random_tensor(dtype, {1, 1, 1, 128}, seed);
    const HostTensor k = random_tensor(dtype, {1, 1, 1, 128}, seed + 1);
    const auto score = [&](std::int64_t m, std::int64_t n, double& slack) {
      const HostTensor rq(dtype, q.view().size), rk(dtype, k.view().size);
      rotate_one(plan, q, rq, Positions::from_offset(m));
      rotate_one(plan, k, rk, Positions::from_offset(n));
      const auto tq = verify::expect(plan.spec(), Positions::from_offset(m), Direction::forward, q);
      const auto tk = verify::expect(plan.spec(), Positions::from_offset(n), Direction::forward, k);
      double sum = 0;
      for (std::int64_t c = 0; c < 128; ++c) {
        const auto at = static_cast<std::size_t>(c);
        sum += rq.at(0, 0, 0, c) * rk.at(0, 0, 0, c);
        slack += static_cast<double>(tq.elements[at].bound) * std::abs(rk.at(0, 0, 0, c)) +
                 static_cast<double>(tk.elements[at].bound) * std::abs(rq.at(0, 0, 0, c));
        slack += 0x1p-50 * std::abs(rq.at(0, 0, 0, c) * rk.at(0, 0, 0, c));  // this sum's own
      }
      return sum;
    };
    for (const std::int64_t distance : {0, 1, 37, 4095}) {
      double base_slack = 0;
      const double base = score(distance, 0, base_slack);
      for (const std::int64_t n : {std::int64_t{1}, std::int64_t{131071}, std::int64_t{1} << 24,
                                   (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31}) {
        double slack = base_slack;
        EXPECT_NEAR(score(n + distance, n, slack), base, 2 * slack) << name_of(dtype) << " n " << n;
      }
    }
  }
}

// Bug5: half(P x) = P interleaved(x), P the deinterleaving permutation; and DeepSeek's way is
// P interleaved(x). Bit for bit, at every kind of position.
TEST(Properties, PairingsAreOneRotationUnderAPermutation_Bug5) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  for (const verify::PositionKind kind : verify::kPositionKinds) {
    // Padding rows are copied, not permuted: the law is about rotated ones.
    if (kind == verify::PositionKind::padded) continue;
    for (const Dtype dtype : kAllDtypes) {
      for (const std::int64_t rotary_dim : {2, 4, 36, 64}) {
        Random random(seed);
        const verify::PositionSet set = verify::make_positions(kind, dtype, random);
        verify::MatrixCase c{.dtype = dtype, .rotary_dim = rotary_dim};
        const auto plan = [&](Pairing pairing) {
          c.pairing = pairing;
          return verify::plan_of(c, set.axes);
        };
        const HostTensor x = random_tensor(dtype, {set.batch, set.tokens, 2, rotary_dim}, seed);
        const auto deinterleaved = [&](const HostTensor& from) {
          HostTensor to(dtype, from.view().size);
          for (std::int64_t channel = 0; channel < rotary_dim; ++channel) {
            TensorView source = from.view(), target = to.view();
            source.size[kChannel] = target.size[kChannel] = 1;
            source.data = verify::element_at(from.view(), {0, 0, 0, channel});
            target.data = verify::element_at(
                to.view(), {0, 0, 0, channel / 2 + (channel % 2) * (rotary_dim / 2)});
            verify::copy_elements(source, target);
          }
          return to;
        };
        const HostTensor inter(dtype, x.view().size), half(dtype, x.view().size),
            inter_to_half(dtype, x.view().size);
        rotate_one(plan(Pairing::interleaved), x, inter, set.positions);
        rotate_one(plan(Pairing::half), deinterleaved(x), half, set.positions);
        rotate_one(plan(Pairing::interleaved_to_half), x, inter_to_half, set.positions);
        Comparison found = compare_bits(half, inter_to_half);
        found.merge(compare_bits(deinterleaved(inter), half));
        EXPECT_TRUE(found.pass()) << name_of(kind) << " " << name_of(dtype) << ": " << found.detail;
      }
    }
  }
}

TEST(Properties, PositionZeroIsTheIdentityUpToTheSignOfZero) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : {Pairing::half, Pairing::interleaved}) {
      for (const std::string& kernel : verify::supported_cpu_kernels()) {
        const HostTensor x =
            random_tensor(dtype, {1, 1, 40, 66}, verify::fresh_seed(), verify::Values::wide);
        const HostTensor y(dtype, x.view().size);
        rotate_one(make_plan(66, 1e4, 64, pairing), x, y, Positions::from_offset(0),
                   options_of(Direction::forward, kernel));
        EXPECT_EQ(values_of(x), values_of(y)) << kernel << " " << name_of(dtype);
      }
    }
  }
}

TEST(Properties, PositionZeroShowsTheAmplitude) {
  PlanSpec spec = make_plan(8).spec();
  spec.amplitude = 1.5;
  const HostTensor x = random_tensor(Dtype::float64, {1, 1, 4, 8}, 1);
  const HostTensor y(Dtype::float64, x.view().size);
  rotate_one(RotaryPlan(spec), x, y, Positions::from_offset(0));
  const auto from = values_of(x), to = values_of(y);
  for (std::size_t i = 0; i < from.size(); ++i) EXPECT_EQ(to[i], 1.5 * from[i]);
}

// Channels outside the window keep every bit, NaN payloads included, in place and out of place.
TEST(Properties, ChannelsOutsideTheWindowKeepTheirBits) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : kAllPairings) {
      PlanSpec spec = make_plan(46, 1e4, 36, pairing).spec();
      spec.window.offset = 5;
      const RotaryPlan plan(spec);
      for (const std::string& kernel : verify::supported_cpu_kernels()) {
        HostTensor x = random_tensor(dtype, {1, 3, 2, 46}, 1, verify::Values::non_finite);
        // A signalling NaN with a payload: any arithmetic would quieten it.
        const std::uint64_t signalling = verify::encode(dtype, __builtin_inf()) | 1;
        for (const std::int64_t channel : {0, 4, 41, 45}) {
          verify::store_bits(dtype, verify::element_at(x.view(), {0, 1, 1, channel}), signalling);
        }
        const HostTensor y(dtype, x.view().size);
        rotate_one(plan, x, y, Positions::from_offset(39001),
                   options_of(Direction::forward, kernel));
        const Comparison found = judge(plan, x, y, Positions::from_offset(39001));
        EXPECT_TRUE(found.pass()) << kernel << " " << name_of(dtype) << ": " << found.detail;
        rotate_one(plan, x.view(), Positions::from_offset(39001),
                   options_of(Direction::forward, kernel));
        for (const std::int64_t channel : {0, 4, 41, 45}) {
          EXPECT_EQ(verify::load_bits(dtype, verify::element_at(x.view(), {0, 1, 1, channel})),
                    signalling);
        }
      }
    }
  }
}

TEST(Properties, APlanThatDoesNotRotateCopiesOrDoesNothing) {
  PlanSpec spec;
  spec.head_dim = 8;
  spec.rotates = false;
  const RotaryPlan plan(spec);
  const HostTensor x = random_tensor(Dtype::bfloat16, {1, 3, 2, 8}, 1, verify::Values::non_finite);
  const HostTensor y(Dtype::bfloat16, x.view().size);
  rotate_one(plan, x, y, Positions::from_offset(77));
  EXPECT_TRUE(compare_bits(x, y, verify::NanRule::same_bits).pass());
  rotate_one(plan, x.view(), Positions::from_offset(77));
  EXPECT_TRUE(compare_bits(x, y, verify::NanRule::same_bits).pass());
}

}  // namespace
}  // namespace ropewalk
