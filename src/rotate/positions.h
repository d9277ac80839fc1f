// Positions, checked once and then read a run of tokens at a time.
#pragma once

#include <cstdint>

#include "phase/phase.h"
#include "ropewalk/rotate.h"

namespace ropewalk {

/// What a call allows.
struct PositionRules {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  int axes = 1;           ///< of the plan
  std::int64_t rows = 0;  ///< of the table; 0: no table
  bool float64_data = false;
};

/// Checks everything but the values: counts, axes, types, pointers. Throws Error(invalid_argument).
void check_description(const Positions& positions, const PositionRules& rules);

/// Checks the run of positions of Kind::offset. Throws Error(bad_position).
void check_offset(const Positions& positions, const PositionRules& rules);

/// Reads positions that have been checked. Copies only the description: the arrays stay the
/// caller's.
class PositionReader {
 public:
  /// Checks the description and every position. Throws Error(invalid_argument) or
  /// Error(bad_position) naming the first bad one and the limit.
  PositionReader(const Positions& positions, const PositionRules& rules);

  /// Positions of tokens [first, first + count) of a batch row: count × axes values, and whether
  /// each token is padding (`pass` may be null where has_padding() is false).
  void read(std::int64_t batch, std::int64_t first, std::int64_t count, FixedPosition* out,
            bool* pass) const;

  [[nodiscard]] bool has_padding() const noexcept { return positions_.padding.has_value(); }
  [[nodiscard]] bool is_fractional() const noexcept {
    return positions_.kind == Positions::Kind::per_token &&
           (positions_.type == Positions::Type::float32 ||
            positions_.type == Positions::Type::float64);
  }

 private:
  void check_values() const;
  void check_range(std::int64_t first, std::int64_t last) const;
  void check_packed() const;
  [[nodiscard]] std::int64_t integer(std::int64_t index) const;
  [[nodiscard]] std::int64_t boundary(std::int64_t index) const;
  [[nodiscard]] double fraction(std::int64_t index) const;
  [[nodiscard]] std::int64_t index_of(std::int64_t axis, std::int64_t batch,
                                      std::int64_t token) const;
  [[nodiscard]] bool is_padding(std::int64_t batch, std::int64_t token) const;
  [[nodiscard]] std::int64_t sequence_of(std::int64_t token) const;

  Positions positions_;
  PositionRules rules_;
};

}  // namespace ropewalk
