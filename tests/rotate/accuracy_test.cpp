// The error of cosine and sine alone, at every size of position.
#include <cstdio>

#include "rotate_fixture.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

using namespace testing_support;

/// Rotating (1, 0) by a half pairing shows the computed cosine and sine themselves, unrounded for
/// float32 and float64: y0 = fma(1, c, −0·s) = c, y1 = fma(0, c, 1·s) = s.
class UnitPairs {
 public:
  UnitPairs(const RotaryPlan& plan, Dtype dtype, std::vector<std::int64_t> tokens)
      : plan_(plan),
        tokens_(std::move(tokens)),
        out_(dtype, {1, static_cast<std::int64_t>(tokens_.size()), 1, plan.head_dim()}) {
    std::vector<double> units;
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      for (std::int64_t c = 0; c < plan.head_dim(); ++c) units.push_back(c < plan.pairs() ? 1 : 0);
    }
    out_.assign(units);
  }

  void rotate_with(std::string_view kernel) {
    rotate_one(plan_, out_.view(), Positions::from_tokens(std::span<const std::int64_t>(tokens_)),
               options_of(Direction::forward, kernel));
  }
  [[nodiscard]] double cosine(std::size_t token, std::int64_t pair) const {
    return out_.at(0, static_cast<std::int64_t>(token), 0, pair);
  }
  [[nodiscard]] double sine(std::size_t token, std::int64_t pair) const {
    return out_.at(0, static_cast<std::int64_t>(token), 0, plan_.pairs() + pair);
  }
  /// The largest error of a cosine or sine, and where.
  [[nodiscard]] double worst(std::string& where) const {
    double worst = 0;
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      for (std::int64_t i = 0; i < plan_.pairs(); ++i) {
        const double omega = plan_.frequencies()[static_cast<std::size_t>(i)];
        const verify::CosSin truth =
            verify::exact_cos_sin(static_cast<verify::Quad>(tokens_[t]), omega);
        const double error = static_cast<double>(std::max(verify::magnitude(cosine(t, i) - truth.c),
                                                          verify::magnitude(sine(t, i) - truth.s)));
        if (!(error <= worst)) {
          worst = error;
          where = "position " + std::to_string(tokens_[t]) + ", pair " + std::to_string(i);
        }
      }
    }
    return worst;
  }

 private:
  RotaryPlan plan_;
  std::vector<std::int64_t> tokens_;
  HostTensor out_;
};

// Bug4: accuracy at the trained limit and far beyond, not only near zero.
TEST(Accuracy, CosineAndSineStayWithinTheStatedBoundAtEveryPosition_Bug4) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    Random random(seed);
    std::vector<std::int64_t> tokens = verify::landmark_positions(dtype);
    for (const std::int64_t p : {40, 2000, 16000, 48040, 131071, 1048575}) tokens.push_back(p);
    const int bits = dtype == Dtype::float64 ? 53 : 36;
    for (int b = 1; b <= bits; ++b) {
      for (int n = 0; n < 8; ++n) {
        const std::int64_t limit = (std::int64_t{1} << b) - 1;
        tokens.push_back(random.integer(-limit, limit));
      }
    }
    for (const double base : {1e4, 5e5, 100.0}) {
      for (const std::string& kernel : verify::supported_cpu_kernels()) {
        UnitPairs units(make_plan(128, base), dtype, tokens);
        units.rotate_with(kernel);
        std::string where;
        const double worst = units.worst(where);
        EXPECT_LE(worst, verify::trig_error(dtype))
            << kernel << " " << name_of(dtype) << " at " << where;
        std::printf("%s %s base %g: |Δcos|, |Δsin| ≤ %.3g (bound %.3g) at %s\n", kernel.c_str(),
                    std::string(name_of(dtype)).c_str(), base, worst, verify::trig_error(dtype),
                    where.c_str());
      }
    }
  }
}

// Bug4: the values a report gives at 48040 and 131071, R = 128, base 5e5.
TEST(Accuracy, ValuesAtTheTrainedLimit_Bug4) {
  for (const std::string& kernel : verify::supported_cpu_kernels()) {
    UnitPairs units(make_plan(128, 5e5), Dtype::float32, {40, 2000, 16000, 48040, 131071, 1048575});
    units.rotate_with(kernel);
    EXPECT_NEAR(units.cosine(3, 0), 0.329654534247, verify::kTrigError32);
    EXPECT_NEAR(units.cosine(4, 0), -0.817983499388, verify::kTrigError32);
  }
}

// Bug1: integer positions stay integers. Through bfloat16 these would be 256, 15936, 65536, 131072.
TEST(Accuracy, PositionsAreNotRoundedToTheDataType_Bug1) {
  const std::vector<std::int64_t> tokens{257, 15962, 65535, 131071};
  UnitPairs units(make_plan(128, 1e6), Dtype::float32, tokens);
  units.rotate_with({});
  const double cosines[] = {0.819305529145, -0.908015901251, 0.192344018606, -0.817983499388};
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_NEAR(units.cosine(t, 0), cosines[t], verify::kTrigError32) << tokens[t];
  }
  EXPECT_NEAR(units.sine(1, 0), 0.418935702794, verify::kTrigError32);
  EXPECT_NEAR(units.sine(3, 0), -0.575241683755, verify::kTrigError32);

  const HostTensor in = random_tensor(Dtype::bfloat16, {1, 4, 2, 128}, 1);
  const HostTensor out(Dtype::bfloat16, in.view().size);
  const Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  const RotaryPlan plan = make_plan(128, 1e6);
  rotate_one(plan, in, out, positions);
  const Comparison found = judge(plan, in, out, positions);
  EXPECT_TRUE(found.pass()) << found.detail;
}

// Bug1: only 1281 distinct bfloat16 values exist in 0 … 65535, so all rows must differ.
TEST(Accuracy, AllOf65536PositionsDiffer_Bug1) {
  std::vector<std::int64_t> tokens(65536);
  for (std::size_t t = 0; t < tokens.size(); ++t) tokens[t] = static_cast<std::int64_t>(t);
  UnitPairs units(make_plan(4, 1e4), Dtype::float32, tokens);
  units.rotate_with({});
  std::vector<std::array<double, 4>> rows;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    rows.push_back({units.cosine(t, 0), units.sine(t, 0), units.cosine(t, 1), units.sine(t, 1)});
  }
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end());
}

}  // namespace
}  // namespace ropewalk
