// The three row dimensions of a view in memory order, merged where memory allows it.
#pragma once

#include <array>
#include <cstdint>

#include "ropewalk/rotate.h"
#include "rotate/cuda/arguments.h"

namespace ropewalk::cuda {

/// A dimension of rows: strides in bytes, and what a step does to the position.
struct RowDimension {
  std::int64_t size = 1;
  std::int64_t in = 0, out = 0;
  std::int64_t position = 0;  ///< elements of the position array
  std::int64_t token = 0;
  bool heads = false;  ///< counts groups of heads
};

/// What a step along a dimension means for positions.
struct PositionStrides {
  std::int64_t batch = 0, token = 0;              ///< elements of the position array
  std::int64_t batch_token = 0, token_token = 1;  ///< of the token number
};
[[nodiscard]] PositionStrides position_strides(const Positions& positions);

/// Fastest first. With `head_first` the groups of heads come first whatever their stride is.
[[nodiscard]] std::array<RowDimension, 3> row_dimensions(const Rotation& rotation,
                                                         const PositionStrides& strides,
                                                         std::int64_t heads_per_group,
                                                         bool head_first);

/// Everything of a view but its pointers.
[[nodiscard]] ViewArgs view_of(const std::array<RowDimension, 3>& dimensions);

/// The same for the vector kernels; false where a number does not fit its 32 bits.
[[nodiscard]] bool fill_view(const std::array<RowDimension, 3>& dimensions, VectorView& view);

/// Which of the three counts groups of heads; 3 where there is one group.
[[nodiscard]] std::uint32_t head_index(const std::array<RowDimension, 3>& dimensions);

}  // namespace ropewalk::cuda
