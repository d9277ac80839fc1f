// One case: verified, timed beside its floors, one JSON row.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/cuda/workload.h"
#include "measure/cuda/chain.h"

namespace ropewalk::bench {

struct RunOptions {
  /// Beside the chosen policy every one that can take the case and whose name contains one of
  /// these.
  std::vector<std::string> policies = {};
  int rounds = 5;
};

/// Throws std::runtime_error where the result is wrong. Prints a line.
[[nodiscard]] nlohmann::ordered_json run_case(const Case& c, const Pools& pools,
                                              std::int64_t l2_bytes, measure::ChainTimer& timer,
                                              const RunOptions& options);

/// The policy that rotate chooses for the case.
[[nodiscard]] std::string policy_of(const Workload& work, const Case& c);

}  // namespace ropewalk::bench
