// The choice itself: what was measured to be fastest, by facts about the call.
#pragma once

#include <cstdint>

#include "rotate/cuda/kernels.h"
#include "rotate/cuda/policy.h"

namespace ropewalk::cuda {

/// How the channels of a row are shared out to lanes.
struct RowLanes {
  std::int64_t rotating = 0;
  std::int64_t copying = 0;
  std::int64_t chunks = 0;  ///< outside the window
  std::int64_t chunk_bytes = 0;
};
[[nodiscard]] RowLanes row_lanes(const Call& call, const Policy& policy);

/// Null where none is compiled.
[[nodiscard]] VectorFunction vector_kernel_for(const Call& call, const Policy& policy);
[[nodiscard]] WarpFunction warp_kernel_for(const Call& call, const Policy& policy);

/// Tried in turn, with fewer heads where needed, when the preferred policy cannot take the call.
inline constexpr Policy kFallbacks[] = {
    {true, Map::sweep, 4, 4, 64, false},  {true, Map::sweep, 4, 2, 64, false},
    {true, Map::sweep, 2, 2, 128, false}, {true, Map::sweep, 2, 4, 128, false},
    {true, Map::sweep, 1, 2, 128, false}, {true, Map::sweep, 4, 1, 256, false},
    {true, Map::sweep, 2, 1, 256, false}, {true, Map::sweep, 1, 4, 256, false},
    {true, Map::sweep, 1, 4, 512, false}, {true, Map::sweep, 1, 1, 512, false},
};

/// Whether head counts are no multiples of a thread's heads.
constexpr bool wastes_heads_at_all(const Call& call, int of_thread) {
  return call.heads[0] % of_thread != 0 || call.heads[1] % of_thread != 0;
}

/// Whether more than an eighth of the threads' heads would not exist.
constexpr bool wastes_heads(const Call& call, int of_thread) {
  std::int64_t real = 0;
  std::int64_t padded = 0;
  for (const std::int64_t heads : call.heads) {
    real += heads;
    padded += (heads + of_thread - 1) / of_thread * of_thread;
  }
  return 8 * (padded - real) > real;
}

/// Warp kernels in order of preference; the first that can take the call is taken.
struct WarpChoices {
  Policy policy[4];
  int count = 0;
  constexpr void add(Map map, int pairs, int heads, int threads) {
    policy[count++] = {true, map, pairs, heads, threads, false, true};
  }
};

/// With a token per blockIdx.y, bf16 and heads of 128: up to 16 tokens 2 × 2, to 9 MB 4 × 2, to 24
/// MB 8 × 2. What follows in each list is for head counts that those do not divide.
constexpr void add_token_maps(const Call& call, WarpChoices& choices) {
  const std::int64_t kb = call.bytes >> 10;
  if (call.pairs > 64) {
    if (call.tokens <= 16) choices.add(Map::tokens, 4, 1, 128);
    choices.add(Map::tokens, 8, 1, 64);
  } else if (call.tokens <= 16) {
    choices.add(Map::tokens, 2, 2, 128);
    choices.add(Map::tokens, 2, 1, 128);
    choices.add(Map::tokens, 2, 1, 64);
  } else {
    if (kb > 9 << 10) choices.add(Map::tokens, 8, 2, 32);
    choices.add(Map::tokens, 4, 2, 64);
    choices.add(Map::tokens, 4, 1, 64);
  }
}

/// Whether the warps' sweep is faster than the vector kernels: not where rows have gaps between
/// them, nor heads first beyond 128 MB. Beyond 256 MB both are as fast as memory, except that the
/// vector kernels wait for int32 positions before they load data.
constexpr bool prefers_warp_sweep(const Call& call) {
  const std::int64_t kb = call.bytes >> 10;
  if (call.partial || (!call.heads_inside && kb > 128 << 10)) return false;
  return kb <= 256 << 10 || call.int32_positions;
}

/// Measured on an H200 (bench/results/cuda_warp_steps_h200.txt, docs/kernels.md).
constexpr WarpChoices preferred_warps(const Call& call) {
  WarpChoices choices;
  const std::int64_t kb = call.bytes >> 10;
  const auto size = static_cast<std::int64_t>(size_of(call.dtype));
  if (call.several_axes) {
    choices.add(Map::sweep, 4, 2, 128);
  } else if (call.packed) {
    if (size == 2) choices.add(Map::sweep, 8, 2, 64);
  } else if (size == 8) {
    if (kb <= 24 << 10) choices.add(Map::tokens, 2, 1, 128);
  } else if (size == 4) {
    if (call.tokens <= 16) choices.add(Map::tokens, 2, 1, 128);
    if (kb <= 12 << 10) choices.add(Map::tokens, 4, 1, 64);
    if (kb <= 64 << 10) choices.add(Map::sweep, 4, 1, 128);
  } else if (call.programmatic) {
    if (kb <= 2 << 10) choices.add(Map::tokens, 2, 1, 256);
    if (kb <= 2 << 10) choices.add(Map::tokens, 2, 1, 128);
    choices.add(Map::sweep, 8, 1, 128);
  } else {
    if (kb <= 24 << 10) add_token_maps(call, choices);
    if (prefers_warp_sweep(call)) choices.add(Map::sweep, 8, 1, 128);
  }
  return choices;
}

/// Whole heads, or in place: nothing to copy, one block.
constexpr bool is_plain_shape(const Call& call) {
  return call.copied == 0 && call.block_pairs == call.pairs && !call.padding &&
         !wastes_heads_at_all(call, 2);
}

/// What no warp kernel takes, and tensors for which these are faster. Measured on an H200
/// (bench/results/cuda_policies_h200.jsonl: every policy; docs/kernels.md has the ladder). Other
/// cards take the same choice until somebody measures there.
constexpr Policy preferred_16(const Call& call) {
  const bool half = call.read == Order::half;
  const std::int64_t kb = call.bytes >> 10;
  if (call.packed || !is_plain_shape(call)) {  // more instructions a thread: more work for each
    if (call.in_place && !call.packed) return {true, Map::sweep, 4, 4, 64, false};
    if (half && call.packed) return {true, Map::sweep, 4, 4, 64, true};
    return {true, Map::sweep, half ? 8 : 4, half ? 2 : 4, 64, false};
  }
  if (call.tokens <= 16 && kb <= 512) return {true, Map::tokens, 2, 1, half ? 256 : 128, false};
  if (kb <= 9 << 10) return {true, Map::sweep, 2, 4, 128, false};
  if (kb <= 12 << 10) return {true, Map::sweep, 4, 2, 64, false};
  if (kb <= 24 << 10) return {true, Map::sweep, 4, 4, half ? 64 : 128, false};
  if (half && !call.heads_inside) {
    return kb <= 128 << 10 ? Policy{true, Map::sweep, 2, 4, 128, false}
                           : Policy{true, Map::sweep, 8, 2, 128, false};
  }
  const bool small_blocks = call.partial || (kb > 256 << 10 && half && !call.in_place);
  return {true, Map::sweep, 4, 2, small_blocks ? 64 : 128, false};
}

constexpr Policy preferred_32(const Call& call) {
  const std::int64_t kb = call.bytes >> 10;
  if (!is_plain_shape(call) || call.packed) return {true, Map::sweep, 4, 2, 64, false};
  if (call.tokens <= 16 && kb <= 1024) return {true, Map::tokens, 2, 1, 256, false};
  return {true, Map::sweep, 4, 1, call.heads_inside ? 128 : 64, false};
}

constexpr Policy preferred_64(const Call& call) {
  const std::int64_t kb = call.bytes >> 10;
  if (!is_plain_shape(call) || call.packed) return {true, Map::sweep, 2, 2, 64, false};
  if (call.tokens <= 16 && kb <= 2048) return {true, Map::tokens, 1, 1, 256, false};
  if (!call.heads_inside) return {true, Map::sweep, 2, 1, 64, false};
  return {true, Map::sweep, 1, 2, kb <= 256 << 10 ? 256 : 128, false};
}

constexpr Policy preferred_policy(const Call& call) {
  // The rarer sources cost more instructions a thread, which more heads share.
  const std::int64_t bytes = static_cast<std::int64_t>(size_of(call.dtype));
  const int most_heads = bytes == 2 ? 4 : (bytes == 4 ? 2 : 1);
  if (call.general || call.table || call.read != call.write) {
    return {true, Map::sweep, bytes == 8 ? 2 : 4, most_heads, 64, false};
  }
  switch (size_of(call.dtype)) {
    case 8: return preferred_64(call);
    case 4: return preferred_32(call);
    default: return preferred_16(call);
  }
}

}  // namespace ropewalk::cuda
