// Odd sizes: vector tails, guard pages, every alignment, head counts that divide nothing.
#include "rotate_fixture.h"
#include "verify/guard_page.h"
#include "verify/layout.h"
#include "verify/number.h"

namespace ropewalk {
namespace {

using namespace testing_support;
using verify::GuardedBuffer;

constexpr std::int64_t kRotaryDims[] = {2,  4,  6,  10, 16,  20,  24,  36,  40, 46,
                                        64, 72, 80, 96, 128, 160, 192, 256, 576};
constexpr std::int64_t kPosition = 39001;

/// Two heads of one token.
std::array<std::int64_t, 4> shape_of(std::int64_t head_dim) { return {1, 1, 2, head_dim}; }

TensorView at_address(void* data, Dtype dtype, std::int64_t head_dim) {
  return bthd(data, dtype, 1, 1, 2, head_dim);
}

class Tails : public ::testing::TestWithParam<std::tuple<Dtype, Pairing>> {};

// Bug17: every rotary dim and head_dim with tails of 0, 1 and 2 channels, for every kernel, with
// the data against an unmapped page on either side, and at every alignment.
TEST_P(Tails, EveryKernelEqualsTheOracleAndScalarUpToTheLastByte_Bug17) {
  const auto [dtype, pairing] = GetParam();
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  const Positions positions = Positions::from_offset(kPosition);
  for (const std::int64_t rotary_dim : kRotaryDims) {
    for (std::int64_t tail = 0; tail <= 2; ++tail) {
      const std::int64_t head_dim = rotary_dim + tail;
      const RotaryPlan plan = make_plan(head_dim, 1e4, rotary_dim, pairing);
      const HostTensor in = random_tensor(dtype, shape_of(head_dim), seed);
      const HostTensor reference(dtype, shape_of(head_dim));
      rotate_one(plan, in, reference, positions, options_of(Direction::forward, "scalar"));
      const Comparison truth = judge(plan, in, reference, positions);
      ASSERT_TRUE(truth.pass()) << "R " << rotary_dim << " D " << head_dim << ": " << truth.detail;
      const std::size_t bytes = in.buffer().bytes().size();
      for (const auto edge : {GuardedBuffer::Edge::begin, GuardedBuffer::Edge::end}) {
        const GuardedBuffer source(bytes, edge);
        const GuardedBuffer target(bytes, edge);
        const TensorView source_view = at_address(source.data(), dtype, head_dim);
        const TensorView target_view = at_address(target.data(), dtype, head_dim);
        for (const std::string& kernel : verify::supported_cpu_kernels()) {
          verify::copy_elements(in, source_view);
          const RotateOptions options = options_of(Direction::forward, kernel);
          rotate_one(plan, source_view, target_view, positions, options);
          Comparison found = compare_bits(reference, target_view);
          rotate_one(plan, source_view, positions, options);
          found.merge(compare_bits(reference, source_view));
          ASSERT_TRUE(found.pass())
              << kernel << " R " << rotary_dim << " D " << head_dim << ": " << found.detail;
        }
      }
    }
  }
}

TEST_P(Tails, EveryElementOffsetWithinTwoCacheLines_Bug17) {
  const auto [dtype, pairing] = GetParam();
  const Positions positions = Positions::from_offset(kPosition);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t rotary_dim : {6, 46, 96}) {
    const std::int64_t head_dim = rotary_dim + 1;
    const RotaryPlan plan = make_plan(head_dim, 1e4, rotary_dim, pairing);
    const HostTensor in = random_tensor(dtype, shape_of(head_dim), 5);
    const HostTensor reference(dtype, shape_of(head_dim));
    rotate_one(plan, in, reference, positions, options_of(Direction::forward, "scalar"));
    for (std::int64_t lead = 0; lead * size < 128; ++lead) {
      const verify::HostBuffer source(dtype, in.view().elements(), lead, 9);
      const verify::HostBuffer target(dtype, in.view().elements(), 2 * lead + 1, 9);
      const TensorView from = at_address(source.data(), dtype, head_dim);
      const TensorView to = at_address(target.data(), dtype, head_dim);
      verify::copy_elements(in, from);
      for (const std::string& kernel : verify::supported_cpu_kernels()) {
        target.poison();
        const auto before = target.snapshot();
        rotate_one(plan, from, to, positions, options_of(Direction::forward, kernel));
        const Comparison found = compare_bits(reference, to);
        ASSERT_TRUE(found.pass()) << kernel << " lead " << lead << ": " << found.detail;
        ASSERT_EQ(target.changed_outside(before, {{to}}), "") << kernel << " lead " << lead;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllDtypesAndPairings, Tails,
                         ::testing::Combine(::testing::ValuesIn(kAllDtypes),
                                            ::testing::ValuesIn(kAllPairings)),
                         [](const auto& instance) {
                           return std::string(name_of(std::get<0>(instance.param))) + "_" +
                                  std::string(name_of(std::get<1>(instance.param)));
                         });

// Bug17: one report's kernel lost a quarter of the norm at R = 192.
TEST(Tails, NormIsPreservedForEveryRotaryDim_Bug17) {
  for (const std::int64_t rotary_dim : kRotaryDims) {
    for (const Pairing pairing : kAllPairings) {
      const RotaryPlan plan = make_plan(rotary_dim, 1e4, 0, pairing);
      const HostTensor in = random_tensor(Dtype::float32, shape_of(rotary_dim), 7);
      const HostTensor out(Dtype::float32, in.view().size);
      const Positions positions = Positions::from_offset(kPosition);
      rotate_one(plan, in, out, positions);
      const auto truth = verify::expect(plan.spec(), positions, Direction::forward, in);
      for (std::int64_t h = 0; h < 2; ++h) {
        double before = 0, after = 0, slack = 0;
        for (std::int64_t c = 0; c < rotary_dim; ++c) {
          before += in.at(0, 0, h, c) * in.at(0, 0, h, c);
          after += out.at(0, 0, h, c) * out.at(0, 0, h, c);
          const auto bound = static_cast<double>(
              truth.elements[static_cast<std::size_t>(h * rotary_dim + c)].bound);
          slack += bound * bound;
        }
        EXPECT_LE(std::abs(std::sqrt(after) - std::sqrt(before)), std::sqrt(slack));
      }
    }
  }
}

// Bug23: head counts that no block size divides, with a canary row behind the last token.
TEST(Tails, HeadCountsThatDivideNothing_Bug23) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  const RotaryPlan plan = make_plan(24, 1e4, 20);
  const Positions positions = Positions::from_offset(8190);
  for (const std::int64_t heads : {1, 3, 5, 6, 7, 12, 63}) {
    for (const std::int64_t key_heads : {1, 3}) {
      for (const std::int64_t tokens : {1, 5, 67}) {
        const std::int64_t row = (heads + key_heads) * 24;
        const verify::HostBuffer buffer(Dtype::bfloat16, (tokens + 1) * row);
        const std::array<std::int64_t, 4> stride{0, row, 24, 1};
        const TensorView q = buffer.view(0, {1, tokens, heads, 24}, stride);
        const TensorView k = buffer.view(heads * 24, {1, tokens, key_heads, 24}, stride);
        Random random(seed);
        random.fill(q);
        random.fill(k);
        auto truth_q = verify::expect(plan.spec(), positions, Direction::forward, q);
        auto truth_k = verify::expect(plan.spec(), positions, Direction::forward, k);
        const auto before = buffer.snapshot();
        const std::array rotations{Rotation::in_place(q), Rotation::in_place(k)};
        rotate(plan, rotations, positions);
        Comparison found = compare(truth_q, q);
        found.merge(compare(truth_k, k));
        ASSERT_TRUE(found.pass()) << heads << "×" << key_heads << ": " << found.detail;
        ASSERT_EQ(buffer.changed_outside(before, {{q, k}}), "");
      }
    }
  }
}

}  // namespace
}  // namespace ropewalk
