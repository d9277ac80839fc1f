// Rotating by a table: its rows bound the positions, its exact form equals the table-free path.
#include "rotate_fixture.h"

#include "ropewalk/table.h"

namespace ropewalk {
namespace {

using namespace testing_support;
using Shape = std::array<std::int64_t, 4>;

void expect_refused(const RotaryTable& table, const Positions& positions,
                    const std::string& position, const Shape& shape) {
  const HostTensor in = random_tensor(Dtype::float32, shape, 9);
  const HostTensor out(Dtype::float32, shape);
  const auto before = out.buffer().snapshot();
  const std::array rotations{Rotation{in, out}};
  expect_error(ErrorCode::bad_position, {position, "8"},
               [&] { rotate(table, rotations, positions); });
  EXPECT_EQ(out.buffer().snapshot(), before) << "written before the refusal";
}

// Bug16: a table of eight rows. Nothing wraps, clamps or truncates; int32 and int64 agree.
TEST(TablePositions, OutsideTheTableIsAnErrorThatNamesPositionAndLimit_Bug16) {
  const RotaryTable table(make_plan(8), 8, Dtype::float32);
  const std::int64_t two_31 = std::int64_t{1} << 31;
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{8}, two_31, -two_31, 2 * two_31}) {
    const std::vector<std::int64_t> tokens{3, bad};
    expect_refused(table, Positions::from_tokens(std::span<const std::int64_t>(tokens)),
                   std::to_string(bad), {1, 2, 2, 8});
    expect_refused(table, Positions::from_batch_offsets(std::span<const std::int64_t>(tokens)),
                   std::to_string(bad), {2, 1, 2, 8});
  }
  for (const std::int32_t bad : {-1, 8, std::numeric_limits<std::int32_t>::min()}) {
    const std::vector<std::int32_t> tokens{3, bad};
    expect_refused(table, Positions::from_tokens(std::span<const std::int32_t>(tokens)),
                   std::to_string(bad), {1, 2, 2, 8});
  }
  expect_refused(table, Positions::from_offset(7), "8", {1, 2, 2, 8});
  expect_refused(table, Positions::from_offset(8), "8", {1, 1, 2, 8});
  const std::vector<std::int32_t> cu{0, 9};
  expect_refused(table, Positions::from_cu_seqlens(std::span<const std::int32_t>(cu)), "8",
                 {1, 9, 2, 8});
}

TEST(TablePositions, FloatPositionsAndOtherDtypesAreRefused_Bug16) {
  const RotaryTable table(make_plan(8), 8, Dtype::float32);
  const std::vector<float> floats{1, 2};
  const HostTensor x = random_tensor(Dtype::float32, {1, 2, 2, 8}, 1);
  const std::array rotations{Rotation::in_place(x)};
  expect_error(ErrorCode::invalid_argument, {"positions"}, [&] {
    rotate(table, rotations, Positions::from_floats(std::span<const float>(floats), 1, 1, 2));
  });
  const HostTensor half = random_tensor(Dtype::bfloat16, {1, 2, 2, 8}, 1);
  const std::array wrong_dtype{Rotation::in_place(half)};
  expect_error(ErrorCode::invalid_argument, {"table", "bfloat16"},
               [&] { rotate(table, wrong_dtype, Positions::from_offset(0)); });
}

// Bug16: int32 and int64 positions give the same bits; the exact table those of the free path.
TEST(TablePositions, ExactTableEqualsTheTableFreePath_Bug16) {
  const std::vector<std::int64_t> tokens{0, 1, 7, 499, 1023, 1000, 0};
  const std::vector<std::int32_t> tokens32(tokens.begin(), tokens.end());
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : kAllPairings) {
      PlanSpec spec = make_plan(38, 1e4, 36, pairing).spec();
      spec.amplitude = 1.2772588722239781;
      spec.sign = -1;
      const RotaryPlan plan(spec);
      const RotaryTable table(plan, 1024, dtype);
      const HostTensor in = random_tensor(dtype, {1, 7, 2, 38}, 9);
      for (const Direction direction : {Direction::forward, Direction::inverse}) {
        for (const std::string& kernel : verify::supported_cpu_kernels()) {
          const HostTensor want(dtype, in.view().size), got(dtype, in.view().size),
              got32(dtype, in.view().size);
          const RotateOptions options = options_of(direction, kernel);
          const Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
          rotate_one(plan, in, want, positions, options);
          const std::array to_got{Rotation{in, got}};
          const std::array to_got32{Rotation{in, got32}};
          rotate(table, to_got, positions, options);
          rotate(table, to_got32, Positions::from_tokens(std::span<const std::int32_t>(tokens32)),
                 options);
          Comparison found = compare_bits(want, got);
          found.merge(compare_bits(want, got32));
          EXPECT_TRUE(found.pass()) << kernel << " " << name_of(dtype) << ": " << found.detail;
        }
      }
    }
  }
}

