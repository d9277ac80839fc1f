// From a checked call to kernel arguments: facts for the policy, then strides, merged dimensions,
// divisors and the grid. Host code without CUDA calls.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "ropewalk/rotate.h"
#include "rotate/check.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/policy.h"

namespace ropewalk::cuda {

/// What the device holds of a plan or table.
struct DevicePointers {
  AngleArgs angle;  ///< pointers alone
  unsigned long long* bad_rows = nullptr;
  std::int64_t table_rows = 0;  ///< 0: no table
  bool table_is_double = false;
};

/// One or two tensors with elements, of one call.
struct PreparedCall {
  const RotaryPlan* plan = nullptr;
  std::array<Rotation, 2> views{};  ///< q and k, or one where they lie side by side
  std::size_t count = 0;
  const Positions* positions = nullptr;
  Direction direction = Direction::forward;
  bool table = false;
  Call facts;
};

/// The facts that choose a policy. `rotations` has one or two entries, none empty.
[[nodiscard]] PreparedCall prepare_call(const RotaryPlan& plan, const DevicePointers& device,
                                        std::span<const Rotation> rotations,
                                        const Positions& positions, Direction direction,
                                        int compute_capability);

struct Grid {
  std::uint32_t blocks_x = 1, blocks_y = 1;
  std::uint32_t threads_x = 1, threads_y = 1;
};

/// For the narrow path.
[[nodiscard]] Grid fill_args(const PreparedCall& call, const DevicePointers& device,
                             bool programmatic, Args& args);

/// For a vector kernel. Nothing where a stride or size is too large for it.
[[nodiscard]] std::optional<Grid> fill_args(const PreparedCall& call, const DevicePointers& device,
                                            const Policy& policy, bool programmatic,
                                            VectorArgs& args);

/// For a warp kernel; those of the token map take the first part alone. Nothing where a stride or
/// count is too large.
[[nodiscard]] std::optional<Grid> fill_args(const PreparedCall& call, const DevicePointers& device,
                                            const Policy& policy, bool programmatic,
                                            WarpSweepArgs& args);

/// The tokens of all batch rows as one dimension where memory and positions allow it.
struct TokenDimension {
  std::size_t dimension = kToken;  ///< whose strides a step from token to token has
  std::int64_t count = 1;
  std::int64_t batches = 1;                       ///< left apart
  std::int64_t position = 0, batch_position = 0;  ///< elements of the position array
  bool adds_token = false;                        ///< the token number is part of the position
};
[[nodiscard]] TokenDimension token_dimension(const PreparedCall& call);

/// What the ways to fill arguments share.
[[nodiscard]] PositionArgs position_args(const PreparedCall& call, const DevicePointers& device);
[[nodiscard]] AngleArgs angle_args(const PreparedCall& call, const DevicePointers& device);
[[nodiscard]] const void* frequencies_of(const PreparedCall& call, const DevicePointers& device);

}  // namespace ropewalk::cuda
