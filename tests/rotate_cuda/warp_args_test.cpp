// What the launcher tells the warp kernels, followed row by row: every row of both tensors is
// visited once, with the element of the position array that belongs to it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "ropewalk/cuda.h"
#include "ropewalk/plan.h"
#include "rotate/cuda/dimensions.h"
#include "rotate/cuda/policy_choice.h"
#include "rotate/cuda/prepare.h"
#include "verify/layout.h"

namespace ropewalk::cuda {
namespace {

using verify::Layout;
using verify::QkShape;

constexpr std::int64_t kDim = 128;

/// Offset in, offset out, element of the position array, token number added.
using Row = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

TensorView view_of_shape(Layout layout, const QkShape& shape, std::int64_t heads,
                         std::int64_t gigabyte) {
  char* data = reinterpret_cast<char*>((std::intptr_t{1} << 40) + (gigabyte << 30));
  return layout == Layout::bthd
             ? bthd(data, Dtype::bfloat16, shape.batch, shape.tokens, heads, kDim)
             : bhtd(data, Dtype::bfloat16, shape.batch, shape.tokens, heads, kDim);
}

std::vector<Rotation> rotations_of(Layout in, Layout out, const QkShape& shape) {
  std::vector<Rotation> rotations;
  for (const std::int64_t heads : {shape.query_heads, shape.key_heads}) {
    const auto first = 2 * static_cast<std::int64_t>(rotations.size());
    if (heads == 0) continue;
    rotations.push_back(
        {view_of_shape(in, shape, heads, first), view_of_shape(out, shape, heads, first + 1)});
  }
  return rotations;
}

struct PositionCase {
  const char* name;
  Positions::Kind kind;
  std::int64_t batch_stride, token_stride;
};
constexpr PositionCase kPositions[] = {
    {"offset", Positions::Kind::offset, 0, 0},
    {"per token", Positions::Kind::per_token, -1, 1},  // -1: as many as there are tokens
    {"the same tokens in every batch row", Positions::Kind::per_token, 0, 1},
    {"every second token's", Positions::Kind::per_token, -2, 2},
    {"per batch row", Positions::Kind::per_batch, 1, 0},
};

Positions positions_of(const PositionCase& c, const QkShape& shape) {
  Positions p;
  p.kind = c.kind;
  p.data = c.kind == Positions::Kind::offset ? nullptr : reinterpret_cast<const void*>(64);
  p.start = 7;
  p.batch_stride = c.batch_stride < 0 ? -c.batch_stride * shape.tokens : c.batch_stride;
  p.token_stride = c.token_stride;
  return p;
}

std::vector<Row> expected_rows(const Rotation& rotation, const Positions& p) {
  const PositionStrides strides = position_strides(p);
  const auto& [in, out] = rotation;
  std::vector<Row> rows;
  for (std::int64_t b = 0; b < in.size[kBatch]; ++b) {
    for (std::int64_t t = 0; t < in.size[kToken]; ++t) {
      for (std::int64_t h = 0; h < in.size[kHead]; ++h) {
        const auto bytes = [&](const auto& view) {
          return 2 * (b * view.stride[kBatch] + t * view.stride[kToken] + h * view.stride[kHead]);
        };
        rows.emplace_back(bytes(in), bytes(out), b * strides.batch + t * strides.token,
                          t * strides.token_token);
      }
    }
  }
  std::ranges::sort(rows);
  return rows;
}

/// As the kernels find their rows.
std::vector<Row> visited_rows(const WarpSweepArgs& args, std::size_t i, const Policy& policy,
                              const Grid& grid, std::int64_t of_warp) {
  const std::int64_t warps = policy.threads / 32;
  const bool in_tokens = policy.map == Map::tokens;
  const std::int64_t split = in_tokens ? args.facts & kWarpMostBlocks : args.split;
  std::vector<Row> rows;
  for (std::int64_t y = 0; y < grid.blocks_y; ++y) {
    for (std::int64_t x = i == 0 ? 0 : split; x < (i == 0 ? split : grid.blocks_x); ++x) {
      for (std::int64_t warp = 0; warp < warps; ++warp) {
        const std::int64_t w = (x - (i == 0 ? 0 : split)) * warps + warp;
        std::int64_t token = y;
        std::int64_t group = w;
        std::int64_t index = y;
        std::int64_t batch = 0;
        if (!in_tokens) {
          const WarpView& view = args.view[i];
          if (w / view.inner >= view.outer) continue;
          const bool heads_inside = (args.facts & kWarpHeadsInside) != 0;
          token = heads_inside ? w / view.inner : w % view.inner;
          group = heads_inside ? w % view.inner : w / view.inner;
          batch = (args.facts & kWarpBatches) != 0 ? y : 0;
          index = token * args.position_token + batch * args.position_batch;
        }
        if ((args.facts & (kWarpInt32 | kWarpInt64)) == 0) index = 0;
        for (std::int64_t head = group * of_warp; head < (group + 1) * of_warp; ++head) {
          rows.emplace_back(
              token * args.in_token[i] + head * args.in_head + batch * args.view[i].in_batch,
              token * args.out_token[i] + head * args.out_head + batch * args.view[i].out_batch,
              index, (args.facts & kWarpAddToken) != 0 ? token : 0);
        }
      }
    }
  }
  std::ranges::sort(rows);
  return rows;
}

std::vector<Policy> warp_policies(const Call& call) {
  std::vector<Policy> all;
  for (const std::string& name : policy_names()) {
    const Policy policy = policy_from_name(name);
    if (policy.warp && is_possible(call, policy)) all.push_back(policy);
  }
  return all;
}

TEST(WarpArgs, EveryRowIsVisitedOnceWithItsPosition) {
  const RotaryPlan plan = make_plan(kDim);
  const std::vector<QkShape> shapes{{1, 1, 32, 8, 0},  {2, 37, 8, 4, 0}, {1, 19, 28, 4, 0},
                                    {3, 1, 14, 2, 0},  {1, 5, 5, 1, 0},  {2, 3, 4, 0, 0},
                                    {1, 130, 1, 1, 0}, {3, 2, 16, 8, 0}};
  std::size_t policies = 0;
  for (const QkShape& shape : shapes) {
    for (const Layout in : {Layout::bthd, Layout::bhtd}) {
      for (const Layout out : {Layout::bthd, Layout::bhtd}) {
        const std::vector<Rotation> rotations = rotations_of(in, out, shape);
        for (const PositionCase& c : kPositions) {
          const Positions positions = positions_of(c, shape);
          const PreparedCall call =
              prepare_call(plan, {}, rotations, positions, Direction::forward, 90);
          SCOPED_TRACE(fmt::format("{} to {} {}x{} tokens {}+{} heads, positions {}", name_of(in),
                                   name_of(out), shape.batch, shape.tokens, shape.query_heads,
                                   shape.key_heads, c.name));
          for (const Policy& policy : warp_policies(call.facts)) {
            WarpSweepArgs args;
            const auto grid = fill_args(call, {}, policy, false, args);
            ASSERT_TRUE(grid.has_value()) << to_string(policy);
            for (std::size_t i = 0; i < call.count; ++i) {
              ASSERT_EQ(visited_rows(args, i, policy, *grid, heads_of_warp(call.facts, policy)),
                        expected_rows(call.views[i], positions))
                  << to_string(policy) << " tensor " << i;
            }
            ++policies;
          }
        }
      }
    }
  }
  EXPECT_GT(policies, 300u);
}

TEST(WarpArgs, HotArgumentsEndWithTheFirstLine) {
  // Kernel arguments begin 16 bytes into a line of 64 bytes of constant memory (compute capability
  // 9.0).
  EXPECT_EQ(offsetof(WarpArgs, facts) + sizeof(WarpArgs::facts), 48u);
}

TEST(WarpArgs, TensorsWithDifferentHeadStridesAreLeftToOthers) {
  const RotaryPlan plan = make_plan(kDim);
  std::vector<Rotation> rotations = rotations_of(Layout::bthd, Layout::bthd, {1, 4, 8, 4, 0});
  rotations[1].in.stride[kHead] *= 2;
  rotations[1].in.stride[kToken] *= 2;
  const PreparedCall call =
      prepare_call(plan, {}, rotations, Positions::from_offset(0), Direction::forward, 90);
  EXPECT_TRUE(warp_policies(call.facts).empty());
}

TEST(WarpArgs, StridesBeyond32BitsAreLeftToOthers) {
  const RotaryPlan plan = make_plan(kDim);
  std::vector<Rotation> rotations = rotations_of(Layout::bthd, Layout::bthd, {1, 4, 8, 0, 0});
  rotations[0].in.stride[kToken] = std::int64_t{1} << 31;
  const PreparedCall call =
      prepare_call(plan, {}, rotations, Positions::from_offset(0), Direction::forward, 90);
  for (const Policy& policy : warp_policies(call.facts)) {
    WarpSweepArgs args;
    EXPECT_FALSE(fill_args(call, {}, policy, false, args).has_value());
  }
}

}  // namespace
}  // namespace ropewalk::cuda
