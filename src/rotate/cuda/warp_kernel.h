// The kernels of the common layouts: a warp owns several heads of one token, each lane evaluates a
// share of the angles, and the lanes exchange them by shuffle. What the first loads wait for are
// the first 48 bytes of the arguments, and the instructions are few: up to 66 MB both are what the
// time goes to.
#pragma once

#include <cstdint>

#include "rotate/cuda/angles_device.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/positions_device.h"
#include "rotate/cuda/programmatic.h"
#include "rotate/cuda/rotate_chunks.h"
#include "rotate/cuda/warp_rows.h"

namespace ropewalk::cuda {

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
