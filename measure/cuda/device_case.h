// A row of a benchmark on the GPU: verified, then timed beside the copies of the same run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/case.h"
#include "measure/floor.h"

namespace ropewalk::measure {

struct DeviceTimingOptions {
  double seconds = 0.25;  ///< for each thing timed, about
  int samples = 0;        ///< at least so many of each; 0: by time
  bool warm = false;      ///< the data stay in the L2 cache; else every call finds them in memory
};

/// measure() on the first GPU. Case::kernel is a launch policy (cuda::policy_names), empty: the one
/// that rotate chooses; Case::threads has no meaning. Times are device time: events around replays
/// of a CUDA graph of launches over rotating buffers; the floor is the fastest of the driver's
/// memcpy and kernels that copy 16 bytes at a time (in place: that read, flip signs and write),
/// launched the same way in the same run. Measurement::kernel is "cuda:" and the policy. Throws
/// Error(cuda) where the device has too little memory.
[[nodiscard]] Measurement measure_on_device(const Case& c, std::uint64_t seed,
                                            const DeviceTimingOptions& options = {});

/// Every floor of the first GPU for `moved_bytes` (half read, half written).
[[nodiscard]] std::vector<Floor> measure_device_floors(std::int64_t moved_bytes,
                                                       const DeviceTimingOptions& options = {});

/// Bytes moved by a working set that stays in the L2 cache of the first GPU, and by one that is far
/// larger.
[[nodiscard]] std::int64_t device_resident_bytes();
[[nodiscard]] std::int64_t device_out_of_cache_bytes();

}  // namespace ropewalk::measure
