#include "bench/cuda/triple.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "measure/cuda/floors.h"
#include "verify/cuda/device_values.h"

namespace ropewalk::bench {
namespace {

using Json = nlohmann::ordered_json;
using measure::Candidate;
using measure::FloorKernel;
using measure::Sample;
using verify::must;

constexpr std::string_view kNeighbour = "copy 1x256";

enum class Middle { none, rotation, copy };

const FloorKernel& floor_named(std::string_view name) {
  return *std::ranges::find(measure::floor_kernels(), name, &FloorKernel::name);
}

/// The rotation's buffers with one more before and one behind them.
class Triple {
 public:
  Triple(const Case& c, const Pools& pools, std::int64_t l2_bytes)
      : case_(c),
        work_(c, pools, l2_bytes),
        sets_(std::max(1, work_.memory().count / 2)),  // twice the memory of a rotation alone
        source_(static_cast<std::size_t>(sets_ * work_.memory().set_bytes)),
        target_(source_.size()) {}

  void launch(int node, Middle middle, const FloorKernel& copy, bool programmatic,
              cudaStream_t stream, std::string_view policy = {}) const {
    const int set = node % sets_;
    const std::int64_t bytes = work_.copy_bytes();
    const measure::RotatingSets& memory = work_.memory();
    const FloorKernel& neighbour = floor_named(kNeighbour);
    measure::launch_floor(neighbour, source(set), memory.in(set), bytes, stream, programmatic);
    if (middle == Middle::rotation) {
      cuda::rotate(work_.plan(), work_.rotations(set), work_.positions(set), stream,
                   {.programmatic = programmatic, .policy = policy});
    } else if (middle == Middle::copy) {
      measure::launch_floor(copy, memory.in(set), memory.out(set), bytes, stream, programmatic);
    }
    const std::byte* result = middle == Middle::none ? memory.in(set) : memory.out(set);
    measure::launch_floor(neighbour, result, target(set), bytes, stream, programmatic);
  }

  /// Bytes of all sets that differ from rotations by the narrow path, plainly launched.
  [[nodiscard]] std::uint64_t verify(cudaStream_t stream) const {
    verify::fill_normal(source_.data(),
                        static_cast<std::int64_t>(source_.size() / size_of(case_.dtype)),
                        case_.dtype, 2, stream);
    must(cudaMemsetAsync(target_.data(), 0xff, target_.size(), stream), "memset");
    const FloorKernel& unused = floor_named(kNeighbour);
    for (int set = 0; set < sets_; ++set) {
      launch(set, Middle::rotation, unused, true, stream);
    }
    const verify::DeviceBuffer counter(sizeof(unsigned long long));
    must(cudaMemsetAsync(counter.data(), 0, counter.size(), stream), "memset");
    const measure::RotatingSets& memory = work_.memory();
    const auto bytes = static_cast<std::size_t>(work_.copy_bytes());
    for (int set = 0; set < sets_; ++set) {
      must(cudaMemcpyAsync(memory.in(set), source(set), bytes, cudaMemcpyDeviceToDevice, stream),
           "copy");
      work_.rotate_plainly(set, stream, "narrow");
      verify::count_different_bytes(memory.out(set), target(set), work_.copy_bytes(),
                                    counter.as<unsigned long long>(), stream);
    }
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    unsigned long long different = 0;
    counter.download(&different, sizeof different);
    return different;
  }

 private:
  [[nodiscard]] std::byte* source(int set) const {
    return source_.data() + set * work_.memory().set_bytes;
  }
  [[nodiscard]] std::byte* target(int set) const {
    return target_.data() + set * work_.memory().set_bytes;
  }

  Case case_;
  Workload work_;
  int sets_;
  verify::DeviceBuffer source_, target_;
};

std::string name_of(std::string_view middle, bool programmatic) {
  return fmt::format("{} {}", programmatic ? "programmatic" : "plain", middle);
}

std::vector<Candidate> candidates_of(const Triple& triple, bool in_place) {
  std::vector<Candidate> candidates;
  for (const bool programmatic : {false, true}) {
    const auto add = [&](std::string_view name, Middle middle, const FloorKernel& copy) {
      candidates.push_back({name_of(name, programmatic),
                            [&triple, middle, &copy, programmatic](int node, cudaStream_t stream) {
                              triple.launch(node, middle, copy, programmatic, stream);
                            }});
    };
    add("none", Middle::none, floor_named(kNeighbour));
    add("rotation", Middle::rotation, floor_named(kNeighbour));
    for (const FloorKernel& floor : measure::floor_kernels()) {
      if (floor.in_place == in_place && floor.accesses > 0) add(floor.name, Middle::copy, floor);
    }
  }
  return candidates;
}

}  // namespace

nlohmann::ordered_json run_triple(const Case& c, const Pools& pools, std::int64_t l2_bytes,
                                  measure::ChainTimer& timer, int rounds) {
  const Triple triple(c, pools, l2_bytes);
  if (const std::uint64_t different = triple.verify(timer.stream()); different > 0) {
    throw std::runtime_error(fmt::format("{}: {} bytes differ", c.name, different));
  }
  const measure::ChainOptions options{
      .nodes = measure::nodes_of_chain(3 * necessary_bytes(c)), .rounds = rounds, .cold = !c.warm};
  const auto samples = timer.time(candidates_of(triple, c.in_place), options);
  Json row{{"case", c.name},         {"tokens", c.tokens},
           {"in_place", c.in_place}, {"bytes", necessary_bytes(c)},
           {"nodes", options.nodes}, {"verified", true}};
  for (const bool programmatic : {false, true}) {
    const auto median = [&](std::string_view middle) {
      return measure::sample_named(samples, name_of(middle, programmatic))->median();
    };
    std::string copy;
    for (const FloorKernel& floor : measure::floor_kernels()) {
      if (floor.in_place != c.in_place || floor.accesses == 0) continue;
      if (copy.empty() || median(floor.name) < median(copy)) copy = floor.name;
    }
    const double alone = median("none");
    row[programmatic ? "programmatic" : "plain"] = {
        {"without_us", alone},
        {"rotation_us", median("rotation")},
        {"copy", copy},
        {"copy_us", median(copy)},
        {"time_to_copy", median("rotation") / median(copy)},
        {"added_to_added_by_copy", (median("rotation") - alone) / (median(copy) - alone)}};
  }
  fmt::print("{:<60} plain {:.3f} µs, copy {:.3f}; programmatic {:.3f}, copy {:.3f}\n", c.name,
             row["plain"]["rotation_us"].get<double>(), row["plain"]["copy_us"].get<double>(),
             row["programmatic"]["rotation_us"].get<double>(),
             row["programmatic"]["copy_us"].get<double>());
  return row;
}

}  // namespace ropewalk::bench
