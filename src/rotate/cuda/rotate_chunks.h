// The pairs of one thread in one row: from chunks of memory through rotate/pair.h to chunks.
#pragma once

#include <cstdint>

#include "rotate/cuda/arguments.h"
#include "rotate/cuda/lanes.h"
#include "rotate/cuda/policy.h"
#include "rotate/cuda/shapes.h"
#include "rotate/pair.h"

namespace ropewalk::cuda {

/// T has Storage, V, kRead, kWrite, kSource, kPairs, kSize, and bytes and numbers of chunks. `step`
/// counts where angles come from a table.
template <class T>
__device__ __forceinline__ void rotate_chunks(std::uint32_t step, const Chunk<T::kReadBytes>* in,
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
      if (step == kSeparate) {
        rotate_pair<Separate<V>>(x0, x1, c[i], s[i], y0, y1);
        continue;
      }
      if (step == kStepwise) {
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

}  // namespace ropewalk::cuda
