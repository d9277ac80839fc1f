// C structs in, C++ values out; every enumerator and size is checked.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "ropewalk/capi.h"
#include "ropewalk/config.h"
#include "ropewalk/rotate.h"
#include "ropewalk/table.h"

struct ropewalk_plan {
  ropewalk::RotaryPlan plan;
  std::string description;
};

struct ropewalk_table {
  ropewalk::RotaryTable table;
};

namespace ropewalk::capi {

/// The pointer as a reference; Error(invalid_argument) naming it where it is null.
template <class T>
[[nodiscard]] T& deref(T* pointer, const char* name) {
  require(pointer != nullptr, "{} must not be NULL", name);
  return *pointer;
}

/// A copy of a caller's struct, which may be of an older version (shorter: the rest is zero) or a
/// newer one (longer: what this library does not know must be zero). NULL: all zero.
template <class T>
[[nodiscard]] T known_part(const T* given, const char* name) {
  T copy{};
  if (given == nullptr) return copy;
  const std::size_t size = given->struct_size;
  // The upper bound keeps a struct_size that was never set from being read as a length.
  require(size >= sizeof(std::size_t) && size <= 4096,
          "{}.struct_size must be the size of the struct, got {}", name, size);
  std::memcpy(&copy, given, std::min(size, sizeof(T)));
  if (size > sizeof(T)) {
    const std::span<const char> rest(reinterpret_cast<const char*>(given) + sizeof(T),
                                     size - sizeof(T));
    require(std::ranges::all_of(rest, [](char c) { return c == 0; }),
            "{} sets a field that this version of the library does not know", name);
  }
  return copy;
}

[[nodiscard]] Dtype dtype_from(std::int32_t value);
[[nodiscard]] Pairing pairing_from(std::int32_t value);
[[nodiscard]] PlanOptions plan_options_from(const ropewalk_plan_options* options);
[[nodiscard]] Positions positions_from(const ropewalk_positions* positions);
/// `kernel` of the result points into *options.
[[nodiscard]] RotateOptions rotate_options_from(const ropewalk_rotate_options* options);

/// The rotations of one call; up to eight without an allocation.
class Rotations {
 public:
  Rotations(const ropewalk_rotation* rotations, std::size_t count);
  Rotations(const Rotations&) = delete;
  Rotations& operator=(const Rotations&) = delete;
  [[nodiscard]] std::span<const Rotation> span() const noexcept { return {data_, count_}; }

 private:
  std::array<Rotation, 8> few_{};
  std::vector<Rotation> many_;
  Rotation* data_ = nullptr;
  std::size_t count_;
};

}  // namespace ropewalk::capi
