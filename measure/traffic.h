// Bytes that a rotation has to move, by formula: nothing here is measured.
#pragma once

#include <cstdint>

#include "ropewalk/types.h"

namespace ropewalk::measure {

/// Sizes of a rotation of q and k. All counts at least 1.
struct Shape {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t query_heads = 1;
  std::int64_t key_heads = 1;  ///< 0: q alone
  std::int64_t head_dim = 1;
  std::int64_t rotary_dim = 1;
  Dtype dtype = Dtype::float32;
};

/// Each byte read once and written once:
/// 2 · batch · tokens · (query_heads + key_heads) · channels · size, where `channels` is rotary_dim
/// in place and head_dim out of place, since the channels outside the window move too. Positions
/// are not counted.
[[nodiscard]] std::int64_t necessary_bytes(const Shape& shape, bool in_place) noexcept;

/// What a benchmark reports that counts the tensor three times (x read, cos and sin read, y
/// written) although cos and sin are shared by heads and batch: 1.5 × necessary_bytes. Printed
/// beside the honest number where someone compares with such a figure.
[[nodiscard]] std::int64_t three_times_counted_bytes(const Shape& shape, bool in_place) noexcept;

}  // namespace ropewalk::measure
