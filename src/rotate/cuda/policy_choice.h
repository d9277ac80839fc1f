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

/// Whole heads, or in place: nothing to copy, one block.
constexpr bool is_plain_shape(const Call& call) {
  return call.copied == 0 && call.block_pairs == call.pairs && !call.padding &&
         !wastes_heads_at_all(call, 2);
}

/// Measured on an H200 (bench/results/cuda_policies_h200.jsonl: every policy in every case; docs/
/// kernels.md has the ladder; of programmatic chains, cuda_ladder_h200.jsonl). Other cards take the
/// same choice until somebody measures there.
constexpr Policy preferred_16(const Call& call) {
  const bool half = call.read == Order::half;
  const std::int64_t kb = call.bytes >> 10;
  if (call.packed || !is_plain_shape(call)) {  // more instructions a thread: more work for each
    if (call.in_place && !call.packed) return {true, Map::sweep, 4, 4, 64, false};
    if (half && call.packed) return {true, Map::sweep, 4, 4, 64, true};
    return {true, Map::sweep, half ? 8 : 4, half ? 2 : 4, 64, false};
  }
  if (call.tokens <= 16 && kb <= 512) return {true, Map::tokens, 2, 1, half ? 256 : 128, false};
  if (call.programmatic && kb <= 2 << 10) return {true, Map::sweep, 2, 2, 256, false};
  if (call.programmatic && kb <= 9 << 10) return {true, Map::sweep, 2, 4, 128, false};
  if (call.tokens <= 128 && kb <= 2 << 10) return {true, Map::tokens, 2, 2, 256, false};
  if (kb <= 6 << 10) return {true, Map::sweep, 2, 4, 256, false};
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
  return {true, Map::sweep, 1, 2, 128, false};
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
