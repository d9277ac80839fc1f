// What calls of rotate do, for those who ask: an observer of each call, counters, a log in JSON
// lines. All off at the start; a call then costs one relaxed load of a flag.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "ropewalk/export.h"
#include "ropewalk/plan.h"
#include "ropewalk/types.h"

namespace ropewalk {

/// One call of rotate, on the CPU, or one launch, on a GPU. Views hold for on_call alone.
struct CallRecord {
  std::string_view device;     ///< "cpu" or "cuda"
  int device_id = 0;           ///< of the GPU
  std::string_view kernel;     ///< CPU kernel, or launch policy
  std::string_view positions;  ///< "offset", "per_batch", "per_token" or "packed"
  Dtype dtype = Dtype::float32;
  Direction direction = Direction::forward;
  bool in_place = false;  ///< every view
  bool table = false;     ///< angles come from a table
  int views = 0;          ///< q and k: 2
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;  ///< of all views together
  std::int64_t head_dim = 0;
  std::int64_t rotary_dim = 0;
  /// Read and written, all views: the rotated window where a view is in place, else the whole head.
  /// Positions and tables are not counted.
  std::int64_t bytes = 0;
  std::string_view fingerprint;  ///< of the plan
};

/// Receives calls on the threads that make them, before the data is rotated. Calls that are refused
/// or have nothing to do are not reported.
class ROPEWALK_API CallObserver {
 public:
  virtual ~CallObserver();
  virtual void on_call(const CallRecord& call) noexcept = 0;
};

/// Replaces the observer; null: none. A call under way on another thread may still reach the old
/// one, which lives until then.
ROPEWALK_API void set_call_observer(std::shared_ptr<CallObserver> observer);

/// An observer that appends to a file one JSON object a line, with "time_ns" (since 1970) and the
/// fields of CallRecord. A line is one write(), so that threads and processes may share a file.
/// Throws Error(io) where the file cannot be opened. A line that cannot be written is dropped and
/// counted (CallCounters::lines_dropped).
[[nodiscard]] ROPEWALK_API std::shared_ptr<CallObserver> log_calls_to(
    const std::filesystem::path& path);

/// Sums over all threads since counting began or was reset.
struct CallCounters {
  std::uint64_t cpu_calls = 0;
  std::uint64_t cuda_launches = 0;
  std::uint64_t tokens = 0;  ///< batch × tokens of each call
  std::uint64_t bytes = 0;   ///< CallRecord::bytes
  std::uint64_t lines_dropped = 0;
};

/// Turns counting on or off; the sums stay.
ROPEWALK_API void count_calls(bool on) noexcept;
[[nodiscard]] ROPEWALK_API CallCounters call_counters() noexcept;
ROPEWALK_API void reset_call_counters() noexcept;

}  // namespace ropewalk
