// The fast kernels: a thread owns a few neighbouring pairs of several heads of one token, loads all
// of them before it stores the first, and evaluates their sines once. No shared memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rotate/cuda/angles_device.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/lanes.h"
#include "rotate/cuda/policy.h"
#include "rotate/cuda/programmatic.h"
#include "rotate/pair.h"

namespace ropewalk::cuda {

template <class Storage_, Order kRead_, Order kWrite_, Source kSource_, Map kMap_, int kPairs_,
          int kHeads_, bool kFullRow_>
struct VectorTraits {
  using Storage = Storage_;
  using Compute = std::conditional_t<sizeof(Storage) == 8, double, float>;
  using V = Lanes<Storage, Compute>;
  static constexpr Order kRead = kRead_;
  static constexpr Order kWrite = kWrite_;
  static constexpr Source kSource = kSource_;
  static constexpr Map kMap = kMap_;
  static constexpr int kPairs = kPairs_;      ///< of a thread and head
  static constexpr int kHeads = kHeads_;      ///< of a thread
  static constexpr bool kFullRow = kFullRow_; ///< half pairing by shuffles
  static constexpr bool kMixed = kRead != kWrite;

  static constexpr int kSize = sizeof(Storage);
  static constexpr int kBytes = 2 * kPairs * kSize;  ///< of a thread in a row
  ROPEWALK_HD static constexpr int chunk_bytes(Order order) {
    if (kFullRow) return kBytes;
    return order == Order::half ? kBytes / 2 : (kBytes < 16 ? kBytes : 16);
  }
  static constexpr int kReadBytes = chunk_bytes(kRead);
  static constexpr int kWriteBytes = chunk_bytes(kWrite);
  static constexpr int kReads = kBytes / kReadBytes;
  static constexpr int kWrites = kBytes / kWriteBytes;
};

/// Bytes from the first channel of the window to a thread's first chunk, and from there to its next.
struct Spot {
  std::int32_t first;
  std::int32_t next;
};

template <class T, Order kOrder>
__device__ __forceinline__ Spot spot_of(const RowArgs& row, std::uint32_t lane) {
  if constexpr (T::kFullRow || kOrder == Order::interleaved) {
    return {static_cast<std::int32_t>(lane) * T::kBytes, T::kReadBytes};
  } else {
    const auto pair = static_cast<std::int32_t>(lane) * T::kPairs;
    std::int32_t blocks_before = 0;
    if (row.block_pairs != row.pairs) {
      blocks_before = pair / static_cast<std::int32_t>(row.block_pairs);
    }
    return {(pair + blocks_before * static_cast<std::int32_t>(row.block_pairs)) * T::kSize,
            static_cast<std::int32_t>(row.half)};
  }
}

/// The channels outside the window, `lane` counted from the first copying one; a chunk beyond the
/// last repeats the last.
__device__ __forceinline__ std::int32_t copied_chunk(const RowArgs& row, std::uint32_t index,
                                                     std::int32_t bytes) {
  const std::uint32_t last = row.copy_chunks - 1;
  const auto at = static_cast<std::int32_t>(index < last ? index : last) * bytes;
  const auto before = static_cast<std::int32_t>(row.copy_before);
  return at < before ? at - before : at - before + static_cast<std::int32_t>(row.window);
}

/// Where a thread works.
struct Place {
  const char* in;
  char* out;
  std::int64_t in_head, out_head;
  std::int64_t position;  ///< index into the position array
  std::int64_t token;
  bool live;
};

/// `outer` is the index of the token, in the token map; else `g` counts everything.
template <Map kMap>
__device__ __forceinline__ Place place_of(const ViewArgs& view, std::uint32_t g,
                                          std::uint32_t outer) {
  Place p;
  std::uint32_t i0, i1, i2;
  if constexpr (kMap == Map::tokens) {
    p.live = g < view.size0.divisor;
    i0 = g;
    i2 = view.size1.quotient(outer);
    i1 = outer - i2 * view.size1.divisor;
  } else {
    p.live = g < static_cast<std::uint32_t>(view.groups);
    const std::uint32_t kept = p.live ? g : 0;
    const std::uint32_t rest = view.size0.quotient(kept);
    i0 = kept - rest * view.size0.divisor;
    i2 = view.size1.quotient(rest);
    i1 = rest - i2 * view.size1.divisor;
  }
  const auto along = [&](const std::int64_t* stride) {
    return static_cast<std::int64_t>(i0) * stride[0] + static_cast<std::int64_t>(i1) * stride[1] +
           static_cast<std::int64_t>(i2) * stride[2];
  };
  p.position = along(view.position_stride);
  p.token = along(view.token_stride);
  p.in = view.in + along(view.in_stride);
  p.out = view.out + along(view.out_stride);
  p.in_head = view.in_head;
  p.out_head = view.out_head;
  return p;
}

/// Whether threads must stay to the end because others wait for them.
template <class T>
inline constexpr bool kThreadsMeet = T::kFullRow || T::kMixed;

/// Named only where the compiler, left alone, takes so few registers that it spills.
template <class T>
inline constexpr int kLeastBlocks = T::kPairs * T::kHeads >= 16 ? 4 : 1;

template <class T>
__device__ __forceinline__ void rotate_chunks(const Args& a, const Chunk<T::kReadBytes>* in,
                                              const typename T::Compute* c,
                                              const typename T::Compute* s,
                                              Chunk<T::kWriteBytes>* out) {
  using V = typename T::V;
  using Real = typename V::Real;
  constexpr int n = T::kPairs;
  Real x[2 * n], y[2 * n];
#pragma unroll
  for (int i = 0; i < T::kReads; ++i) {
    unpack<typename T::Storage>(in[i], x + i * (T::kReadBytes / T::kSize));
  }
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const Real x0 = T::kRead == Order::half ? x[i] : x[2 * i];
    const Real x1 = T::kRead == Order::half ? x[n + i] : x[2 * i + 1];
    Real& y0 = T::kWrite == Order::half ? y[i] : y[2 * i];
    Real& y1 = T::kWrite == Order::half ? y[n + i] : y[2 * i + 1];
    if constexpr (T::kSource == Source::table) {
      if (a.angle.step == kSeparate) {
        rotate_pair<Separate<V>>(x0, x1, c[i], s[i], y0, y1);
        continue;
      }
      if (a.angle.step == kStepwise) {
        rotate_pair<Stepwise<V>>(x0, x1, c[i], s[i], y0, y1);
        continue;
      }
    }
    rotate_pair<Fused<V>>(x0, x1, c[i], s[i], y0, y1);
  }
#pragma unroll
  for (int i = 0; i < T::kWrites; ++i) {
    out[i] = pack<typename T::Storage, T::kWriteBytes>(y + i * (T::kWriteBytes / T::kSize));
  }
}

