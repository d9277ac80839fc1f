// Single launches for a profiler.
#pragma once

#include <string>
#include <vector>

#include "bench/cuda/workload.h"

namespace ropewalk::bench {

/// Launches the rotation of a case and then a copy of the same bytes (in place: read-flip-write),
/// each once, between cudaProfilerStart and cudaProfilerStop, after a launch of each that the
/// profiler does not see. Returns one line for each profiled launch: the case, a tab, and what was
/// launched.
[[nodiscard]] std::vector<std::string> profile_case(const Case& c, const Pools& pools,
                                                    std::int64_t l2_bytes);

}  // namespace ropewalk::bench
