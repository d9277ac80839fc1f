// What the launcher tells the vector kernels, followed address by address: every access is aligned
// to its width, and every row is visited once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ropewalk/cuda.h"
#include "ropewalk/plan.h"
#include "rotate/cuda/policy.h"
#include "rotate/cuda/policy_choice.h"
#include "rotate/cuda/prepare.h"
#include "verify/layout.h"

namespace ropewalk::cuda {
namespace {

using verify::Layout;

struct Window {
  std::int64_t head_dim, rotary_dim, offset;
};
constexpr Window kWindows[] = {{66, 64, 0},   {66, 64, 2},   {34, 32, 0}, {34, 32, 2}, {80, 64, 8},
                               {130, 128, 0}, {130, 128, 2}, {65, 64, 1}, {128, 64, 0}};
constexpr verify::QkShape kRows[] = {
    {2, 37, 6, 2, 0}, {1, 19, 5, 1, 0}, {3, 2, 7, 3, 0}, {1, 1, 6, 2, 0}, {2, 5, 8, 4, 0}};

/// An address that is never read, `at` bytes after a multiple of 16.
TensorView view_of_shape(Layout layout, Dtype dtype, std::int64_t batch, std::int64_t tokens,
                         std::int64_t heads, std::int64_t head_dim, std::int64_t at) {
  char* data = reinterpret_cast<char*>(std::intptr_t{1} << 40) + at;
  return layout == Layout::bthd ? bthd(data, dtype, batch, tokens, heads, head_dim)
                                : bhtd(data, dtype, batch, tokens, heads, head_dim);
}

/// Where the chunks of the window start, in bytes from its first channel, and their width.
std::vector<std::int64_t> starts(const Call& call, const Policy& policy, Order order,
                                 std::int64_t size, std::int64_t& bytes) {
  const std::int64_t of_thread = 2 * policy.pairs * size;
  const bool in_one_piece = policy.full_row || order == Order::interleaved;
  bytes = in_one_piece ? std::min<std::int64_t>(of_thread, 16) : of_thread / 2;
  std::vector<std::int64_t> all;
  for (std::int64_t pair = 0; pair < call.pairs; pair += policy.pairs) {
    if (in_one_piece) {
      for (std::int64_t b = 0; b < of_thread; b += bytes) all.push_back(2 * pair * size + b);
    } else {
      const std::int64_t before = pair / call.block_pairs * call.block_pairs;
      all.push_back((pair + before) * size);
      all.push_back((pair + before + call.block_pairs) * size);
    }
  }
  return all;
}

/// Offsets in bytes of all rows of a view.
std::vector<std::int64_t> rows_of(const auto& view) {
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  std::vector<std::int64_t> rows;
  for (std::int64_t b = 0; b < view.size[kBatch]; ++b) {
    for (std::int64_t t = 0; t < view.size[kToken]; ++t) {
      for (std::int64_t h = 0; h < view.size[kHead]; ++h) {
        rows.push_back(
            (b * view.stride[kBatch] + t * view.stride[kToken] + h * view.stride[kHead]) * size);
      }
    }
  }
  std::ranges::sort(rows);
  return rows;
}

void expect_aligned(const PreparedCall& call, const Policy& policy) {
  const auto size = static_cast<std::int64_t>(size_of(call.facts.dtype));
  const std::int64_t window = call.plan->window().offset * size;
  const std::int64_t end = window + call.plan->rotary_dim() * size;
  for (const bool read : {true, false}) {
    std::int64_t bytes = 0;
    std::vector<std::int64_t> at =
        starts(call.facts, policy, read ? call.facts.read : call.facts.write, size, bytes);
    for (std::int64_t& a : at) a += window;
    if (call.facts.copied > 0) {
      for (std::int64_t b = 0; b < window; b += bytes) at.push_back(b);
      for (std::int64_t b = end; b < call.plan->head_dim() * size; b += bytes) at.push_back(b);
      EXPECT_EQ(row_lanes(call.facts, policy).chunks * bytes, call.facts.copied * size);
    }
    for (std::size_t i = 0; i < call.count; ++i) {
      const auto& [in, out] = call.views[i];
      const auto base = reinterpret_cast<std::intptr_t>(read ? in.data : out.data);
      for (const std::int64_t row : read ? rows_of(in) : rows_of(out)) {
        for (const std::int64_t a : at) ASSERT_EQ((base + row + a) % bytes, 0) << to_string(policy);
      }
    }
  }
}

/// The groups of rows as a kernel numbers them: place_in_sweep and place_in_token.
std::vector<std::int64_t> visited_rows(const VectorArgs& args, std::size_t i, const Policy& policy,
                                       std::int64_t tokens) {
  const VectorView& view = args.view[i];
  const bool in_tokens = policy.map == Map::tokens;
  std::vector<std::int64_t> rows;
  const std::int64_t groups = in_tokens ? view.size0 * tokens : view.groups;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t i0 = g % view.size0;
    std::int64_t i1 = g / view.size0;
    std::int64_t i2 = 0;
    if ((args.flags & kThreeIndices) != 0) {
      i2 = i1 / view.size1;
      i1 %= view.size1;
    }
    const bool linear = !in_tokens && (args.flags & kLinear) != 0;
    const std::int64_t first =
        linear ? g * view.in0 : i0 * view.in0 + i1 * view.in1 + i2 * view.in2;
    std::int64_t heads = policy.heads;
    if ((args.flags & kRaggedHeads) != 0) {
      const std::int64_t indices[] = {i0, i1, i2, 0};
      heads = args.heads[i] - indices[args.head_index[i]] * policy.heads;
    }
    for (std::int64_t h = 0; h < std::min<std::int64_t>(heads, policy.heads); ++h) {
      rows.push_back(first + h * view.in_head);
    }
  }
  std::ranges::sort(rows);
  return rows;
}

void expect_every_row_once(const PreparedCall& call, const Policy& policy) {
  VectorArgs args;
  ASSERT_TRUE(fill_args(call, {}, policy, false, args).has_value());
  for (std::size_t i = 0; i < call.count; ++i) {
    EXPECT_EQ(visited_rows(args, i, policy, call.facts.tokens), rows_of(call.views[i].in))
        << to_string(policy) << " tensor " << i;
  }
}

std::vector<Policy> policies_for(const Call& call) {
  std::vector<Policy> all{choose_policy(call)};
  for (const std::string& name : policy_names()) {
    const Policy policy = policy_from_name(name);
    if (policy.threads == 128 && is_possible(call, policy)) all.push_back(policy);
  }
  std::erase_if(all, [](const Policy& policy) { return !policy.vectors || policy.warp; });
  return all;
}

void check_rows(Dtype dtype, Pairing pairing, const Window& window, const verify::QkShape& rows,
                Layout layout, bool in_place, std::int64_t at) {
  PlanSpec spec = make_plan(window.rotary_dim, 10000.0, 0, pairing).spec();
  spec.head_dim = window.head_dim;
  spec.window = {window.offset, window.rotary_dim};
  const RotaryPlan plan{spec};
  std::vector<Rotation> rotations;
  for (const std::int64_t heads : {rows.query_heads, rows.key_heads}) {
    const std::int64_t apart = static_cast<std::int64_t>(rotations.size()) << 30;
    const TensorView in =
        view_of_shape(layout, dtype, rows.batch, rows.tokens, heads, window.head_dim, apart + at);
    TensorView out = in;
    if (!in_place) out.data = static_cast<char*>(in.data) + (std::int64_t{1} << 34);
    rotations.push_back({in, out});
  }
  const Positions positions = Positions::from_offset(1000);
  const PreparedCall call = prepare_call(plan, {}, rotations, positions, Direction::forward, 90);
  SCOPED_TRACE(fmt::format(
      "{} {} D {} R {}+{} {} {}x{} tokens {}+{} heads {} at {}", name_of(dtype), name_of(pairing),
      window.head_dim, window.rotary_dim, window.offset, name_of(layout), rows.batch, rows.tokens,
      rows.query_heads, rows.key_heads, in_place ? "in place" : "out of place", at));
  for (const Policy& policy : policies_for(call.facts)) {
    expect_aligned(call, policy);
    expect_every_row_once(call, policy);
  }
}

class Coverage : public ::testing::TestWithParam<Dtype> {};

TEST_P(Coverage, AccessesAreAlignedAndRowsVisitedOnce) {
  const Dtype dtype = GetParam();
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  for (const Pairing pairing :
       {Pairing::half, Pairing::interleaved, Pairing::interleaved_to_half}) {
    for (const Window& window : kWindows) {
      for (const verify::QkShape& rows : kRows) {
        for (const Layout layout : {Layout::bthd, Layout::bhtd}) {
          for (const bool in_place : {false, true}) {
            check_rows(dtype, pairing, window, rows, layout, in_place, 0);
            if (rows.batch == 1) check_rows(dtype, pairing, window, rows, layout, in_place, size);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Coverage,
                         ::testing::Values(Dtype::float64, Dtype::float32, Dtype::float16,
                                           Dtype::bfloat16));

// One group of heads has no index of its own; it is the first group for every token.
TEST(HeadIndex, OneIncompleteGroupOfHeads) {
  check_rows(Dtype::float32, Pairing::interleaved, {66, 64, 0}, {2, 37, 6, 2, 0}, Layout::bhtd,
             false, 0);
}

}  // namespace
}  // namespace ropewalk::cuda
