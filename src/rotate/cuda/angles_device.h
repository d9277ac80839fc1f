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

  /// `frequencies` are a.precise for float64, else a.fractions.
  __device__ __forceinline__ void load(const void* frequencies, std::uint32_t first) {
    if constexpr (kPrecise) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const ulonglong2 f = __ldg(static_cast<const ulonglong2*>(frequencies) + first + i);
        fraction[i] = f.x;
        low[i] = f.y;
      }
    } else if constexpr (kCount % 2 == 0) {
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) {
        const ulonglong2 f = __ldg(static_cast<const ulonglong2*>(frequencies) + first / 2 + i);
        fraction[2 * i] = f.x;
        fraction[2 * i + 1] = f.y;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        fraction[i] = __ldg(static_cast<const unsigned long long*>(frequencies) + first + i);
      }
    }
  }
};

/// c and s with amplitude and sign; NaN where the row is bad.
template <class V, Source kSource, int kCount>
__device__ __forceinline__ void angles_of(const AngleArgs& a, const PositionArgs& position,
                                          std::uint32_t pairs, const RowPosition& row,
                                          std::int64_t index, std::uint32_t first,
                                          const Frequencies<typename V::Compute, kCount>& f,
                                          typename V::Real* c, typename V::Real* s) {
  using Real = typename V::Real;
  constexpr bool kPrecise = sizeof(Real) == 8;
  const Real nan = static_cast<Real>(__int_as_float(0x7fffffff));
  if constexpr (kSource == Source::table) {
    const std::int64_t at =
        (row.bad || row.pass ? 0 : row.value) * static_cast<std::int64_t>(pairs) + first;
    const Real sign = row.bad ? nan : static_cast<Real>(a.sin_amplitude);
    const Real one = row.bad ? nan : Real{1};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      c[i] = V::mul(one, __ldg(static_cast<const Real*>(a.table_cos) + at + i));
      s[i] = V::mul(sign, __ldg(static_cast<const Real*>(a.table_sin) + at + i));
    }
  } else {
    Real cos_amplitude, sin_amplitude;
    if constexpr (kPrecise) {
      cos_amplitude = a.cos_amplitude;
      sin_amplitude = a.sin_amplitude;
    } else {
      cos_amplitude = a.cos_amplitude32;
      sin_amplitude = a.sin_amplitude32;
    }
    if (row.bad) cos_amplitude = nan;
    [[maybe_unused]] int axis = -1;
    [[maybe_unused]] FixedPosition p;
    [[maybe_unused]] std::uint32_t four_axes = 0;
    if constexpr (kSource == Source::axes && kCount == 4) {
      four_axes = __ldg(reinterpret_cast<const unsigned*>(a.axis + first));
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      std::uint64_t phase;
      if constexpr (kSource == Source::axes) {
        const int next = kCount == 4 ? static_cast<int>(four_axes >> (8 * i) & 255)
                                     : static_cast<int>(__ldg(a.axis + first + i));
        if (next != axis) {
          p.whole = integer_at(position.data, position.type, index + next * position.axis_stride);
        }
        axis = next;
        phase = kPrecise ? phase_of(p.whole, f.fraction[i], f.low[kPrecise ? i : 0])
                         : phase_of(p.whole, f.fraction[i]);
      } else if constexpr (kSource == Source::general) {
        // Neighbouring pairs mostly share an axis, and then the component.
        const int next = a.axis == nullptr ? 0 : __ldg(a.axis + first + i);
        if (next != axis && !row.bad) p = component_at(position, index, next);
        axis = next;
        const std::uint64_t low = kPrecise ? f.low[kPrecise ? i : 0] : 0;
        phase = is_fractional(position)
                    ? phase_of(p, f.fraction[i], low,
                               __ldg(reinterpret_cast<const long long*>(a.whole) + first + i))
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
