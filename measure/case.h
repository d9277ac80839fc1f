// One row of a benchmark: a rotation verified, then timed beside the copies of the same run.
#pragma once

#include <string>

#include "measure/timer.h"
#include "measure/workload.h"
#include "verify/compare.h"

namespace ropewalk::measure {

struct Measurement {
  verify::Comparison comparison;
  bool timed = false;      ///< false where verification failed: there is no number then
  std::int64_t bytes = 0;  ///< necessary, read and written (traffic.h)
  Timing rotation;
  std::string floor_name;  ///< the fastest copy of the same bytes in the same run
  Timing floor;
  std::string residence;  ///< "L2", "cache" or "memory": where the working set fits
  std::string kernel;     ///< what rotated: a CPU kernel, or "cuda:" and a launch policy

  [[nodiscard]] double gigabytes_per_second() const noexcept {
    return static_cast<double>(bytes) / rotation.median * 1e-9;
  }
  /// Floor's time divided by the rotation's: 1 is as fast as copying.
  [[nodiscard]] double ratio_to_floor() const noexcept { return floor.median / rotation.median; }
};

/// Verifies; if right, times the rotation in turns with the floor kernels on the same threads (in
/// cache on one thread too): out of place every kind of copy, in place a read-modify-write pass;
/// the one with the smallest median is the floor. Working sets that fit a cache are measured warm.
[[nodiscard]] Measurement measure(const Case& c, std::uint64_t seed,
                                  const TimingOptions& options = {});

}  // namespace ropewalk::measure
