// Argument checks of rotate, before anything is written. Shared by CPU and CUDA.
#pragma once

#include <span>

#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"

namespace ropewalk {

/// What the checks establish about a call.
struct CheckedCall {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  Dtype dtype = Dtype::float32;
  bool empty = true;  ///< nothing to do
  std::int64_t bytes_written = 0;
};

/// The same pointer and the same strides, where a dimension has more than one element.
[[nodiscard]] inline bool is_in_place(const Rotation& rotation) noexcept {
  if (rotation.in.data != rotation.out.data) return false;
  for (std::size_t d = 0; d < 4; ++d) {
    if (rotation.in.size[d] > 1 && rotation.in.stride[d] != rotation.out.stride[d]) return false;
  }
  return true;
}

/// Shapes, dtypes, pointers, sizes and overlap. Throws Error(invalid_argument) naming the argument
/// ("rotations[1].out", …).
[[nodiscard]] CheckedCall check_rotations(const RotaryPlan& plan,
                                          std::span<const Rotation> rotations);

}  // namespace ropewalk
