#include "measure/case.h"

#include <algorithm>

#include "measure/buffer.h"
#include "measure/check.h"
#include "measure/copy.h"
#include "measure/fill.h"
#include "measure/floor.h"
#include "measure/machine.h"

namespace ropewalk::measure {
namespace {

std::string residence_of(std::int64_t bytes, int threads) {
  if (bytes <= level2_resident_bytes(threads)) return "L2";
  return bytes <= largest_cache_bytes() ? "cache" : "memory";
}

struct FloorTask {
  std::string_view name;
  Task task;
};

/// On the threads of the case; in cache on one thread too, since waking a second one can cost more
/// than the copy, and the floor is the fastest way to copy.
std::vector<FloorTask> floor_tasks(const Case& c, const Buffer& from, const Buffer& to,
                                   bool in_cache) {
  const std::size_t bytes = to.size();
  std::vector<int> thread_counts{c.threads};
  if (in_cache && c.threads != 1) thread_counts.push_back(1);
  std::vector<FloorTask> tasks;
  for (const int threads : thread_counts) {
    if (c.in_place) {
      for (const PassKind kind : pass_kinds()) {
        tasks.push_back({name_of(kind), {[&to, bytes, kind, threads] {
                           read_modify_write(kind, to.data(), bytes, threads);
                         }}});
      }
      continue;
    }
    for (const CopyKind kind : copy_kinds()) {
      tasks.push_back({name_of(kind), {[&from, &to, bytes, kind, threads] {
                         copy(kind, to.data(), from.data(), bytes, threads);
                       }}});
    }
  }
  return tasks;
}

}  // namespace

Measurement measure(const Case& c, std::uint64_t seed, const TimingOptions& options) {
  const Workload workload(c, seed);
  Measurement result;
  result.bytes = necessary_bytes(shape_of(c), c.in_place);
  result.residence = residence_of(result.bytes, c.threads);
  result.kernel = c.kernel.empty() ? std::string(active_cpu_kernel()) : c.kernel;
  result.comparison = check(c, workload);
  if (!result.comparison.pass()) return result;

  const auto half = static_cast<std::size_t>(result.bytes / 2);
  const Buffer from(c.in_place ? 1 : half);
  const Buffer to(half);
  fill_normal(from, c.dtype, seed);
  fill_normal(to, c.dtype, seed);
  std::vector<FloorTask> floors = floor_tasks(c, from, to, result.residence != "memory");
  std::vector<Task> tasks{{[&] { workload.rotate(); }}};
  // In place with an amplitude the numbers grow or shrink with every call, and subnormal ones are
  // slow: begin each sample anew and keep it short.
  if (c.in_place && c.plan.amplitude() != 1.0) {
    tasks[0].prepare = [&] { workload.reset(); };
    tasks[0].max_calls = 16;
  }
  for (FloorTask& floor : floors) tasks.push_back(floor.task);
  if (result.residence != "memory") {
    for (Task& task : tasks) {
      task.prepare = [work = task.work, before = task.prepare] {
        if (before) before();
        work();  // the caches hold this task's data, not the last one's
      };
    }
  }
  const std::vector<Timing> timings = time_in_turns(tasks, options);
  result.rotation = timings[0];
  const auto fastest =
      std::min_element(timings.begin() + 1, timings.end(),
                       [](const Timing& a, const Timing& b) { return a.median < b.median; });
  result.floor = *fastest;
  result.floor_name = floors[static_cast<std::size_t>(fastest - timings.begin() - 1)].name;
  result.timed = true;
  return result;
}

}  // namespace ropewalk::measure
