// Cosines and sines of kCount neighbouring pairs of a row, from the phase or from a table.
#pragma once

#include <cstdint>

#include "phase/phase.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/lanes.h"
#include "rotate/cuda/positions_device.h"
#include "rotate/cuda/shapes.h"

namespace ropewalk::cuda {

/// Frequencies of neighbouring pairs, loaded before the position is known.
template <class Compute, int kCount>
struct Frequencies {
  static constexpr bool kPrecise = sizeof(Compute) == 8;
  std::uint64_t fraction[kCount];
  std::uint64_t low[kPrecise ? kCount : 1];

  __device__ __forceinline__ void load(const AngleArgs& a, std::uint32_t first) {
    if constexpr (kPrecise) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const ulonglong2 f = __ldg(reinterpret_cast<const ulonglong2*>(a.precise) + first + i);
        fraction[i] = f.x;
        low[i] = f.y;
      }
    } else if constexpr (kCount % 2 == 0) {
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) {
        const ulonglong2 f =
            __ldg(reinterpret_cast<const ulonglong2*>(a.fractions) + first / 2 + i);
        fraction[2 * i] = f.x;
        fraction[2 * i + 1] = f.y;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        fraction[i] = __ldg(reinterpret_cast<const unsigned long long*>(a.fractions) + first + i);
      }
    }
  }
};

/// c and s with amplitude and sign; NaN where the row is bad.
template <class V, Source kSource, int kCount>
__device__ __forceinline__ void angles_of(const Args& a, const RowPosition& row,
                                          std::int64_t index, std::uint32_t first,
                                          const Frequencies<typename V::Compute, kCount>& f,
                                          typename V::Real* c, typename V::Real* s) {
  using Real = typename V::Real;
  constexpr bool kPrecise = sizeof(Real) == 8;
  const Real nan = static_cast<Real>(__int_as_float(0x7fffffff));
  if constexpr (kSource == Source::table) {
    const std::int64_t at =
        (row.bad || row.pass ? 0 : row.value) * static_cast<std::int64_t>(a.row.pairs) + first;
    const Real sign = row.bad ? nan : static_cast<Real>(a.angle.sin_amplitude);
    const Real one = row.bad ? nan : Real{1};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      c[i] = V::mul(one, __ldg(static_cast<const Real*>(a.angle.table_cos) + at + i));
      s[i] = V::mul(sign, __ldg(static_cast<const Real*>(a.angle.table_sin) + at + i));
    }
  } else {
    const Real cos_amplitude = row.bad ? nan : static_cast<Real>(a.angle.cos_amplitude);
    const Real sin_amplitude = static_cast<Real>(a.angle.sin_amplitude);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      std::uint64_t phase;
      if constexpr (kSource == Source::general) {
        const int axis = a.angle.axis == nullptr ? 0 : __ldg(a.angle.axis + first + i);
        const FixedPosition p =
            row.bad ? FixedPosition{} : component_at(a.position, index, axis);
        const std::uint64_t low = kPrecise ? f.low[kPrecise ? i : 0] : 0;
        phase = is_fractional(a.position)
                    ? phase_of(p, f.fraction[i], low, __ldg(
                          reinterpret_cast<const long long*>(a.angle.whole) + first + i))
                    : phase_of(p.whole, f.fraction[i], low);
      } else if constexpr (kPrecise) {
        phase = phase_of(row.value, f.fraction[i], f.low[i]);
      } else {
        phase = phase_of(row.value, f.fraction[i]);
      }
      V::sincos(phase, c[i], s[i]);
      c[i] = V::mul(c[i], cos_amplitude);
      s[i] = V::mul(s[i], sin_amplitude);
    }
  }
}

}  // namespace ropewalk::cuda
