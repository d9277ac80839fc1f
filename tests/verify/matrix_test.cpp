// The matrix must catch backends that are wrong in the ways implementations have been wrong.
#include "verify/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "verify/compare.h"
#include "verify/number.h"
#include "verify/oracle.h"

namespace ropewalk::verify {
namespace {

/// A correct and slow backend: the oracle, rounded once.
void rotate_by_oracle(const PlanSpec& spec, std::span<const Rotation> rotations,
                      const Positions& positions, Direction direction) {
  for (const Rotation& rotation : rotations) {
    const Expectation image = expect(spec, positions, direction, rotation.in);
    std::size_t next = 0;
    for_each_index(rotation.out.size, [&](const std::array<std::int64_t, 4>& at) {
      const auto& e = image.elements[next++];
      store_bits(image.dtype, element_at(rotation.out, at),
                 e.copied ? e.copied_bits : encode(image.dtype, e.y));
    });
  }
}

using Fault = std::function<void(PlanSpec&, Positions&, Direction&)>;

Backend oracle_backend(Fault fault = {}) {
  return [fault](const RotaryPlan& plan, std::span<const Rotation> rotations,
                 const Positions& positions, Direction direction, std::string_view) {
    PlanSpec spec = plan.spec();
    Positions where = positions;
    if (fault) fault(spec, where, direction);
    rotate_by_oracle(spec, rotations, where, direction);
  };
}

const std::vector<std::string> kOne{"oracle"};

std::vector<CaseRecord> run(const MatrixCase& c, const Backend& backend) {
  return run_case(c, backend, kOne);
}

TEST(Matrix, TheOracleItselfPassesEveryQuickCase) {
  const std::uint64_t seed = fresh_seed();
  SCOPED_TRACE(seed);
  std::int64_t calls = 0;
  MatrixOptions options{
      .size = MatrixSize::quick, .kernels = kOne, .seed = seed, .threads = 0, .progress = {}};
  options.progress = [&](std::span<const CaseRecord>, std::int64_t done, std::int64_t total) {
    EXPECT_EQ(done, ++calls);
    EXPECT_LE(done, total);
  };
  for (const CaseRecord& record : run_matrix(oracle_backend(), options)) {
    ASSERT_TRUE(record.pass) << record.detail;
    EXPECT_GT(record.elements, 0);
  }
  EXPECT_EQ(static_cast<std::size_t>(calls), matrix_cases(MatrixSize::quick, seed).size());
}

TEST(Matrix, ThreadsChangeNeitherRecordsNorTheirOrder) {
  const auto all = matrix_cases(MatrixSize::quick, fresh_seed());
  const auto cases = std::span(all).first(12);
  const auto alone = run_cases(cases, oracle_backend(), kOne, 1);
  const auto together = run_cases(cases, oracle_backend(), kOne, 3);
  ASSERT_EQ(alone.size(), cases.size());
  ASSERT_EQ(together.size(), cases.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(to_string(alone[i].test_case), to_string(together[i].test_case));
    EXPECT_EQ(alone[i].hash, together[i].hash);
  }
}

TEST(Matrix, WhatACaseThrowsComesOut) {
  const auto cases = matrix_cases(MatrixSize::quick, fresh_seed());
  std::int64_t calls = 0;
  const MatrixProgress stop = [&](std::span<const CaseRecord>, std::int64_t, std::int64_t) {
    if (++calls == 5) throw std::runtime_error("enough");
  };
  EXPECT_THROW((void)run_cases(cases, oracle_backend(), kOne, 3, stop), std::runtime_error);
  EXPECT_LT(calls, 20);
}

TEST(Matrix, QuickVisitsEveryDtypePairingLayoutPositionKindAndRotaryDim) {
  std::set<int> dtypes, pairings, layouts, kinds, variants, places, directions;
  std::set<std::int64_t> dims;
  for (const MatrixCase& c : matrix_cases(MatrixSize::quick, fresh_seed())) {
    dtypes.insert(static_cast<int>(c.dtype));
    pairings.insert(static_cast<int>(c.pairing));
    layouts.insert(static_cast<int>(c.layout));
    kinds.insert(static_cast<int>(c.positions));
    variants.insert(static_cast<int>(c.variant));
    places.insert(c.in_place);
    directions.insert(static_cast<int>(c.direction));
    dims.insert(c.rotary_dim);
  }
  EXPECT_EQ(dtypes.size(), 4u);
  EXPECT_EQ(pairings.size(), 3u);
  EXPECT_EQ(layouts.size(), kLayouts.size());
  EXPECT_EQ(kinds.size(), kPositionKinds.size());
  EXPECT_EQ(variants.size(), kPlanVariants.size());
  EXPECT_EQ(places.size(), 2u);
  EXPECT_EQ(directions.size(), 2u);
  EXPECT_EQ(dims.size(), 19u);
}

TEST(Matrix, PositionSetsHoldTheLandmarks) {
  Random random(1);
  const PositionSet set = make_positions(PositionKind::tokens_int64, Dtype::bfloat16, random);
  for (const std::int64_t p :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{499}, std::int64_t{4095},
        std::int64_t{8191}, std::int64_t{39001}, std::int64_t{131071}, std::int64_t{1} << 20,
        (std::int64_t{1} << 24) - 1, (std::int64_t{1} << 24) + 1, (std::int64_t{1} << 31) - 1,
        std::int64_t{1} << 35, std::int64_t{-1}, std::int64_t{-131071}}) {
    EXPECT_NE(std::ranges::find(set.int64s, p), set.int64s.end()) << p;
  }
}

TEST(Matrix, CatchesAFault) {
  const MatrixCase plain{.dtype = Dtype::float32, .rotary_dim = 16, .seed = 1};
  ASSERT_TRUE(run(plain, oracle_backend()).front().pass);
  const std::vector<std::pair<const char*, Fault>> faults{
      {"pairing", [](PlanSpec& s, Positions&, Direction&) { s.pairing = Pairing::interleaved; }},
      {"direction", [](PlanSpec&, Positions&, Direction& d) { d = Direction::inverse; }},
      {"sign", [](PlanSpec& s, Positions&, Direction&) { s.sign = -s.sign; }},
      {"fp32 frequencies",
       [](PlanSpec& s, Positions&, Direction&) {
         for (double& w : s.frequencies) w = static_cast<double>(static_cast<float>(w));
       }},
      {"amplitude", [](PlanSpec& s, Positions&, Direction&) { s.amplitude = 1.000001; }},
      {"padding", [](PlanSpec&, Positions& p, Direction&) { p.padding = 131071; }},
  };
  for (const auto& [name, fault] : faults) {
    EXPECT_FALSE(run(plain, oracle_backend(fault)).front().pass) << name;
  }
}

TEST(Matrix, CatchesAWriteOutsideTheOutput) {
  for (const Layout layout : {Layout::channel_stride_two, Layout::packed_qkv}) {
    for (const bool in_place : {false, true}) {
      const MatrixCase c{.layout = layout, .in_place = in_place, .rotary_dim = 16, .seed = 2};
      const Backend stray = [](const RotaryPlan& plan, std::span<const Rotation> rotations,
                               const Positions& positions, Direction direction, std::string_view) {
        rotate_by_oracle(plan.spec(), rotations, positions, direction);
        // The v heads behind k, or the gap behind its first channel.
        const TensorView& k = rotations[1].out;
        const auto step = k.stride[kChannel] == 2 ? 1 : k.size[kHead] * k.stride[kHead];
        static_cast<float*>(k.data)[step] = 1.0f;
      };
      EXPECT_FALSE(run(c, stray).front().pass) << name_of(layout);
    }
  }
}

TEST(Matrix, CatchesAChangedInputAndAnUntouchedOutput) {
  const MatrixCase c{.rotary_dim = 16, .seed = 3};
  const Backend in_place_anyway = [](const RotaryPlan& plan, std::span<const Rotation> rotations,
                                     const Positions& positions, Direction direction,
                                     std::string_view) {
    rotate_by_oracle(plan.spec(), rotations, positions, direction);
    *static_cast<float*>(const_cast<void*>(rotations[0].in.data)) = 1.0f;
  };
  EXPECT_FALSE(run(c, in_place_anyway).front().pass);
  const Backend idle = [](const RotaryPlan&, std::span<const Rotation>, const Positions&, Direction,
                          std::string_view) {};
  EXPECT_FALSE(run(c, idle).front().pass);
  const Backend only_q = [](const RotaryPlan& plan, std::span<const Rotation> rotations,
                            const Positions& positions, Direction direction, std::string_view) {
    rotate_by_oracle(plan.spec(), rotations.first(1), positions, direction);
  };
  EXPECT_FALSE(run(c, only_q).front().pass);
}

TEST(Matrix, CatchesThrowsAndKernelsThatDisagree) {
  const MatrixCase c{.dtype = Dtype::bfloat16, .rotary_dim = 16, .seed = 4};
  const Backend throws = [](const RotaryPlan&, std::span<const Rotation>, const Positions&,
                            Direction, std::string_view) { throw std::runtime_error("no device"); };
  const auto thrown = run(c, throws);
  EXPECT_FALSE(thrown.front().pass);
  EXPECT_NE(thrown.front().detail.find("no device"), std::string::npos);

  // One unit in the last place at position 0 is within the bound; only the hash sees it.
  const MatrixCase close{.dtype = Dtype::float32, .rotary_dim = 2, .seed = 5};
  const Backend by_name = [](const RotaryPlan& plan, std::span<const Rotation> rotations,
                             const Positions& positions, Direction direction,
                             std::string_view kernel) {
    rotate_by_oracle(plan.spec(), rotations, positions, direction);
    if (kernel != "b") return;
    auto* first = static_cast<float*>(rotations[0].out.data);
    *first = std::nextafter(*first, 0.0f);
  };
  const std::vector<std::string> two{"a", "b"};
  const auto records = run_case(close, by_name, two);
  EXPECT_TRUE(records[0].pass) << records[0].detail;
  EXPECT_FALSE(records[1].pass);
  EXPECT_NE(records[1].detail.find("other bits"), std::string::npos) << records[1].detail;
}

}  // namespace
}  // namespace ropewalk::verify
