#include "bench/cuda/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>

#include "bench/cuda/floors.h"

namespace ropewalk::bench {
namespace {

constexpr std::int64_t kFlushBytes = std::int64_t{256} << 20;

}  // namespace

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

ChainTimer::ChainTimer() {
  must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  must(cudaEventCreate(&begin_), "cudaEventCreate");
  must(cudaEventCreate(&end_), "cudaEventCreate");
  must(cudaMalloc(&flush_, kFlushBytes), "cudaMalloc");
  must(cudaMemset(flush_, 1, kFlushBytes), "cudaMemset");
  void* sink = nullptr;
  must(cudaMalloc(&sink, sizeof(unsigned)), "cudaMalloc");
  sink_ = static_cast<unsigned*>(sink);
}

ChainTimer::~ChainTimer() {
  cudaFree(flush_);
  cudaFree(sink_);
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  cudaStreamDestroy(stream_);
}

double ChainTimer::replay(cudaGraphExec_t graph, bool cold) {
  launch_delay(static_cast<std::uint64_t>(host_nanoseconds_ * 1.5) + 50000, stream_);
  if (cold) launch_flush(flush_, kFlushBytes, sink_, stream_);
  must(cudaEventRecord(begin_, stream_), "cudaEventRecord");
  const auto before = std::chrono::steady_clock::now();
  must(cudaGraphLaunch(graph, stream_), "cudaGraphLaunch");
  const double host =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - before).count();
  must(cudaEventRecord(end_, stream_), "cudaEventRecord");
  must(cudaEventSynchronize(end_), "cudaEventSynchronize");
  host_nanoseconds_ = std::max(std::min(host, 3e6), host_nanoseconds_ * 0.9);
  float milliseconds = 0;
  must(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e3;
}

std::vector<Sample> ChainTimer::time(const std::vector<Candidate>& candidates,
                                     const ChainOptions& options) {
  std::vector<cudaGraphExec_t> graphs;
  for (const Candidate& candidate : candidates) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    for (int node = 0; node < options.nodes; ++node) candidate.launch(node, stream_);
    must(cudaStreamEndCapture(stream_, &graph), "capture");
    must(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
    must(cudaGraphUpload(ready, stream_), "cudaGraphUpload");
    graphs.push_back(ready);
  }
  std::vector<std::vector<double>> times(candidates.size());
  std::vector<std::size_t> order(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random{std::random_device{}()};
  for (int round = 0; round < options.rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      for (int r = 0; r < options.replays; ++r) {
        const double t = replay(graphs[i], options.cold) / options.nodes;
        if (r > 0) times[i].push_back(t);
      }
    }
  }
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    must(cudaGraphExecDestroy(graphs[i]), "cudaGraphExecDestroy");
    std::vector<double>& t = times[i];
    std::sort(t.begin(), t.end());
    samples.push_back(
        {candidates[i].name, t[t.size() / 2], t[t.size() / 10], t[t.size() * 9 / 10]});
  }
  return samples;
}

}  // namespace ropewalk::bench
