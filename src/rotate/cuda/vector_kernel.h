// The fast kernels: a thread owns a few neighbouring pairs of several heads of one token, loads all
// of them before it stores the first, and evaluates their sines once. No shared memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rotate/cuda/angles_device.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/full_row.h"
#include "rotate/cuda/index_device.h"
#include "rotate/cuda/lanes.h"
#include "rotate/cuda/policy.h"
#include "rotate/cuda/programmatic.h"
#include "rotate/cuda/rotate_chunks.h"

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
  static constexpr int kPairs = kPairs_;       ///< of a thread and head
  static constexpr int kHeads = kHeads_;       ///< of a thread
  static constexpr bool kFullRow = kFullRow_;  ///< half pairing by shuffles
  static constexpr bool kMixed = kRead != kWrite;
  static constexpr bool kPlain = kSource == Source::plain;

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

/// Bytes from the first channel of the window to a thread's first chunk, and from there to its
/// next.
struct Spot {
  std::int32_t first;
  std::int32_t next;
};

template <class T, Order kOrder>
__device__ __forceinline__ Spot spot_of(const RowArgs& row, std::uint32_t half,
                                        std::uint32_t lane) {
  if constexpr (T::kFullRow || kOrder == Order::interleaved) {
    return {static_cast<std::int32_t>(lane) * T::kBytes,
            kOrder == T::kRead ? T::kReadBytes : T::kWriteBytes};
  } else {
    const auto pair = static_cast<std::int32_t>(lane) * T::kPairs;
    std::int32_t blocks_before = 0;
    if (!T::kPlain && row.block_pairs != row.pairs) {
      blocks_before = pair / static_cast<std::int32_t>(row.block_pairs);
    }
    return {(pair + blocks_before * static_cast<std::int32_t>(row.block_pairs)) * T::kSize,
            static_cast<std::int32_t>(half)};
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

/// Which rows a thread works on.
struct Place {
  std::uint32_t i0, i1, i2;
  bool live;
};

/// The token map: `g` counts groups of heads, `outer` tokens.
__device__ __forceinline__ Place place_in_token(const VectorView& view, std::uint32_t g,
                                                std::uint32_t outer, bool three) {
  Place p{g, outer, 0, g < view.size0};
  if (three) {
    p.i2 = quotient(outer, view.multiplier1, view.shifts >> 8);
    p.i1 = outer - p.i2 * view.size1;
  }
  return p;
}

/// The sweep: `g` counts everything.
__device__ __forceinline__ Place place_in_sweep(const VectorView& view, std::uint32_t g,
                                                bool three) {
  Place p{0, 0, 0, g < view.groups};
  if (!p.live) g = 0;
  p.i1 = quotient(g, view.multiplier0, view.shifts & 255);
  p.i0 = g - p.i1 * view.size0;
  if (three) {
    p.i2 = quotient(p.i1, view.multiplier1, view.shifts >> 8);
    p.i1 -= p.i2 * view.size1;
  }
  return p;
}

__device__ __forceinline__ std::int64_t along(const Place& p, std::int32_t s0, std::int32_t s1,
                                              std::int64_t s2, bool three) {
  std::int64_t sum = add_product(p.i1, s1, add_product(p.i0, s0, 0));
  if (three) sum += static_cast<std::int64_t>(p.i2) * s2;
  return sum;
}
__device__ __forceinline__ std::int32_t along32(const Place& p, std::int32_t s0, std::int32_t s1,
                                                std::int32_t s2) {
  return static_cast<std::int32_t>(p.i0) * s0 + static_cast<std::int32_t>(p.i1) * s1 +
         static_cast<std::int32_t>(p.i2) * s2;
}

/// Whether threads must stay to the end because others wait for them.
template <class T>
inline constexpr bool kThreadsMeet = T::kFullRow || T::kMixed;

/// Single pairs make wide rows: rotary_dim 1024 has 512 of them.
template <class T>
inline constexpr int kMostThreads = T::kPairs == 1 ? 512 : 256;

/// Named only where the compiler, left alone, takes so few registers that it spills.
template <class T>
inline constexpr int kLeastBlocks = T::kPairs * T::kHeads >= 16 ? 4 : 1;

/// What a thread knows once its loads are on their way.
template <class T>
struct Rows {
  Chunk<T::kReadBytes> x[T::kHeads][T::kReads];
  std::int32_t at[T::kReads];  ///< bytes from the window's first channel
  const char* in;
  char* out;
  std::int32_t in_head, out_head;
  std::int32_t heads;    ///< of this thread; fewer than kHeads in a ragged group
  std::int32_t index;    ///< into the position array
  std::int64_t fetched;  ///< what it holds there
  std::int32_t token;
  bool live;

  [[nodiscard]] __device__ __forceinline__ bool has(int h) const {
    return T::kPlain || T::kHeads == 1 || h < heads;
  }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
      if (!has(h)) continue;
#pragma unroll
      for (int i = 0; i < T::kReads; ++i) {
        x[h][i] = load_chunk<T::kReadBytes>(in + static_cast<std::int64_t>(h) * in_head + at[i]);
      }
    }
  }

  /// Finds the rows of one tensor and starts their loads, in the order in which results are needed.
  template <int kView>
  __device__ __forceinline__ void begin(const VectorArgs& a, std::uint32_t g) {
    const VectorView& view = a.view[kView];
    const bool three = (a.flags & kThreeIndices) != 0;
    const Place place = T::kMap == Map::tokens ? place_in_token(view, g, blockIdx.y, three)
                                               : place_in_sweep(view, g, three);
    live = place.live;
    if constexpr (!kThreadsMeet<T>) {
      if (!live) return;
    }
    index = along32(place, view.position0, view.position1, view.position2);
    if constexpr (T::kSource != Source::general && T::kSource != Source::axes) {
      fetched = fetch_position(a.position, a.position_data, index);
    }
    const std::int64_t offset = T::kMap == Map::sweep && (a.flags & kLinear) != 0
                                    ? static_cast<std::int64_t>(live ? g : 0) * view.in0
                                    : along(place, view.in0, view.in1, view.in2, three);
    in = a.in[kView] + offset;
    in_head = view.in_head;
    heads = T::kHeads;
    if (!T::kPlain && T::kHeads > 1 && (a.flags & kRaggedHeads) != 0) {
      const std::uint32_t which = a.head_index[kView];
      const std::uint32_t group =
          which == 0 ? place.i0 : (which == 1 ? place.i1 : (which == 2 ? place.i2 : 0));
      heads = static_cast<std::int32_t>(a.heads[kView] - group * T::kHeads);
    }
    if ((a.flags & kProgrammatic) == 0) load();
    const std::int64_t out_offset = (a.flags & kSameStrides) != 0
                                        ? offset
                                        : along(place, view.out0, view.out1, view.out2, three);
    out = a.out[kView] + out_offset;
    out_head = view.out_head;
    token = along32(place, view.token0, view.token1, view.token2);
  }
};

