// Divisors, merged dimensions and grids.
#include "rotate/cuda/prepare.h"

#include <gtest/gtest.h>

#include <vector>

#include "rotate/cuda/dimensions.h"
#include "verify/random.h"

namespace ropewalk::cuda {
namespace {

constexpr std::int64_t kDim = 128;

/// An address that is never read.
char* somewhere(std::int64_t at) { return reinterpret_cast<char*>(std::intptr_t{1} << 40) + at; }

Rotation out_of_place(TensorView in, std::int64_t distance) {
  TensorView out = in;
  out.data = static_cast<char*>(in.data) + distance;
  return {in, out};
}

Positions packed(std::int64_t sequences) {
  Positions p;
  p.kind = Positions::Kind::packed;
  p.cu_seqlens = somewhere(0);
  p.sequences = sequences;
  return p;
}

std::int64_t blocks(const Rotation& rotation, const Positions& positions, const Policy& policy) {
  const RotaryPlan plan = make_plan(kDim);
  const DevicePointers device;
  const PreparedCall call =
      prepare_call(plan, device, std::span(&rotation, 1), positions, Direction::forward, 90);
  Grid grid;
  if (policy.vectors) {
    VectorArgs args;
    grid = fill_args(call, device, policy, false, args).value();
  } else {
    Args args;
    grid = fill_args(call, device, false, args);
  }
  EXPECT_LE(grid.blocks_y, 65535u);
  return static_cast<std::int64_t>(grid.blocks_x) * grid.blocks_y;
}

TEST(Divisor, IsExactBelowTwoTo31) {
  verify::Random random(1);
  std::vector<std::uint32_t> numbers{
      1, 2, 3, 5, 7, 40, 63, 64, 72, 641, 65535, 65537, (1u << 30) + 1, (1u << 31) - 1};
  for (int i = 0; i < 200; ++i) {
    numbers.push_back(static_cast<std::uint32_t>(random.integer(1, (std::int64_t{1} << 31) - 1)));
  }
  for (const std::uint32_t divisor : numbers) {
    const Divisor d = make_divisor(divisor);
    for (std::uint32_t x : numbers) {
      const std::uint32_t multiple = x / divisor * divisor;
      for (const std::uint32_t y : {x, multiple, multiple == 0 ? 0 : multiple - 1}) {
        ASSERT_EQ(d.quotient(y), y / divisor) << y << " / " << divisor;
      }
    }
  }
}

TEST(Dimensions, ContiguousTokensAndBatchMerge) {
  const Rotation r = Rotation::in_place(bthd(somewhere(0), Dtype::bfloat16, 3, 10, 8, kDim));
  const auto d =
      row_dimensions(r, {.batch = 10, .token = 1, .batch_token = 0, .token_token = 0}, 2, false);
  EXPECT_EQ(d[0].size, 4);  // groups of two heads
  EXPECT_EQ(d[0].in, 2 * kDim * 2);
  EXPECT_EQ(d[1].size, 30);
  EXPECT_EQ(d[1].position, 1);
  EXPECT_EQ(d[2].size, 1);
}

TEST(Dimensions, PositionsThatRepeatKeepTheBatchApart) {
  const Rotation r = Rotation::in_place(bthd(somewhere(0), Dtype::bfloat16, 3, 10, 8, kDim));
  const auto d =
      row_dimensions(r, {.batch = 0, .token = 1, .batch_token = 0, .token_token = 0}, 1, false);
  EXPECT_EQ(d[1].size, 10);
  EXPECT_EQ(d[2].size, 3);
  EXPECT_EQ(d[2].position, 0);
}

TEST(Dimensions, OrderFollowsMemory) {
  const Rotation r = Rotation::in_place(bhtd(somewhere(0), Dtype::float32, 2, 10, 8, kDim));
  const auto d =
      row_dimensions(r, {.batch = 10, .token = 1, .batch_token = 0, .token_token = 0}, 1, false);
  EXPECT_EQ(d[0].size, 10);
  EXPECT_EQ(d[1].size, 8);
  EXPECT_EQ(d[2].size, 2);
  EXPECT_EQ(head_index(d), 1u);
}

TEST(Dimensions, StridesBeyond32BitsAreLeftToTheNarrowPath) {
  TensorView view = bthd(somewhere(0), Dtype::bfloat16, 1, 4, 2, kDim);
  view.stride[kToken] = std::int64_t{1} << 31;
  VectorView filled;
  EXPECT_FALSE(fill_view(row_dimensions(Rotation::in_place(view), {}, 1, false), filled));
}

TEST(Grid, PackedSequencesCostNoMoreBlocksThanTheirTokens) {
  // A published launch: 65 536 tokens in 2 401 sequences made 157 351 936 blocks.
  const Rotation r =
      out_of_place(bthd(somewhere(0), Dtype::bfloat16, 1, 65536, 32, kDim), std::int64_t{1} << 36);
  for (const Policy& policy : {Policy{true, Map::sweep, 4, 4, 64, true}, Policy{}}) {
    const std::int64_t plain = blocks(r, Positions::from_offset(0), policy);
    EXPECT_EQ(blocks(r, packed(2401), policy), plain);
    EXPECT_LE(plain, 65536 * 32);
  }
}

TEST(Grid, MoreRowsThanTwoTo32) {
  const Rotation r =
      out_of_place(bthd(somewhere(0), Dtype::bfloat16, 1, std::int64_t{1} << 30, 32, kDim),
                   std::int64_t{1} << 44);
  EXPECT_GT(blocks(r, Positions::from_offset(0), {}), 0);
}

TEST(Prepare, NeighboursInOneBufferAreOneTensor) {
  const std::int64_t row = 12 * kDim;
  const TensorView q{somewhere(0), Dtype::bfloat16, {1, 5, 8, kDim}, {5 * row, row, kDim, 1}};
  const TensorView k{
      somewhere(8 * kDim * 2), Dtype::bfloat16, {1, 5, 2, kDim}, {5 * row, row, kDim, 1}};
  const std::array rotations{Rotation::in_place(q), Rotation::in_place(k)};
  const PreparedCall call = prepare_call(make_plan(kDim), {}, rotations, Positions::from_offset(0),
                                         Direction::forward, 90);
  EXPECT_EQ(call.count, 1u);
  EXPECT_EQ(call.views[0].in.size[kHead], 10);
}

}  // namespace
}  // namespace ropewalk::cuda
