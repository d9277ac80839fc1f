#include "measure/cuda/sets.h"

#include <algorithm>

#include "measure/cuda/floors.h"

namespace ropewalk::measure {
namespace {

constexpr std::int64_t kSetAlignment = 256;
constexpr int kMaxSets = 4096;
constexpr int kMaxWarmSets = 64;

}  // namespace

std::int64_t aligned_set(std::int64_t bytes) noexcept {
  return (bytes + kSetAlignment - 1) / kSetAlignment * kSetAlignment;
}

int sets_of_chain(std::int64_t touched_bytes, std::int64_t set_bytes, std::int64_t room_bytes,
                  std::int64_t l2_bytes, bool warm) noexcept {
  const std::int64_t wanted =
      warm ? 2 * l2_bytes / (5 * touched_bytes) : 6 * l2_bytes / touched_bytes + 1;
  const std::int64_t most =
      std::min<std::int64_t>(warm ? kMaxWarmSets : kMaxSets, room_bytes / set_bytes);
  return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, most)));
}

int nodes_of_chain(std::int64_t moved_bytes) noexcept {
  const double microseconds = 1.0 + static_cast<double>(moved_bytes) / 4.2e6;
  return std::clamp(static_cast<int>(2000.0 / microseconds), 3, 400);
}

std::vector<Candidate> floor_candidates(const RotatingSets& sets, std::int64_t copy_bytes,
                                        bool in_place, bool programmatic) {
  std::vector<Candidate> candidates;
  for (const FloorKernel& floor : floor_kernels()) {
    if (floor.in_place != in_place) continue;
    candidates.push_back({std::string(floor.name), [=, &floor](int node, cudaStream_t stream) {
                            launch_floor(floor, sets.in(node), sets.out(node), copy_bytes, stream,
                                         programmatic);
                          }});
  }
  candidates.push_back(
      {std::string(kEmpty), [=](int, cudaStream_t stream) { launch_empty(stream, programmatic); }});
  return candidates;
}

const Sample* sample_named(const std::vector<Sample>& samples, std::string_view name) {
  const auto found = std::ranges::find_if(samples, [&](const Sample& s) { return s.name == name; });
  return found == samples.end() ? nullptr : &*found;
}

const Sample* fastest_floor(const std::vector<Sample>& samples) {
  const Sample* fastest = nullptr;
  for (const FloorKernel& floor : floor_kernels()) {
    const Sample* sample = sample_named(samples, floor.name);
    if (sample == nullptr) continue;
    if (fastest == nullptr || sample->median() < fastest->median()) fastest = sample;
  }
  return fastest;
}

}  // namespace ropewalk::measure
