// Is the result of a workload right? Asked before anything is timed.
#pragma once

#include "measure/workload.h"
#include "verify/compare.h"

namespace ropewalk::measure {

/// Rotates the workload and judges the result: the first, the last and some tokens between against
/// the quad-precision oracle, and every bit of every token against the scalar kernel. Leaves the
/// workload reset.
[[nodiscard]] verify::Comparison check(const Case& c, const Workload& workload);

}  // namespace ropewalk::measure
