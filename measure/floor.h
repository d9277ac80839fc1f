// The bandwidth that this machine gives to the simplest passes over memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/timer.h"

namespace ropewalk::measure {

struct Floor {
  std::string name;  ///< "memcpy", "ordinary stores", "streaming stores", "read-modify-write"
  bool in_place = false;
  std::int64_t bytes = 0;  ///< moved: read and written
  Timing timing;
  [[nodiscard]] double gigabytes_per_second() const noexcept {
    return static_cast<double>(bytes) / timing.median * 1e-9;
  }
};

/// Every floor for `moved_bytes` (half read, half written) with `threads` threads.
[[nodiscard]] std::vector<Floor> measure_floors(std::int64_t moved_bytes, int threads,
                                                const TimingOptions& options = {});

/// Bytes moved by a working set that stays in the second-level caches of `threads` processors.
[[nodiscard]] std::int64_t level2_resident_bytes(int threads);

}  // namespace ropewalk::measure