// Bug16: without a table every non-negative position of the report is fine.
TEST(TablePositions, WithoutATableTheyAreAllValid_Bug16) {
  const std::vector<std::int64_t> tokens{8, std::int64_t{1} << 31, std::int64_t{1} << 32, -1};
  const Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  const RotaryPlan plan = make_plan(8);
  const HostTensor in = random_tensor(Dtype::float32, {1, 4, 2, 8}, 9);
  const HostTensor out(Dtype::float32, in.view().size);
  rotate_one(plan, in, out, positions);
  const Comparison found = judge(plan, in, out, positions);
  EXPECT_TRUE(found.pass()) << found.detail;
}

// A table for chosen positions: memory follows their number, not the largest of them.
TEST(TableOfPositions, HasTheRowsOfTheLongTable) {
  const std::vector<std::int64_t> chosen{700, 3, 0, 1023, 3};
  for (const Arithmetic arithmetic :
       {Arithmetic::exact, Arithmetic::parity_p0, Arithmetic::parity_p2, Arithmetic::parity_p4}) {
    PlanSpec spec = make_plan(38, 1e4, 36).spec();
    spec.arithmetic = arithmetic;
    spec.amplitude = 1.2772588722239781;
    const RotaryPlan plan(spec);
    for (const Dtype dtype : kAllDtypes) {
      const RotaryTable table(plan, chosen, dtype);
      const RotaryTable all(plan, 1024, dtype);
      ASSERT_EQ(table.rows(), 5);
      ASSERT_EQ(table.is_double(), all.is_double());
      const auto pairs = static_cast<std::size_t>(plan.pairs());
      const auto same_row = [&](const auto& some, const auto& every, std::size_t row) {
        const auto at = static_cast<std::size_t>(chosen[row]);
        return std::ranges::equal(some.subspan(row * pairs, pairs),
                                  every.subspan(at * pairs, pairs));
      };
      for (std::size_t row = 0; row < chosen.size(); ++row) {
        const bool same = table.is_double() ? same_row(table.cos64(), all.cos64(), row) &&
                                                  same_row(table.sin64(), all.sin64(), row)
                                            : same_row(table.cos(), all.cos(), row) &&
                                                  same_row(table.sin(), all.sin(), row);
        EXPECT_TRUE(same) << name_of(arithmetic) << " " << name_of(dtype) << " row " << row;
      }
    }
  }
}

TEST(TableOfPositions, FarAndNegativeOnesEqualTheTableFreePath) {
  const std::vector<std::int64_t> far{(std::int64_t{1} << 36) - 1, -131071, (1 << 24) + 1, -1};
  const std::vector<std::int64_t> rows{2, 0, 3, 1, 0};
  std::vector<std::int64_t> tokens;
  for (const std::int64_t row : rows) tokens.push_back(far[static_cast<std::size_t>(row)]);
  const RotaryPlan plan = make_plan(38, 1e4, 36);
  for (const Dtype dtype : kAllDtypes) {
    const HostTensor in = random_tensor(dtype, {1, 5, 2, 38}, 9);
    const HostTensor want(dtype, in.view().size), got(dtype, in.view().size);
    rotate_one(plan, in, want, Positions::from_tokens(std::span<const std::int64_t>(tokens)));
    const std::array rotations{Rotation{in, got}};
    rotate(RotaryTable(plan, far, dtype), rotations,
           Positions::from_tokens(std::span<const std::int64_t>(rows)));
    const Comparison found = compare_bits(want, got);
    EXPECT_TRUE(found.pass()) << name_of(dtype) << ": " << found.detail;
  }
}

TEST(TableOfPositions, ImpossiblePositionsAreRefused) {
  const std::int64_t limit = std::int64_t{1} << 36;
  for (const std::int64_t bad : {limit, -limit, std::int64_t{1} << 40}) {
    const std::vector<std::int64_t> positions{1, bad};
    expect_error(ErrorCode::bad_position, {"positions", std::to_string(bad), "2^36"},
                 [&] { (void)RotaryTable(make_plan(8), positions, Dtype::bfloat16); });
  }
  const std::vector<std::int64_t> wide{limit};
  EXPECT_EQ(RotaryTable(make_plan(8), wide, Dtype::float64).rows(), 1);
  expect_error(ErrorCode::invalid_argument, {"rows", "0"}, [] {
    (void)RotaryTable(make_plan(8), std::span<const std::int64_t>(), Dtype::float32);
  });
}

TEST(TablePositions, PaddingMayLieOutsideTheTable) {
  const RotaryTable table(make_plan(8), 8, Dtype::float32);
  const std::vector<std::int64_t> tokens{3, -1};
  Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  positions.padding = -1;
  const HostTensor in = random_tensor(Dtype::float32, {1, 2, 2, 8}, 9);
  const HostTensor out(Dtype::float32, in.view().size);
  const std::array rotations{Rotation{in, out}};
  rotate(table, rotations, positions);
  const Comparison found = judge(table.plan(), in, out, positions);
  EXPECT_TRUE(found.pass()) << found.detail;
}

}  // namespace
}  // namespace ropewalk
