#include "measure/cuda/device_case.h"

#include <algorithm>
#include <cmath>

#include "measure/check.h"
#include "measure/cuda/floors.h"
#include "measure/cuda/sets.h"
#include "ropewalk/cuda.h"
#include "verify/cuda/backend.h"
#include "verify/cuda/device_memory.h"
#include "verify/cuda/device_values.h"

namespace ropewalk::measure {
namespace {

using verify::DeviceBuffer;

// A replay takes about this long, the emptying of the caches and the delay before it included.
constexpr double kReplaySeconds = 3.5e-3;
constexpr std::int64_t kPoolBytes = std::int64_t{2} << 30;

cuda::DeviceInfo first_device() { return cuda::devices().at(0); }

ChainOptions chain_options(std::int64_t moved_bytes, const DeviceTimingOptions& options) {
  ChainOptions chain;
  chain.nodes = nodes_of_chain(moved_bytes);
  chain.cold = !options.warm;
  const double wanted = options.samples > 0 ? options.samples : options.seconds / kReplaySeconds;
  chain.rounds = std::clamp(static_cast<int>(std::ceil(wanted / (chain.replays - 1))), 1, 1000);
  return chain;
}

Timing timing_of(const Sample& sample, int nodes) {
  std::vector<double> seconds;
  for (const double microseconds : sample.microseconds) seconds.push_back(microseconds * 1e-6);
  return summarise(std::move(seconds), nodes);
}

/// Device memory for the sets of a workload, filled with random values.
class DeviceSets {
 public:
  DeviceSets(const Case& c, const Workload& workload, bool warm)
      : host_(workload.rotations()), memory_(workload.memory()) {
    std::int64_t in_bytes = 0;
    std::int64_t out_bytes = 0;
    for (const Workload::Memory& m : memory_) {
      in_bytes += aligned_set(static_cast<std::int64_t>(m.in.size()));
      out_bytes += aligned_set(static_cast<std::int64_t>(m.out.size()));
    }
    sets_.set_bytes = std::max(in_bytes, out_bytes);
    const std::int64_t touched = in_bytes + (c.in_place ? 0 : out_bytes);
    const std::int64_t room = std::max(kPoolBytes, sets_.set_bytes);
    sets_.count = sets_of_chain(touched, sets_.set_bytes, room, first_device().l2_bytes, warm);
    const auto pool = static_cast<std::size_t>(sets_.count * sets_.set_bytes);
    pools_.emplace_back(pool);
    if (!c.in_place) pools_.emplace_back(pool);
    sets_.in_memory = pools_.front().data();
    sets_.out_memory = pools_.back().data();
    verify::fill_normal(sets_.in_memory, static_cast<std::int64_t>(pool / size_of(c.dtype)),
                        c.dtype, 1, nullptr);
    verify::must(cudaDeviceSynchronize(), "filling device memory");
    for (int set = 0; set < sets_.count; ++set) rotations_.push_back(rotations_in(set));
  }

  [[nodiscard]] const RotatingSets& sets() const noexcept { return sets_; }
  [[nodiscard]] const std::vector<Rotation>& rotations(int node) const {
    return rotations_[static_cast<std::size_t>(sets_.index(node))];
  }

 private:
  /// The host's views at the same places of the device's set.
  [[nodiscard]] std::vector<Rotation> rotations_in(int set) const {
    std::vector<Rotation> there = host_;
    std::byte* in = sets_.in(set);
    std::byte* out = sets_.out(set);
    for (std::size_t i = 0; i < there.size(); ++i) {
      const Workload::Memory& m = memory_[i];
      there[i].in.data = in + (static_cast<const std::byte*>(there[i].in.data) - m.in.data());
      there[i].out.data = out + (static_cast<std::byte*>(there[i].out.data) - m.out.data());
      in += aligned_set(static_cast<std::int64_t>(m.in.size()));
      out += aligned_set(static_cast<std::int64_t>(m.out.size()));
    }
    return there;
  }