/// The first of a thread's pairs, whose angles it evaluates.
template <class T>
__device__ __forceinline__ std::uint32_t first_pair_of(std::uint32_t lane, std::uint32_t lanes) {
  if constexpr (!T::kFullRow) return lane * T::kPairs;
  const std::uint32_t half = lanes / 2;
  return (lane & (half - 1)) * (2 * T::kPairs) + ((lane & half) != 0 ? T::kPairs : 0);
}

/// Rotates what was loaded and stores it.
template <class T>
__device__ __forceinline__ void finish(const VectorArgs& a, Rows<T>& rows, const RowPosition& row,
                                       bool rotates, const typename T::Compute* c,
                                       const typename T::Compute* s) {
  const auto out_of = [&](int h) {
    return rows.out + static_cast<std::int64_t>(h) * rows.out_head;
  };
  if constexpr (T::kFullRow) {
    FullRow<T> full;
    full.partner = a.lanes / 2;
    full.exchange(c, s, (threadIdx.x & full.partner) != 0);
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
      const Chunk<T::kWriteBytes> y = full.rotate(rows.x[h][0], rotates && !row.pass);
      if (rows.live && rows.has(h)) store_chunk(out_of(h) + rows.at[0], y);
    }
  } else if constexpr (T::kMixed) {
    // In place another thread of the row may still have to read what this one writes.
    if ((a.flags & kMayCollide) != 0) __syncthreads();
    if (!rows.live) return;
    const Spot to = spot_of<T, T::kWrite>(a.row, a.half, threadIdx.x);
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
      if (!rows.has(h)) continue;
      Chunk<T::kWriteBytes> y[T::kWrites];
      rotate_chunks<T>(a.angle.step, rows.x[h], c, s, y);
#pragma unroll
      for (int i = 0; i < T::kWrites; ++i) store_chunk(out_of(h) + to.first + i * to.next, y[i]);
    }
  } else {
#pragma unroll
    for (int h = 0; h < T::kHeads; ++h) {
      if (!rows.has(h)) continue;
      if (rotates && !row.pass) rotate_chunks<T>(a.angle.step, rows.x[h], c, s, rows.x[h]);
#pragma unroll
      for (int i = 0; i < T::kWrites; ++i) store_chunk(out_of(h) + rows.at[i], rows.x[h][i]);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kMostThreads<T>, kLeastBlocks<T>)
    rotate_vectors(const __grid_constant__ VectorArgs a) {
  using V = typename T::V;
  using Real = typename V::Real;
  if ((a.flags & kProgrammatic) != 0) start_dependents();

  const std::uint32_t lane = threadIdx.x;
  const bool rotates = T::kPlain || lane < a.lanes;
  Rows<T> rows;
  if (rotates) {
    const Spot spot = spot_of<T, T::kRead>(a.row, a.half, lane);
#pragma unroll
    for (int i = 0; i < T::kReads; ++i) rows.at[i] = spot.first + i * spot.next;
  } else {
#pragma unroll
    for (int i = 0; i < T::kReads; ++i) {
      rows.at[i] = copied_chunk(a.row, lane - a.lanes + i * a.row.copy_lanes, T::kReadBytes);
    }
  }
  const std::uint32_t first_pair = rotates ? first_pair_of<T>(lane, a.lanes) : 0;
  Frequencies<Real, T::kPairs> frequencies;
  if constexpr (T::kSource != Source::table) frequencies.load(a.frequencies, first_pair);

  const std::uint32_t g = blockIdx.x * blockDim.y + threadIdx.y;
  if constexpr (T::kMap == Map::tokens) {
    if (g < a.split) {
      rows.template begin<0>(a, g);
    } else {
      rows.template begin<1>(a, g - a.split);
    }
  } else if (blockIdx.x < a.split) {
    rows.template begin<0>(a, g);
  } else {
    rows.template begin<1>(a, g - a.split * blockDim.y);
  }
  if constexpr (!kThreadsMeet<T>) {
    if (!rows.live) return;
  }

  RowPosition row;
  if constexpr (T::kPlain) {
    row = plain_position(a.position, rows.fetched, rows.token);
  } else if constexpr (T::kSource == Source::axes) {
    row = check_axes(a.position, rows.index);
  } else if constexpr (T::kSource == Source::general) {
    row = check_components(a.position, rows.index);
  } else {
    row = resolve_position(a.position, rows.fetched, rows.token);
  }
  Real c[T::kPairs], s[T::kPairs];
  angles_of<V, T::kSource, T::kPairs>(a.angle, a.position, a.row.pairs, row, rows.index, first_pair,
                                      frequencies, c, s);
  if ((a.flags & kProgrammatic) != 0) {
    wait_for_predecessor();
    rows.load();
  }
  if (row.bad && lane == 0 && rows.live) {
    const int bad = !T::kPlain && rows.heads < T::kHeads ? rows.heads : T::kHeads;
    atomicAdd(a.bad_rows, static_cast<unsigned long long>(bad));
  }
  finish<T>(a, rows, row, rotates, c, s);
}

}  // namespace ropewalk::cuda
