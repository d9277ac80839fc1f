// A rotation between two other kernels: each waits for the one before, and all are launched alike.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/cuda/workload.h"
#include "measure/cuda/chain.h"

namespace ropewalk::bench {

/// Times a graph of producer → rotation → consumer, where the producer writes what the rotation
/// reads and the consumer reads what it writes, beside producer → copy → consumer and producer →
/// consumer: with plain launches, and with programmatic dependent launch in every kernel. Before,
/// compares every byte that comes out of the programmatic graph with the narrow path's; throws
/// std::runtime_error where they differ. One JSON row.
[[nodiscard]] nlohmann::ordered_json run_triple(const Case& c, const Pools& pools,
                                                std::int64_t l2_bytes, measure::ChainTimer& timer,
                                                int rounds);

}  // namespace ropewalk::bench
