#include "bench/cuda/profile.h"

#include <cuda_profiler_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "bench/cuda/run_case.h"
#include "measure/cuda/floors.h"

namespace ropewalk::bench {
namespace {

using verify::must;

void profile(const std::function<void(int set)>& launch) {
  launch(0);
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  must(cudaProfilerStart(), "cudaProfilerStart");
  launch(1);
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  must(cudaProfilerStop(), "cudaProfilerStop");
}

}  // namespace

std::vector<std::string> profile_case(const Case& c, const Pools& pools, std::int64_t l2_bytes) {
  const Workload work(c, pools, l2_bytes);
  profile([&](int set) { work.rotate(set, nullptr); });
  const auto& floor = *std::ranges::find_if(measure::floor_kernels(), [&](const auto& f) {
    return f.in_place == c.in_place && f.accesses > 0;
  });
  profile([&](int set) {
    measure::launch_floor(floor, work.memory().in(set), work.memory().out(set), work.copy_bytes(),
                          nullptr, false);
  });
  return {fmt::format("{}\trotate {}", c.name, policy_of(work, c)),
          fmt::format("{}\t{}", c.name, floor.name)};
}

}  // namespace ropewalk::bench
