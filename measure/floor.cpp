#include "measure/floor.h"

#include <algorithm>

#include "base/cpu_features.h"
#include "measure/buffer.h"
#include "measure/copy.h"
#include "measure/fill.h"
#include "measure/machine.h"

namespace ropewalk::measure {

std::vector<Floor> measure_floors(std::int64_t moved_bytes, int threads,
                                  const TimingOptions& options) {
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(2, moved_bytes) / 2);
  const Buffer from(bytes);
  const Buffer to(bytes);
  fill_normal(from, Dtype::bfloat16, 1);
  fill_normal(to, Dtype::bfloat16, 1);
  std::vector<Floor> floors;
  std::vector<Task> tasks;
  for (const CopyKind kind : copy_kinds()) {
    floors.push_back({std::string(name_of(kind)), false, static_cast<std::int64_t>(2 * bytes), {}});
    tasks.push_back({[&, kind] { copy(kind, to.data(), from.data(), bytes, threads); }});
  }
  for (const PassKind kind : pass_kinds()) {
    floors.push_back({std::string(name_of(kind)), true, static_cast<std::int64_t>(2 * bytes), {}});
    tasks.push_back({[&, kind] { read_modify_write(kind, to.data(), bytes, threads); }});
  }
  const std::vector<Timing> timings = time_in_turns(tasks, options);
  for (std::size_t i = 0; i < floors.size(); ++i) floors[i].timing = timings[i];
  return floors;
}

std::int64_t level2_resident_bytes(int threads) {
  if (threads <= 0) threads = available_processors();
  return level2_cache_bytes() / 2 * threads;
}

}  // namespace ropewalk::measure
