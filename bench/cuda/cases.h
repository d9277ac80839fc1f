// The benchmark's cases.
#pragma once

#include <vector>

#include "bench/cuda/workload.h"

namespace ropewalk::bench {

/// Largest first within each group; names are unique.
[[nodiscard]] std::vector<Case> all_cases();

}  // namespace ropewalk::bench
