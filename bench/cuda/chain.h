// Times chains of launches as CUDA graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ropewalk::bench {

/// Throws std::runtime_error.
void must(cudaError_t status, const char* what);

/// What is timed: a name and one launch, given the number of the launch in its chain.
struct Candidate {
  std::string name;
  std::function<void(int node, cudaStream_t stream)> launch;
};

/// Microseconds of one launch.
struct Sample {
  std::string name;
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

struct ChainOptions {
  int nodes = 100;
  int rounds = 5;
  int replays = 4;   ///< in a round, of which the first is not counted
  bool cold = true;  ///< memory is read before each replay to empty the caches
};

/// Each candidate becomes a graph of `nodes` launches. Rounds visit the graphs in a new random
/// order. A delay kernel before each replay keeps the host's launch outside the measurement.
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
  [[nodiscard]] double replay(cudaGraphExec_t graph, bool cold);

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  void* flush_ = nullptr;
  unsigned* sink_ = nullptr;
  double host_nanoseconds_ = 500e3;
};

}  // namespace ropewalk::bench
