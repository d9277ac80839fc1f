// The kernels of the common layouts: a warp owns several heads of one token, each lane evaluates a
// share of the angles, and the lanes exchange them by shuffle. What the first loads wait for are
// the first 48 bytes of the arguments, and the instructions are few: up to 66 MB both are what the
// time goes to.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rotate/cuda/angles_device.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/index_device.h"
#include "rotate/cuda/lanes.h"
#include "rotate/cuda/policy.h"
#include "rotate/cuda/positions_device.h"
#include "rotate/cuda/programmatic.h"
#include "rotate/cuda/rotate_chunks.h"

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

/// Named only where the assembler, left alone, takes so few registers that it spills: packed
/// sequences on compute capability 12.0.
template <class T>
inline constexpr int kLeastWarpBlocks =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    T::kSource == Source::integer ? 8 : 1;
#else
    1;
#endif

template <class T>
__global__ void __launch_bounds__(T::kThreads, kLeastWarpBlocks<T>)
    rotate_by_warps(const __grid_constant__ typename T::Args a) {
  using V = typename T::V;
  using Real = typename V::Real;
  constexpr bool kAxes = T::kSource == Source::axes;
  constexpr bool kPacked = T::kSource == Source::integer;
  if ((a.facts & kWarpProgrammatic) != 0) start_dependents();
  const std::uint32_t lane = threadIdx.x % kWarp;
  const std::uint32_t warp = threadIdx.x / kWarp;
  const std::uint32_t row = lane / T::kLanes;
  const std::uint32_t column = lane % T::kLanes;

  WarpRows<T> rows;
  FetchedPosition fetched;
  Frequencies<Real, T::kAngles> frequencies;
  frequencies.load(a.frequencies, lane * T::kAngles);
  std::uint32_t split;
  if constexpr (T::kMap == Map::tokens) {
    rows.token = blockIdx.y;
    rows.index = static_cast<std::int32_t>(rows.token);
    if constexpr (!kAxes) fetched.load(a, rows.index);
    split = a.facts & kWarpMostBlocks;
  } else {
    split = a.split;
  }
  const bool second = blockIdx.x >= split;
  if constexpr (T::kMap == Map::tokens) {
    rows.find_in_token(a, (second ? blockIdx.x - split : blockIdx.x) * T::kWarps + warp, second);
  } else if (!second) {
    if (!rows.template find_in_sweep<0>(a, blockIdx.x * T::kWarps + warp)) return;
  } else {
    if (!rows.template find_in_sweep<1>(a, (blockIdx.x - split) * T::kWarps + warp)) return;
  }
  std::uint8_t axis[T::kAngles];
  if constexpr (kAxes) {
    if (lane < a.axes) {
      fetched.load(a, rows.index + static_cast<std::int32_t>(lane) * a.axis_stride);
    }
#pragma unroll
    for (int i = 0; i < T::kAngles; ++i) axis[i] = __ldg(a.axis + lane * T::kAngles + i);
  } else if constexpr (T::kMap == Map::sweep && !kPacked) {
    fetched.load(a, rows.index);
  }
  rows.head += row;
  rows.in += add_product(rows.head, a.in_head, column * T::kStep);
  if ((a.facts & kWarpProgrammatic) == 0) rows.load(a.in_head);

  std::int64_t p = fetched.value(a);
  [[maybe_unused]] RowPosition in_sequence;
  if constexpr (kPacked) {
    in_sequence = packed_position(a.packed, rows.token);
    p = in_sequence.value;
  } else if constexpr (!kAxes) {
    if ((a.facts & (kWarpInt64 | kWarpInt32)) == 0) {
      p = reinterpret_cast<std::int64_t>(a.position_data);
    }
    if ((a.facts & kWarpAddToken) != 0) p += rows.token;
  }
  WarpPosition<T> position;
  position.take(p, axis);
  if constexpr (kPacked) position.bad = position.bad || in_sequence.bad;
  Real cos_amplitude, sin_amplitude;
  if constexpr (T::kSize == 8) {
    cos_amplitude = a.cos_amplitude;
    sin_amplitude = a.sin_amplitude;
  } else {
    cos_amplitude = a.cos_amplitude32;
    sin_amplitude = a.sin_amplitude32;
  }
  if (position.bad) cos_amplitude = static_cast<Real>(__int_as_float(0x7fffffff));
  Real c[T::kAngles], s[T::kAngles];
#pragma unroll
  for (int i = 0; i < T::kAngles; ++i) {
    const std::int64_t value = position.value[kAxes ? i : 0];
    std::uint64_t phase;
    if constexpr (T::kSize == 8) {
      phase = phase_of(value, frequencies.fraction[i], frequencies.low[i]);
    } else {
      phase = phase_of(value, frequencies.fraction[i]);
    }
    V::sincos(phase, c[i], s[i]);
    c[i] = V::mul(c[i], cos_amplitude);
    s[i] = V::mul(s[i], sin_amplitude);
  }
  WarpAngles<T> angles;
  angles.exchange(c, s, column);
  if ((a.facts & kWarpProgrammatic) != 0) {
    wait_for_predecessor();
    rows.load(a.in_head);
  }
  if (position.bad && lane == 0) {
    atomicAdd(a.bad_rows, static_cast<unsigned long long>(T::kRows * T::kHeads));
  }
  char* out = pick(second, a.out[0], a.out[1]) +
              add_product(rows.token, pick(second, a.out_token[0], a.out_token[1]),
                          add_product(rows.head, a.out_head, column * T::kStep));
  if constexpr (T::kMap == Map::sweep) {
    if ((a.facts & kWarpBatches) != 0) {
      out += static_cast<std::int64_t>(blockIdx.y) * a.view[second ? 1 : 0].out_batch;
    }
  }
  __builtin_assume(__isGlobal(out));
#pragma unroll
  for (int h = 0; h < T::kHeads; ++h) {
    rotate_chunks<T>(kFused, rows.x[h], angles.c, angles.s, rows.x[h]);
#pragma unroll
    for (int i = 0; i < T::kWrites; ++i) {
      store_chunk(out + static_cast<std::int64_t>(h * T::kRows) * a.out_head + i * T::kNext,
                  rows.x[h][i]);
    }
  }
}

}  // namespace ropewalk::cuda
