// Measurements as JSON and as text, the same in `bench` and `run`.
#pragma once

#include <string>

#include "cli/common.h"
#include "measure/case.h"
#include "measure/machine.h"

namespace ropewalk::cli {

[[nodiscard]] Json machine_json(const measure::Machine& machine);

/// µs, GB/s, ratio to the floor, samples, spread, error: of one measurement.
[[nodiscard]] Json measurement_json(const measure::Measurement& m);

/// "12.3" microseconds of a time in seconds, to four digits.
[[nodiscard]] std::string microseconds(double seconds);

}  // namespace ropewalk::cli
