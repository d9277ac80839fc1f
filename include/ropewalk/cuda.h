// rotate on an NVIDIA GPU: the same plans, views, positions and bits as on the CPU.
//
// In builds with CUDA (CMake target ropewalk::cuda). Cards of compute capability 7.5 and later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/export.h"
#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"
#include "ropewalk/table.h"

struct CUstream_st;

namespace ropewalk::cuda {

/// The same type as cudaStream_t; null is the default stream.
using Stream = CUstream_st*;

struct DeviceInfo {
  int id = 0;
  std::string name;
  int compute_capability = 0;  ///< 10 · major + minor
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  bool supported = false;  ///< compute capability 7.5 or later
};

/// Every GPU that the driver shows; empty where there is none, or no driver.
[[nodiscard]] ROPEWALK_API std::vector<DeviceInfo> devices();
/// Why devices() has no supported entry, in one sentence; empty where it has one.
[[nodiscard]] ROPEWALK_API std::string why_no_device();

struct DeviceState;

/// What DevicePlan and DeviceTable share: constants in the memory of one device, and a counter of
/// bad rows. Make one once and keep it; rotate itself allocates nothing. Movable, not copyable. It
/// must outlive the work that was queued with it.
class ROPEWALK_API OnDevice {
 public:
  [[nodiscard]] const RotaryPlan& plan() const noexcept;
  [[nodiscard]] int device() const noexcept;

  /// Rows (a token and head) made NaN since the last reset because of a bad position. Waits for
  /// the stream.
  [[nodiscard]] std::uint64_t bad_rows(Stream stream = nullptr) const;
  /// Queues a reset on the stream.
  void reset_bad_rows(Stream stream = nullptr) const;

  [[nodiscard]] const DeviceState& state() const noexcept { return *state_; }

 protected:
  explicit OnDevice(std::unique_ptr<DeviceState> state) noexcept;
  ~OnDevice();
  OnDevice(OnDevice&&) noexcept;
  OnDevice& operator=(OnDevice&&) noexcept;

 private:
  std::unique_ptr<DeviceState> state_;
};

/// A plan with its small copy on one device: frequencies and axes.
class ROPEWALK_API DevicePlan : public OnDevice {
 public:
  /// `device` −1 is the current one. Allocates, copies and waits for the copy, and loads the
  /// kernels, so that rotate can be captured in a graph: not itself to be called during a capture.
  /// Throws Error(unsupported) naming a card that is older than 7.5, Error(cuda) for a device that
  /// does not exist or a failed call.
  explicit DevicePlan(const RotaryPlan& plan, int device = -1);
};

/// A table with its copy on one device.
class ROPEWALK_API DeviceTable : public OnDevice {
 public:
  /// As DevicePlan's, for a plan of any arithmetic.
  explicit DeviceTable(const RotaryTable& table, int device = -1);
};

/// Cosines and sines in device memory that the caller holds: rows × pairs values each, row-major
/// without gaps, amplitude included; float, or double where the rotation computes in double
/// (float64 data, arithmetic parity_p4).
struct DeviceAngles {
  const void* cos = nullptr;
  const void* sin = nullptr;
  std::int64_t rows = 0;
  bool is_double = false;
};

struct Options {
  Direction direction = Direction::forward;
  /// Programmatic dependent launch (compute capability 9.0 and later; without effect before): the
  /// kernel may start while its predecessor in the stream drains. Tensors may be the predecessor's
  /// output; positions and cu_seqlens must not be. Pays in chains whose kernels all use it.
  bool programmatic = false;
  /// A launch policy by name, for tests and measurement; empty: chosen from the call.
  std::string_view policy = {};
};

/// Rotates every view of `rotations` (one or two, q and k) in one launch on the stream; more views
/// take one launch for each two. Everything of ropewalk/rotate.h holds, with these differences:
/// data, positions.data and positions.cu_seqlens are device memory of the plan's device, elements
/// are aligned to their size, and positions are checked on the device. A row with a bad position
/// (outside the limits, outside the table, outside cu_seqlens) becomes NaN in its window and counts
/// in bad_rows(). Positions of Kind::offset are known here, so a bad one throws
/// Error(bad_position).
///
/// Does not wait, allocate or query the device; the current device of the thread may be another
/// and stays as it is. The stream must belong to the plan's device. May be captured.
/// Throws Error(invalid_argument), also for a plan with a parity arithmetic, which takes its angles
/// from a table; or Error(cuda) where the launch fails.
ROPEWALK_API void rotate(const DevicePlan& plan, std::span<const Rotation> rotations,
                         const Positions& positions, Stream stream, const Options& options = {});

/// The same with angles from a table, in the arithmetic of its plan.
ROPEWALK_API void rotate(const DeviceTable& table, std::span<const Rotation> rotations,
                         const Positions& positions, Stream stream, const Options& options = {});

/// The same with the caller's own angles, read when the kernel runs. Bad rows count with the plan.
ROPEWALK_API void rotate(const DevicePlan& plan, const DeviceAngles& angles,
                         std::span<const Rotation> rotations, const Positions& positions,
                         Stream stream, const Options& options = {});

/// The launch policy that rotate would choose for (the first two of) these rotations.
[[nodiscard]] ROPEWALK_API std::string policy_for(const DevicePlan& plan,
                                                  std::span<const Rotation> rotations,
                                                  const Positions& positions,
                                                  const Options& options = {});

/// Names of every policy that the kernels are compiled for; a forced one that a call cannot take
/// is Error(unsupported).
[[nodiscard]] ROPEWALK_API std::vector<std::string> policy_names();

}  // namespace ropewalk::cuda
