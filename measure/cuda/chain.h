// Times chains of launches as CUDA graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ropewalk::measure {

/// What is timed: a name and one launch, given the number of the launch in its chain.
struct Candidate {
  std::string name;
  std::function<void(int node, cudaStream_t stream)> launch;
};

/// Microseconds of one launch, sorted: one for each replay that counts.
struct Sample {
  std::string name;
  std::vector<double> microseconds;
  [[nodiscard]] double quantile(double q) const;
  [[nodiscard]] double median() const { return quantile(0.5); }
};

struct ChainOptions {
  int nodes = 100;
  int rounds = 5;
  int replays = 4;   ///< in a round, of which the first is not counted
  bool cold = true;  ///< memory is read before each replay to empty the caches
};

/// Each candidate becomes a graph of `nodes` launches, captured from one stream, so that each node
/// waits for the one before; a graph whose nodes could run side by side is an Error. Rounds visit
/// the graphs, up to eight at a time, in a new random order. A delay kernel before each replay
/// keeps the host's launch outside the measurement.
class ChainTimer {
 public:
  ChainTimer();
  ~ChainTimer();
  ChainTimer(const ChainTimer&) = delete;
  ChainTimer& operator=(const ChainTimer&) = delete;

  [[nodiscard]] std::vector<Sample> time(const std::vector<Candidate>& candidates,
                                         const ChainOptions& options);
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

 private:
  [[nodiscard]] std::vector<Sample> time_together(std::span<const Candidate> candidates,
                                                  const ChainOptions& options);
  [[nodiscard]] double replay(cudaGraphExec_t graph, bool cold);

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  void* flush_ = nullptr;
  unsigned* sink_ = nullptr;
  double host_nanoseconds_ = 500e3;
};

}  // namespace ropewalk::measure
