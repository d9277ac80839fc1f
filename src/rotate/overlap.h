// Do two strided views share a byte? Decided exactly where it can be, and said where it cannot.
#pragma once

#include "ropewalk/types.h"

namespace ropewalk {

enum class Overlap : std::uint8_t { none, shared, undecided };

/// Whether any element of `a` shares a byte with any element of `b`. Both have elements.
[[nodiscard]] Overlap overlap_of(const ConstTensorView& a, const ConstTensorView& b);

/// False where two elements of the view share a byte, or where that cannot be excluded.
[[nodiscard]] bool elements_are_disjoint(const ConstTensorView& view);

}  // namespace ropewalk
