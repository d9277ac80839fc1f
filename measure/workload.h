// q and k of one rotation, in memory of their own, with the positions they stand at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/buffer.h"
#include "measure/traffic.h"
#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"

namespace ropewalk::measure {

/// Order of dimensions in memory. THD is BTHD with one batch row.
enum class Layout : std::uint8_t { bthd, bhtd };
[[nodiscard]] std::string_view name_of(Layout layout) noexcept;

/// One rotation to verify and time.
struct Case {
  RotaryPlan plan;
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t query_heads = 1;
  std::int64_t key_heads = 1;  ///< 0: q alone
  /// Channels of a head in memory before the rotated tensor begins, 0 where the head is all there
  /// is: MLA's query head is [nope | rope] and its key row [compressed | rope], of which the
  /// rotation sees the slice `rope` with the strides of the whole. Not written.
  std::int64_t query_lead = 0;
  std::int64_t key_lead = 0;
  Dtype dtype = Dtype::bfloat16;
  Layout layout = Layout::bthd;
  Direction direction = Direction::forward;
  bool in_place = false;
  std::int64_t start = 0;   ///< position of the first token
  int threads = 0;          ///< 0: all available
  std::string kernel = {};  ///< empty: the best
};

[[nodiscard]] Shape shape_of(const Case& c) noexcept;

/// The memory of a case. Inputs are normal random numbers; outputs are poisoned.
class Workload {
 public:
  explicit Workload(const Case& c, std::uint64_t seed);

  /// The rotations of the case: q, and k where it has heads.
  [[nodiscard]] const std::vector<Rotation>& rotations() const noexcept { return rotations_; }
  /// Inputs that no rotation overwrites, in the order of rotations().
  [[nodiscard]] const std::vector<ConstTensorView>& originals() const noexcept {
    return originals_;
  }
  /// The memory in which the views of one rotation lie; in place both are the memory rotated.
  struct Memory {
    std::span<std::byte> in, out;
  };
  [[nodiscard]] std::vector<Memory> memory() const;
  [[nodiscard]] const Positions& positions() const noexcept { return positions_; }
  /// The position of one token as positions of a single-token call.
  [[nodiscard]] Positions position_of(std::int64_t token) const noexcept;

  /// Rotates as the case says; `kernel` replaces its kernel where not empty.
  void rotate(std::string_view kernel = {}) const;
  /// Puts outputs back as they were before the first rotation.
  void reset() const;

 private:
  struct Tensor {
    Buffer in, out;  ///< in place: `out` is the memory rotated, `in` its original
  };
  void add(std::int64_t heads, std::int64_t lead, std::uint64_t seed);

  Case case_;
  std::vector<Tensor> tensors_;
  std::vector<Rotation> rotations_;
  std::vector<ConstTensorView> originals_;
  std::vector<std::int64_t> position_data_;
  Positions positions_;
};

}  // namespace ropewalk::measure