/// Half pairing over full rows: a lane holds 2 · kPairs neighbouring channels and its partner the
/// other channels of the same pairs. Each evaluates half of their angles and the two exchange them.
template <class T>
struct FullRow {
  using V = typename T::V;
  using Real = typename V::Real;
  static constexpr int n = T::kPairs;
  Real c[2 * n], s[2 * n];  ///< s signed for this lane: its output is own · c + partner · s
  std::uint32_t partner;

  __device__ __forceinline__ void exchange(const Real* own_c, const Real* own_s, bool upper) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const Real other_c = __shfl_xor_sync(~0u, own_c[i], partner);
      const Real other_s = __shfl_xor_sync(~0u, own_s[i], partner);
      c[i] = upper ? other_c : own_c[i];
      c[n + i] = upper ? own_c[i] : other_c;
      s[i] = upper ? other_s : -own_s[i];
      s[n + i] = upper ? own_s[i] : -other_s;
    }
  }

  /// x0·c − x1·s and x1·c + x0·s are one expression once s has its sign; the bits are the same,
  /// since negation rounds nothing.
  __device__ __forceinline__ Chunk<T::kBytes> rotate(const Chunk<T::kBytes>& own,
                                                     bool rotates) const {
    Chunk<T::kBytes> other;
#pragma unroll
    for (int w = 0; w < T::kBytes / 4; ++w) {
      other.word[w] = __shfl_xor_sync(~0u, own.word[w], partner);
    }
    Real x[2 * n], z[2 * n], y[2 * n];
    unpack<typename T::Storage>(own, x);
    unpack<typename T::Storage>(other, z);
#pragma unroll
    for (int i = 0; i < 2 * n; ++i) y[i] = Fused<V>::sum_of_products(x[i], c[i], z[i], s[i]);
    return rotates ? pack<typename T::Storage, T::kBytes>(y) : own;
  }
};

