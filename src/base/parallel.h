// The default thread pool: one flat loop, no dependency.
#pragma once

#include <cstdint>
#include <functional>

namespace ropewalk {

using RangeBody = std::function<void(std::int64_t begin, std::int64_t end)>;

/// Runs body over [0, count) in chunks of at least `grain` on up to `threads` threads (0: one per
/// available processor), the caller's among them, and returns when all chunks are done.
/// `body` must not throw. A call from inside a body, or while another thread holds the pool, runs
/// on the calling thread alone: results never depend on it. Safe after fork.
void parallel_for(std::int64_t count, std::int64_t grain, int threads, const RangeBody& body);

}  // namespace ropewalk
