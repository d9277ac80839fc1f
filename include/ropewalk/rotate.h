
// rotate: applies a plan to q and k on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/export.h"
#include "ropewalk/plan.h"
#include "ropewalk/types.h"

namespace ropewalk {

class RotaryTable;

/// Where each token stands. Pointers are not owned and must stay valid for the call. Strides are
/// in elements of the position array; zero broadcasts.
///
/// Valid integer positions: |p| < 2^36, and |p| < 2^53 for float64 data; with a table, its rows.
/// Float positions (vision models): the same magnitude limits, finite.
struct ROPEWALK_API Positions {
  enum class Kind : std::uint8_t {
    offset,     ///< token t of every batch row stands at start + t
    per_batch,  ///< token t of row b stands at data[b] + t
    per_token,  ///< data[axis, b, t]
    packed,     ///< token t of sequence s (cu_seqlens[s] ≤ t < cu_seqlens[s+1]) stands at
                ///< t − cu_seqlens[s] (+ data[s] where data is given); batch must be 1
  };
  enum class Type : std::uint8_t { int32, int64, float32, float64 };

  Kind kind = Kind::offset;
  Type type = Type::int64;
  std::int64_t start = 0;      ///< kind offset
  const void* data = nullptr;  ///< kinds per_batch, per_token; optional for packed
  std::int64_t axes = 1;       ///< components given; 1 broadcasts one component to all axes
  std::int64_t count = 0;      ///< tokens described by `data` along token (checked), or rows
  std::int64_t batches = 0;    ///< kind per_token: rows described by `data` along batch
                               ///< (checked; 1 with stride 0 broadcasts); 0: not stated
  std::int64_t values = -1;  ///< kind per_token: length of the array behind `data`, which must hold
                             ///< what the strides reach, without gaps exactly axes * batches *
                             ///< count (checked); -1: not stated. The factories state it
  std::int64_t axis_stride = 0;
  std::int64_t batch_stride = 0;
  std::int64_t token_stride = 1;
  const void* cu_seqlens = nullptr;  ///< kind packed: sequences + 1 entries of cu_type, from 0 up
  Type cu_type = Type::int32;
  std::int64_t sequences = 0;
  /// Rows at this position are passed through unchanged (out of place: copied).
  std::optional<std::int64_t> padding;

  [[nodiscard]] static Positions from_offset(std::int64_t start) noexcept;
  /// One start per batch row.
  [[nodiscard]] static Positions from_batch_offsets(std::span<const std::int64_t> starts) noexcept;
  /// One position per token, the same for every batch row.
  [[nodiscard]] static Positions from_tokens(std::span<const std::int64_t> positions) noexcept;
  [[nodiscard]] static Positions from_tokens(std::span<const std::int32_t> positions) noexcept;
  /// (batch, token), contiguous.
  [[nodiscard]] static Positions from_batch_tokens(std::span<const std::int64_t> positions,
                                                   std::int64_t tokens) noexcept;
  [[nodiscard]] static Positions from_batch_tokens(std::span<const std::int32_t> positions,
                                                   std::int64_t tokens) noexcept;
  /// (axes, batch, token), contiguous.
  [[nodiscard]] static Positions from_axes(std::span<const std::int64_t> positions,
                                           std::int64_t axes, std::int64_t batch,
                                           std::int64_t tokens) noexcept;
  /// Packed sequences of one flat token dimension.
  [[nodiscard]] static Positions from_cu_seqlens(std::span<const std::int32_t> cu_seqlens) noexcept;
  [[nodiscard]] static Positions from_cu_seqlens(std::span<const std::int64_t> cu_seqlens) noexcept;
  /// Fractional positions (axes, batch, token), contiguous: the explicit opt-in of vision models.
  [[nodiscard]] static Positions from_floats(std::span<const float> positions, std::int64_t axes,
                                             std::int64_t batch, std::int64_t tokens) noexcept;
  [[nodiscard]] static Positions from_floats(std::span<const double> positions, std::int64_t axes,
                                             std::int64_t batch, std::int64_t tokens) noexcept;
};

/// Reads `in`, writes `out`. In place: the same pointer and strides. Sizes and dtypes are equal.
struct Rotation {
  ConstTensorView in;
  TensorView out;

  [[nodiscard]] static Rotation in_place(TensorView view) noexcept { return {view, view}; }
};

/// Runs body(begin, end) over [0, count) in chunks of at least `grain`, on any threads, and
/// returns when all are done. Must be callable from the thread that calls rotate. `body` throws
/// nothing.
using ParallelFor =
    std::function<void(std::int64_t count, std::int64_t grain,
                       const std::function<void(std::int64_t, std::int64_t)>& body)>;

struct RotateOptions {
  Direction direction = Direction::forward;
  /// 0: one thread per processor this process may use, or the caller's alone where the data are
  /// too few to wake others for. The bits do not depend on it.
  int threads = 0;
  /// Where given, replaces the library's own pool (`threads` is then a hint only).
  const ParallelFor* parallel_for = nullptr;
  /// Name of a CPU kernel from cpu_kernels(); empty: the best this machine supports.
  std::string_view kernel;
  /// Outputs are memory that the system has not given out yet, as a large new allocation is. It
  /// zeroes each page through the cache at the first write, where streaming stores only cost more.
  /// A matter of speed: the bits do not depend on it.
  bool fresh_outputs = false;
};

/// Rotates every view of `rotations` (any subset of q and k; head counts and strides differ
/// freely, batch and token counts must agree) by the plan at the given positions.
///
/// Channels outside the window are copied bit for bit (out of place) or untouched (in place).
/// Empty tensors return at once. `out` may be `in` itself; views of one buffer that touch
/// disjoint elements are fine; any other overlap, or one that cannot be decided, is an error.
/// A plan that does not rotate copies (out of place) or does nothing (in place).
///
/// Error bound (arithmetic exact): verify/tolerance.h; |Δcos|, |Δsin| ≤ 7.5e-8 (float64: 4e-16)
/// at every valid position. The result does not depend on kernel, layout or threads, bit for bit.
/// Plans with a parity arithmetic need a table: use the overload below.
///
/// Throws Error(invalid_argument) or Error(bad_position) before anything is written. Allocates
/// nothing beyond the thread pool's first start. Synchronous.
ROPEWALK_API void rotate(const RotaryPlan& plan, std::span<const Rotation> rotations,
                         const Positions& positions, const RotateOptions& options = {});

/// The same with angles from a table (table.h), in the arithmetic of the table's plan. Positions
/// index its rows; a position outside is Error(bad_position) naming it and the limit.
ROPEWALK_API void rotate(const RotaryTable& table, std::span<const Rotation> rotations,
                         const Positions& positions, const RotateOptions& options = {});

/// A CPU kernel as the registry knows it.
struct CpuKernelInfo {
  std::string_view name;  ///< "scalar", "avx2", "avx512", "avx512bf16"
  std::string_view description;
  bool supported;  ///< by the processor this runs on
};

/// Every kernel compiled in, best last. The environment variable ROPEWALK_KERNEL forces one by
/// name; an unknown or unsupported name is Error(unsupported) at the first rotate.
[[nodiscard]] ROPEWALK_API std::vector<CpuKernelInfo> cpu_kernels();
/// The name rotate uses when none is forced.
[[nodiscard]] ROPEWALK_API std::string_view active_cpu_kernel();

}  // namespace ropewalk
