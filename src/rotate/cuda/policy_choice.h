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
  std::int64_t chunks = 0;       ///< outside the window
  std::int64_t chunk_bytes = 0;
};
[[nodiscard]] RowLanes row_lanes(const Call& call, const Policy& policy);

/// Null where none is compiled.
[[nodiscard]] VectorFunction vector_kernel_for(const Call& call, const Policy& policy);

/// Tried in turn, with fewer heads where needed, when the preferred policy cannot take the call.
inline constexpr Policy kFallbacks[] = {
    {true, Map::sweep, 4, 4, 64, false},  {true, Map::sweep, 4, 2, 64, false},
    {true, Map::sweep, 2, 4, 128, false}, {true, Map::sweep, 2, 2, 128, false},
    {true, Map::sweep, 1, 2, 128, false},
    {true, Map::sweep, 4, 1, 256, false},
    {true, Map::sweep, 2, 1, 256, false}, {true, Map::sweep, 1, 4, 128, false},
    {true, Map::sweep, 1, 4, 512, false}, {true, Map::sweep, 1, 1, 512, false},
};

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

constexpr Policy preferred_16(const Call& call) {
  const bool half = call.read == Order::half;
  const std::int64_t kb = call.bytes >> 10;
  if (call.tokens <= 16 && kb <= 512) return {true, Map::tokens, 2, 1, half ? 256 : 128, false};
  if (kb <= 2 << 10) return {true, Map::sweep, 2, 2, half ? 256 : 128, false};
  if (kb <= 8 << 10) return {true, Map::sweep, 2, 4, 128, false};
  return {true, Map::sweep, 4, 4, 64, half};
}

constexpr Policy preferred_32(const Call& call) {
  const std::int64_t kb = call.bytes >> 10;
  if (call.tokens <= 16 && kb <= 1024) return {true, Map::tokens, 2, 1, 256, false};
  if (kb <= 16 << 10) return {true, Map::sweep, 2, 2, 128, false};
  if (call.read == Order::half) return {true, Map::sweep, 4, 2, 64, false};
  return {true, Map::sweep, 2, 4, 64, false};
}

constexpr Policy preferred_64(const Call& call) {
  const std::int64_t kb = call.bytes >> 10;
  if (call.tokens <= 16 && kb <= 2048) return {true, Map::tokens, 1, 1, 256, false};
  return {true, Map::sweep, 1, 2, 64, false};
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