template <class T>
__global__ void __launch_bounds__(256, kLeastBlocks<T>) rotate_vectors(const __grid_constant__ Args a) {
  using V = typename T::V;
  using Real = typename V::Real;
  if (a.programmatic != 0) start_dependents();

  const std::uint32_t lane = threadIdx.x;
  Place place;
  if constexpr (T::kMap == Map::tokens) {
    const std::uint32_t g = blockIdx.x * blockDim.y + threadIdx.y;
    place = g < a.split ? place_of<T::kMap>(a.view[0], g, blockIdx.y)
                        : place_of<T::kMap>(a.view[1], g - a.split, blockIdx.y);
  } else if (blockIdx.x < a.split) {
    place = place_of<T::kMap>(a.view[0], blockIdx.x * blockDim.y + threadIdx.y, 0);
  } else {
    place = place_of<T::kMap>(a.view[1], (blockIdx.x - a.split) * blockDim.y + threadIdx.y, 0);
  }
  if constexpr (!kThreadsMeet<T>) {
    if (!place.live) return;
  }

  const bool rotates = lane < a.row.lanes;
  const std::uint32_t first_pair =
      !T::kFullRow ? lane * T::kPairs
                   : (lane & (a.row.lanes / 2 - 1)) * (2 * T::kPairs) +
                         ((lane & (a.row.lanes / 2)) != 0 ? T::kPairs : 0);
  std::int32_t at[T::kReads];
  if (rotates) {
    const Spot spot = spot_of<T, T::kRead>(a.row, lane);
#pragma unroll
    for (int i = 0; i < T::kReads; ++i) at[i] = spot.first + i * spot.next;
  } else {
#pragma unroll
    for (int i = 0; i < T::kReads; ++i) {
      at[i] = copied_chunk(a.row, lane - a.row.lanes + i * a.row.copy_lanes, T::kReadBytes);
    }
  }

  Chunk<T::kReadBytes> x[T::kHeads][T::kReads];
  const auto load = [&] {
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < T::kReads; ++i) {
        x[h][i] = load_chunk<T::kReadBytes>(place.in + h * place.in_head + at[i]);
      }
    }
  };

  Frequencies<Real, T::kPairs> frequencies;
  if constexpr (T::kSource != Source::table) {
    frequencies.load(a.angle, rotates ? first_pair : 0);
  }
  const RowPosition row = T::kSource == Source::general
                              ? check_components(a.position, place.position)
                              : integer_position(a.position, place.position, place.token);
  if (a.programmatic == 0) load();
  Real c[T::kPairs], s[T::kPairs];
  angles_of<V, T::kSource, T::kPairs>(a, row, place.position, rotates ? first_pair : 0,
                                      frequencies, c, s);
  if (a.programmatic != 0) {
    wait_for_predecessor();
    load();
  }
  if (row.bad && lane == 0 && place.live) atomicAdd(a.bad_rows, static_cast<unsigned long long>(T::kHeads));

  if constexpr (T::kFullRow) {
    FullRow<T> full;
    full.partner = a.row.lanes / 2;
    full.exchange(c, s, (lane & full.partner) != 0);
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
      const Chunk<T::kWriteBytes> y = full.rotate(x[h][0], rotates && !row.pass);
      if (place.live) store_chunk(place.out + h * place.out_head + at[0], y);
    }
  } else if constexpr (T::kMixed) {
    // In place another thread of the row may still have to read what this one writes.
    __syncthreads();
    if (!place.live) return;
    const Spot to = spot_of<T, T::kWrite>(a.row, lane);
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
      Chunk<T::kWriteBytes> y[T::kWrites];
      rotate_chunks<T>(a, x[h], c, s, y);
#pragma unroll
      for (int i = 0; i < T::kWrites; ++i) {
        store_chunk(place.out + h * place.out_head + to.first + i * to.next, y[i]);
      }
    }
  } else {
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
      if (rotates && !row.pass) rotate_chunks<T>(a, x[h], c, s, x[h]);
#pragma unroll
      for (int i = 0; i < T::kWrites; ++i) {
        store_chunk(place.out + h * place.out_head + at[i], x[h][i]);
      }
    }
  }
}

}  // namespace ropewalk::cuda
