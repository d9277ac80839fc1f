// Is the result of a workload right? Asked before anything is timed.
#pragma once

#include <functional>

#include "measure/workload.h"
#include "verify/compare.h"

namespace ropewalk::measure {

/// Rotates the workload and judges the result: the first, the last and some tokens between against
/// the quad-precision oracle, and every bit of every token against the scalar kernel. Leaves the
/// workload reset. `rotate`, where given, stands for workload.rotate(): it rotates the same memory
/// by other means.
[[nodiscard]] verify::Comparison check(const Case& c, const Workload& workload,
                                       const std::function<void()>& rotate = {});

}  // namespace ropewalk::measure
