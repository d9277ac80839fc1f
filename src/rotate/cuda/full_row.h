// Half pairing where a lane holds 16 contiguous bytes of a row and finds the partners by shuffle.
#pragma once

#include <cstdint>

#include "rotate/cuda/lanes.h"
#include "rotate/pair.h"

namespace ropewalk::cuda {

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

}  // namespace ropewalk::cuda
