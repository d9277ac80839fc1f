#include "rotate/cuda/policy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <span>

#include "base/check.h"
#include "rotate/cuda/kernels.h"
#include "rotate/cuda/policy_choice.h"

namespace ropewalk::cuda {
namespace {

constexpr std::int64_t kMostBlocksY = 65535;
constexpr std::int64_t kMostRows = std::int64_t{1} << 31;

std::int64_t chunk_bytes(const Policy& policy, Order order, std::int64_t size) {
  const std::int64_t bytes = 2 * policy.pairs * size;
  if (policy.full_row) return bytes;
  return order == Order::half ? bytes / 2 : std::min<std::int64_t>(bytes, 16);
}

VectorShape shape_with(const Policy& policy, Source source) {
  return {source, policy.map, policy.pairs, policy.heads, policy.full_row};
}

}  // namespace

bool is_plain(const Call& call, const Policy& policy) {
  const bool ragged = std::ranges::any_of(
      call.heads, [&](std::int64_t heads) { return heads % policy.heads != 0; });
  return !call.table && !call.general && !call.packed && !call.padding && !ragged &&
         call.copied == 0 && call.block_pairs == call.pairs && call.read == call.write;
}

std::int64_t heads_of_warp(const Call& call, const Policy& policy) {
  return 32 * policy.pairs / call.pairs * policy.heads;
}

WarpFunction warp_kernel_for(const Call& call, const Policy& policy) {
  const bool takes = !call.table && !call.padding && !call.fractional && call.copied == 0 &&
                     call.block_pairs == call.pairs && call.read == call.write &&
                     call.channels_adjacent && !call.computes_double;
  if (!policy.warp || !takes) return nullptr;
  const Source source = call.several_axes ? Source::axes
                        : call.packed     ? Source::integer
                                          : Source::plain;
  return find_warp_kernel(
      call.dtype, call.read,
      {source, policy.map, static_cast<int>(std::min<std::int64_t>(call.pairs, 1 << 20)),
       policy.pairs, policy.heads, policy.threads});
}

VectorFunction vector_kernel_for(const Call& call, const Policy& policy) {
  const auto find = [&](Source source) {
    return find_vector_kernel(call.dtype, call.read, call.write, shape_with(policy, source));
  };
  if (call.table) return find(Source::table);
  if (call.general) {
    // The broadcast of one component to several axes has no axis to step over.
    const bool simple = call.several_axes && !call.fractional && !call.padding;
    const VectorFunction axes = simple ? find(Source::axes) : nullptr;
    return axes != nullptr ? axes : find(Source::general);
  }
  const VectorFunction plain = is_plain(call, policy) ? find(Source::plain) : nullptr;
  return plain != nullptr ? plain : find(Source::integer);
}

bool is_possible(const Call& call, const Policy& policy) {
  if (!policy.vectors) return true;
  if (policy.warp) {
    const bool one_grid = policy.map == Map::sweep ? call.batches <= kMostBlocksY
                                                   : call.batches == 1 && call.steps_by_one &&
                                                         call.tokens <= kMostBlocksY;
    // Whole warps; in the token map whole blocks.
    const std::int64_t of_warp = heads_of_warp(call, policy);
    const std::int64_t unit = policy.map == Map::tokens ? of_warp * policy.threads / 32 : of_warp;
    const bool whole = unit > 0 && call.heads[0] % unit == 0 && call.heads[1] % unit == 0;
    return one_grid && whole && call.heads_alike && call.alignment == 16 && call.rows < kMostRows &&
           warp_kernel_for(call, policy) != nullptr;
  }
  const auto size = static_cast<std::int64_t>(size_of(call.dtype));
  const bool mixed = call.read != call.write;
  if (!call.channels_adjacent || call.computes_double) return false;
  if (call.pairs % policy.pairs != 0 || call.block_pairs % policy.pairs != 0) return false;
  if (mixed && (call.copied > 0 || call.padding)) return false;
  const std::int64_t read = chunk_bytes(policy, call.read, size);
  const std::int64_t written = chunk_bytes(policy, call.write, size);
  if (call.alignment % std::max(read, written) != 0) return false;
  const RowLanes lanes = row_lanes(call, policy);
  if (lanes.rotating + lanes.copying > policy.threads) return false;
  if (policy.full_row) {
    // Partners meet by shuffle: whole rows within a warp, and warps without a rest.
    const std::int64_t all = lanes.rotating + lanes.copying;
    if (call.block_pairs != call.pairs || call.pairs % (2 * policy.pairs) != 0) return false;
    if (!std::has_single_bit(static_cast<std::uint64_t>(all)) || all > 32) return false;
    if (!std::has_single_bit(static_cast<std::uint64_t>(lanes.rotating))) return false;
    if (policy.threads % 32 != 0) return false;
  }
  if (policy.map == Map::tokens && call.tokens > kMostBlocksY) return false;
  if (call.rows >= kMostRows) return false;
  return vector_kernel_for(call, policy) != nullptr;
}

RowLanes row_lanes(const Call& call, const Policy& policy) {
  const auto size = static_cast<std::int64_t>(size_of(call.dtype));
  RowLanes lanes;
  lanes.rotating = call.pairs / policy.pairs;
  if (call.copied > 0) {
    const std::int64_t chunk = chunk_bytes(policy, call.read, size);
    const std::int64_t per_lane = 2 * policy.pairs * size / chunk;
    lanes.chunks = call.copied * size / chunk;
    lanes.copying = (lanes.chunks + per_lane - 1) / per_lane;
    lanes.chunk_bytes = chunk;
  }
  return lanes;
}

namespace {

/// The policy itself, or with fewer heads a thread where fewer are compiled or fit the counts;
/// narrow where none can take the call.
Policy with_heads_that_fit(const Call& call, Policy policy) {
  while (policy.heads > 1 && (wastes_heads(call, policy.heads) || !is_possible(call, policy))) {
    policy.heads /= 2;
  }
  return is_possible(call, policy) ? policy : Policy{};
}

}  // namespace

Policy choose_policy(const Call& call) {
  const WarpChoices warps = preferred_warps(call);
  for (const Policy& policy :
       std::span(warps.policy).first(static_cast<std::size_t>(warps.count))) {
    if (is_possible(call, policy)) return policy;
  }
  if (const Policy first = with_heads_that_fit(call, preferred_policy(call)); first.vectors) {
    return first;
  }
  for (const Policy& fallback : kFallbacks) {
    const Policy policy = with_heads_that_fit(call, fallback);
    if (policy.vectors) return policy;
    if (is_possible(call, fallback)) return fallback;  // compiled with these heads alone
  }
  return {};
}

std::string to_string(const Policy& policy) {
  if (!policy.vectors) return "narrow";
  return fmt::format("{}-{}x{}-{}{}{}", policy.map == Map::sweep ? "sweep" : "tokens", policy.pairs,
                     policy.heads, policy.threads, policy.full_row ? "-row" : "",
                     policy.warp ? "-warp" : "");
}

Policy policy_from_name(std::string_view name) {
  if (name == "narrow") return {};
  Policy policy;
  policy.vectors = true;
  std::string_view rest = name;
  const auto take = [&rest](std::string_view prefix) {
    if (!rest.starts_with(prefix)) return false;
    rest.remove_prefix(prefix.size());
    return true;
  };
  const auto number = [&rest](int& value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc{} || value < 1 || value > 1024) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return true;
  };
  if (take("tokens-")) {
    policy.map = Map::tokens;
  } else {
    require(take("sweep-"), "policy: expected \"narrow\" or a name like \"sweep-4x2-128\", got {}",
            name);
  }
  const bool well_formed = number(policy.pairs) && take("x") && number(policy.heads) && take("-") &&
                           number(policy.threads);
  policy.full_row = well_formed && take("-row");
  policy.warp = well_formed && !policy.full_row && take("-warp");
  require(well_formed && rest.empty() && policy.threads <= 512,
          "policy: expected \"narrow\" or a name like \"sweep-4x2-128\", got {}", name);
  return policy;
}

}  // namespace ropewalk::cuda