  std::vector<Rotation> host_;
  std::vector<Workload::Memory> memory_;
  std::vector<DeviceBuffer> pools_;
  RotatingSets sets_;
  std::vector<std::vector<Rotation>> rotations_;
};

/// Positions of a host workload on the device; the memory lives as long as this.
class DevicePositions {
 public:
  DevicePositions(const Positions& positions, std::int64_t batch, std::int64_t tokens) {
    verify::add_positions(mirror_, positions, batch, tokens);
    mirror_.upload();
    there_ = verify::on_device(mirror_, positions);
  }
  [[nodiscard]] const Positions& there() const noexcept { return there_; }

 private:
  verify::Mirror mirror_;
  Positions there_;
};

}  // namespace

Measurement measure_on_device(const Case& c, std::uint64_t seed,
                              const DeviceTimingOptions& options) {
  const Workload workload(c, seed);
  const cuda::DevicePlan plan(c.plan);
  Measurement result;
  result.bytes = necessary_bytes(shape_of(c), c.in_place);
  result.residence = options.warm && result.bytes <= device_resident_bytes() ? "L2" : "memory";
  result.kernel = "cuda:" + cuda::policy_for(plan, workload.rotations(), workload.positions(),
                                             {.direction = c.direction, .policy = c.kernel});
  result.comparison = check(c, workload, [&] {
    verify::rotate_on_device(plan, workload.rotations(), workload.positions(), c.direction,
                             c.kernel);
  });
  if (!result.comparison.pass()) return result;

  const DeviceSets device(c, workload, options.warm);
  const DevicePositions positions(workload.positions(), c.batch, c.tokens);
  std::vector<Candidate> candidates{{"rotate", [&](int node, cudaStream_t stream) {
                                       cuda::rotate(plan, device.rotations(node), positions.there(),
                                                    stream,
                                                    {.direction = c.direction, .policy = c.kernel});
                                     }}};
  for (Candidate& floor : floor_candidates(device.sets(), result.bytes / 2, c.in_place, false)) {
    candidates.push_back(std::move(floor));
  }
  ChainTimer timer;
  const ChainOptions chain = chain_options(result.bytes, options);
  const std::vector<Sample> samples = timer.time(candidates, chain);
  const Sample* floor = fastest_floor(samples);
  result.rotation = timing_of(samples.front(), chain.nodes);
  result.floor = timing_of(*floor, chain.nodes);
  result.floor_name = floor->name;
  result.timed = true;
  return result;
}

std::vector<Floor> measure_device_floors(std::int64_t moved_bytes,
                                         const DeviceTimingOptions& options) {
  const std::int64_t half = std::max<std::int64_t>(32, moved_bytes) / 2;
  const std::int64_t set = aligned_set(half);
  const int count =
      sets_of_chain(2 * set, set, std::max(kPoolBytes, set), first_device().l2_bytes, options.warm);
  const DeviceBuffer in(static_cast<std::size_t>(count * set));
  const DeviceBuffer out(static_cast<std::size_t>(count * set));
  verify::fill_normal(in.data(), count * set / 4, Dtype::float32, 1, nullptr);
  verify::must(cudaDeviceSynchronize(), "filling device memory");
  ChainTimer timer;
  const ChainOptions chain = chain_options(2 * half, options);
  std::vector<Floor> floors;
  for (const bool in_place : {false, true}) {
    const RotatingSets sets{in.data(), in_place ? in.data() : out.data(), set, count};
    for (const Sample& sample : timer.time(floor_candidates(sets, half, in_place, false), chain)) {
      if (sample.name == kEmpty) continue;
      floors.push_back({sample.name, in_place, 2 * half, timing_of(sample, chain.nodes)});
    }
  }
  return floors;
}

std::int64_t device_resident_bytes() { return first_device().l2_bytes * 2 / 5; }
std::int64_t device_out_of_cache_bytes() { return 16 * first_device().l2_bytes; }

}  // namespace ropewalk::measure
