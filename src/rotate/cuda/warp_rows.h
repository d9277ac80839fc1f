// What a warp of warp_kernel.h works on: its heads, their position, their angles.
#pragma once

#include <cstdint>
#include <type_traits>

#include "phase/phase.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/index_device.h"
#include "rotate/cuda/lanes.h"
#include "rotate/cuda/policy.h"
#include "rotate/cuda/shapes.h"

namespace ropewalk::cuda {

inline constexpr int kWarp = 32;

template <class Storage_, Order kOrder, WarpShape kShape>
struct WarpTraits {
  using Storage = Storage_;
  using Compute = std::conditional_t<sizeof(Storage) == 8, double, float>;
  using V = Lanes<Storage, Compute>;
  static constexpr Order kRead = kOrder;
  static constexpr Order kWrite = kOrder;
  static constexpr Source kSource = kShape.source;
  static constexpr Map kMap = kShape.map;
  using Args = std::conditional_t<kMap == Map::tokens, WarpArgs, WarpSweepArgs>;
  static constexpr int kThreads = kShape.threads;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int kPairs = kShape.pairs;               ///< of a lane and head
  static constexpr int kLanes = kShape.row_pairs / kPairs;  ///< of a head
  static constexpr int kHeads = kShape.heads;               ///< of a lane
  static constexpr int kRows = kWarp / kLanes;              ///< heads of a warp side by side
  static constexpr int kAngles = kShape.row_pairs / kWarp;  ///< that a lane evaluates
  static_assert(kLanes * kRows == kWarp && kAngles * kWarp == kShape.row_pairs);

  static constexpr int kSize = sizeof(Storage);
  static constexpr int kBytes = 2 * kPairs * kSize;  ///< of a lane in a row
  static constexpr int kReadBytes =
      kOrder == Order::half ? kBytes / 2 : (kBytes < 16 ? kBytes : 16);
  static constexpr int kWriteBytes = kReadBytes;
  static constexpr int kReads = kBytes / kReadBytes;
  static constexpr int kWrites = kReads;
  /// Interleaved chunks half a row apart, so that neighbouring lanes read neighbouring chunks.
  static constexpr bool kSplit = kOrder == Order::interleaved && kReads == 2 && kRows > 1;
  static constexpr bool kHalves = kOrder == Order::half || kSplit;
  static constexpr int kStep = kHalves ? kReadBytes : kBytes;  ///< bytes from lane to lane
  static constexpr int kNext = kHalves ? kShape.row_pairs * kSize : kReadBytes;
  static_assert(kReads <= 2);
};

/// Cosines and sines of a lane's own pairs, from those that all lanes evaluated: lane i has the
/// kAngles pairs from i · kAngles on.
template <class T>
struct WarpAngles {
  using Real = typename T::V::Real;
  Real c[T::kPairs], s[T::kPairs];

  __device__ __forceinline__ void exchange(const Real* own_c, const Real* own_s,
                                           std::uint32_t column) {
    constexpr int kOf = T::kSplit ? T::kPairs / 2 : T::kPairs;  // neighbouring pairs of the lane
#pragma unroll
    for (int i = 0; i < T::kPairs; ++i) {
      if constexpr (T::kRows == 1) {
        c[i] = own_c[i];
        s[i] = own_s[i];
      } else {
        const std::uint32_t lane =
            column * (kOf / T::kAngles) + (i % kOf) / T::kAngles + (i / kOf) * (kWarp / 2);
        c[i] = __shfl_sync(~0u, own_c[i % T::kAngles], static_cast<int>(lane));
        s[i] = __shfl_sync(~0u, own_s[i % T::kAngles], static_cast<int>(lane));
      }
    }
  }
};

/// One of two arguments. Both come straight from constant memory; left alone, the compiler indexes
/// it, which takes longer.
template <class A>
__device__ __forceinline__ A pick(bool second, A first, A other) {
  if constexpr (sizeof(A) == 8) {
    asm("" : "+l"(first), "+l"(other));
  } else {
    asm("" : "+r"(first), "+r"(other));
  }
  return second ? other : first;
}

/// An integer position as memory holds it; nothing waits for it until value(), not even for the
/// sign of an int32.
struct FetchedPosition {
  std::uint32_t low = 0, high = 0;

