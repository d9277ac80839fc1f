// Tables that the caller brings as tensors: the rows a call needs, as the core wants them.
#pragma once

#include <cstdint>
#include <vector>

#include "arguments.h"
#include "ropewalk/table.h"

namespace ropewalk::torch_ops {

/// The rows of cos and sin that a call reads, gathered into a RotaryTable with a row for each
/// described token, and the positions that index it. The data is on the CPU.
class UserTable {
 public:
  /// cos and sin: (rows, rotary_dim / 2), or (rows, rotary_dim) with every value twice in the
  /// plan's pairing, of any floating dtype; amplitude included. Throws Error(bad_position) for a
  /// position outside [0, rows) and Error(invalid_argument) for a wrong shape, or for a row that
  /// is read whose two copies of a value differ.
  UserTable(const RotaryPlan& plan, const TensorArgument& cos, const TensorArgument& sin,
            const Positions& positions, const ConstTensorView& view);

  [[nodiscard]] const RotaryTable& table() const noexcept { return table_; }
  [[nodiscard]] Positions positions() const noexcept;

 private:
  bool per_batch_;
  std::int64_t tokens_;
  std::vector<std::int64_t> rows_;  ///< where each described token's row lies in table_
  bool has_padding_;
  RotaryTable table_;
};

}  // namespace ropewalk::torch_ops
