// Positions in device memory: nobody could check them before the launch, so each is checked here.
#pragma once

#include <cstdint>

#include "phase/phase.h"
#include "rotate/cuda/arguments.h"

namespace ropewalk::cuda {

/// The position of one row.
struct RowPosition {
  std::int64_t value = 0;
  bool bad = false;   ///< outside the limits: the row becomes NaN
  bool pass = false;  ///< padding: the row passes through unchanged
};

__device__ __forceinline__ std::int64_t integer_at(const void* data, std::uint32_t type,
                                                   std::int64_t index) {
  return type == PositionArgs::kInt32 ? __ldg(static_cast<const int*>(data) + index)
                                      : __ldg(static_cast<const long long*>(data) + index);
}

/// The last sequence that begins at or before the token. The active threads of a warp search
/// together for the token of the first of them, each probing another boundary: three rounds of
/// loads for 32 768 sequences. From there every thread walks to its own, which is near.
__device__ __forceinline__ std::int64_t sequence_of(const PositionArgs& a, std::int64_t token) {
  const unsigned active = __activemask();
  unsigned below;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  const int rank = __popc(active & below);
  const int searchers = __popc(active);
  const std::int64_t target = __shfl_sync(active, token, __ffs(active) - 1);
  std::int64_t low = 0;
  std::int64_t count = a.sequences;
  while (count > 1) {
    const std::int64_t step = (count + searchers) / (searchers + 1);
    const std::int64_t probe = low + (rank + 1) * step;
    const bool before = probe < low + count && integer_at(a.cu_seqlens, a.cu_type, probe) <= target;
    const std::int64_t end = low + count;
    low += __popc(__ballot_sync(active, before)) * step;
    count = end - low < step ? end - low : step;
  }
  while (low + 1 < a.sequences && integer_at(a.cu_seqlens, a.cu_type, low + 1) <= token) ++low;
  while (low > 0 && integer_at(a.cu_seqlens, a.cu_type, low) > token) --low;
  return low;
}

/// What memory holds for a row, loaded before anything is done with it.
__device__ __forceinline__ std::int64_t fetch_position(const PositionArgs& a, const void* data,
                                                       std::int64_t index) {
  if (a.type == PositionArgs::kInt64) return __ldg(static_cast<const long long*>(data) + index);
  if (a.type == PositionArgs::kInt32) return __ldg(static_cast<const int*>(data) + index);
  return 0;
}

/// The position of a token in packed sequences.
__device__ __forceinline__ RowPosition packed_position(const PositionArgs& a, std::int64_t token) {
  RowPosition p;
  if (a.sequences == 0) {
    p.bad = true;
    return p;
  }
  const std::int64_t s = sequence_of(a, token);
  const std::int64_t first = integer_at(a.cu_seqlens, a.cu_type, s);
  p.bad = token < first || token >= integer_at(a.cu_seqlens, a.cu_type, s + 1);
  p.value = token - first;
  if (a.type != PositionArgs::kNone) p.value += integer_at(a.data, a.type, s);
  return p;
}

/// Where there are neither packed sequences nor padding.
__device__ __forceinline__ RowPosition plain_position(const PositionArgs& a, std::int64_t fetched,
                                                      std::int32_t token) {
  RowPosition p;
  p.value = fetched + a.start;
  if (a.by_token != 0) p.value += token;
  p.bad = static_cast<std::uint64_t>(p.value - a.low) >= static_cast<std::uint64_t>(a.range);
  return p;
}

/// One integer component, from what was fetched.
__device__ __forceinline__ RowPosition resolve_position(const PositionArgs& a, std::int64_t fetched,
                                                        std::int64_t token) {
  RowPosition p;
  if (a.cu_seqlens != nullptr) {
    p = packed_position(a, token);
  } else {
    p.value = a.start + fetched + (a.by_token != 0 ? token : 0);
  }
  p.bad = p.bad || p.value < a.low || p.value >= a.limit;
  p.pass = a.has_padding != 0 && p.value == a.padding;
  p.bad = p.bad && !p.pass;
  return p;
}

__device__ __forceinline__ bool is_fractional(const PositionArgs& a) {
  return a.type == PositionArgs::kFloat32 || a.type == PositionArgs::kFloat64;
}

__device__ __forceinline__ double fraction_at(const PositionArgs& a, std::int64_t index) {
  return a.type == PositionArgs::kFloat32
             ? static_cast<double>(__ldg(static_cast<const float*>(a.data) + index))
             : __ldg(static_cast<const double*>(a.data) + index);
}

/// Several components, integers or fractions: a row is bad if one of them is, and padding if all
/// are. The values are read again per pair (component_at), from the cache.
__device__ __forceinline__ RowPosition check_components(const PositionArgs& a, std::int64_t index) {
  RowPosition p;
  bool padding = a.has_padding != 0;
  for (int axis = 0; axis < a.axes; ++axis) {
    const std::int64_t at = index + axis * a.axis_stride;
    if (is_fractional(a)) {
      const double value = fraction_at(a, at);
      p.bad = p.bad || !(fabs(value) < static_cast<double>(a.limit));
      padding = padding && value == static_cast<double>(a.padding);
    } else {
      const std::int64_t value = integer_at(a.data, a.type, at);
      p.bad = p.bad || value < a.low || value >= a.limit;
      padding = padding && value == a.padding;
    }
  }
  p.pass = padding;
  p.bad = p.bad && !padding;
  return p;
}

/// Several integer components, without padding.
__device__ __forceinline__ RowPosition check_axes(const PositionArgs& a, std::int32_t index) {
  RowPosition p;
  for (int axis = 0; axis < a.axes; ++axis) {
    const std::int64_t value = integer_at(a.data, a.type, index + axis * a.axis_stride);
    p.bad |= static_cast<std::uint64_t>(value - a.low) >= static_cast<std::uint64_t>(a.range);
  }
  return p;
}

/// The component that a pair reads; only for rows that are not bad.
__device__ __forceinline__ FixedPosition component_at(const PositionArgs& a, std::int64_t index,
                                                      int axis) {
  const std::int64_t at = index + (a.axes == 1 ? 0 : axis) * a.axis_stride;
  if (is_fractional(a)) return fixed_position(fraction_at(a, at));
  return {integer_at(a.data, a.type, at), 0};
}

}  // namespace ropewalk::cuda