  __device__ __forceinline__ void load(const WarpArgs& a, std::int32_t index) {
    const std::int32_t bytes = (a.facts & kWarpInt64) != 0 ? 8 : 4;
    const auto* word = reinterpret_cast<const std::uint32_t*>(
        static_cast<const char*>(a.position_data) + static_cast<std::int64_t>(index) * bytes);
    if ((a.facts & (kWarpInt64 | kWarpInt32)) != 0) low = __ldg(word);
    if ((a.facts & kWarpInt64) != 0) high = __ldg(word + 1);
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t value(const WarpArgs& a) const {
    const std::uint32_t top =
        (a.facts & kWarpInt64) != 0
            ? high
            : static_cast<std::uint32_t>(static_cast<std::int32_t>(low) >> 31);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(top) << 32 | low);
  }
};

/// The heads of a warp.
template <class T>
struct WarpRows {
  Chunk<T::kReadBytes> x[T::kHeads][T::kReads];
  const char* in;
  std::uint32_t token;
  std::uint32_t head;  ///< of this lane, the first
  std::int32_t index;  ///< into the position array

  /// Without a branch: loads issued before one count as arrived in the assembler's schedule, and
  /// what uses the position would be placed before the loads of the data.
  __device__ __forceinline__ void find_in_token(const WarpArgs& a, std::uint32_t group,
                                                bool second) {
    head = group * (T::kRows * T::kHeads);
    in = (second ? a.in[1] : a.in[0]) +
         add_product(token, second ? a.in_token[1] : a.in_token[0], 0);
  }

  /// False where the warp has nothing to do.
  template <int kView>
  __device__ __forceinline__ bool find_in_sweep(const WarpSweepArgs& a, std::uint32_t w) {
    const WarpView& view = a.view[kView];
    const std::uint32_t outer = quotient(w, view.multiplier, view.shift);
    if (outer >= view.outer) return false;
    const std::uint32_t inner = w - outer * view.inner;
    const bool heads_inside = (a.facts & kWarpHeadsInside) != 0;
    token = heads_inside ? outer : inner;
    head = (heads_inside ? inner : outer) * (T::kRows * T::kHeads);
    index = static_cast<std::int32_t>(token) * a.position_token;
    in = a.in[kView] + add_product(token, a.in_token[kView], 0);
    if ((a.facts & kWarpBatches) != 0) {
      index += static_cast<std::int32_t>(blockIdx.y) * a.position_batch;
      in += static_cast<std::int64_t>(blockIdx.y) * view.in_batch;
    }
    return true;
  }

  __device__ __forceinline__ void load(std::int32_t in_head) {
    __builtin_assume(__isGlobal(in));
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < T::kReads; ++i) {
        x[h][i] = load_chunk<T::kReadBytes>(in + static_cast<std::int64_t>(h * T::kRows) * in_head +
                                            i * T::kNext);
      }
    }
  }
};

/// The position of each pair that a lane evaluates, and whether the row's are all valid.
template <class T>
struct WarpPosition {
  static constexpr bool kAxes = T::kSource == Source::axes;
  std::int64_t value[kAxes ? T::kAngles : 1];
  bool bad;

  static __device__ __forceinline__ bool is_bad(std::int64_t p) {
    constexpr std::int64_t kLimit = T::kSize == 8 ? kPositionLimitFloat64 : kPositionLimit;
    return static_cast<std::uint64_t>(p + (kLimit - 1)) >=
           static_cast<std::uint64_t>(2 * kLimit - 1);
  }
  /// Lane i holds component i.
  __device__ __forceinline__ void take(std::int64_t p, const std::uint8_t* axis) {
    if constexpr (kAxes) {
      bad = __any_sync(~0u, is_bad(p));
#pragma unroll
      for (int i = 0; i < T::kAngles; ++i) value[i] = __shfl_sync(~0u, p, axis[i]);
    } else {
      bad = is_bad(p);
      value[0] = p;
    }
  }
};

}  // namespace ropewalk::cuda
