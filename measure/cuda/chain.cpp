#include "measure/cuda/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "measure/cuda/floors.h"
#include "ropewalk/error.h"
#include "verify/cuda/device_memory.h"

namespace ropewalk::measure {
namespace {

using verify::must;

constexpr std::int64_t kFlushBytes = std::int64_t{256} << 20;

/// Nodes that could run side by side would hide what a launch costs.
void require_chain(cudaGraph_t graph, const std::string& name) {
  std::size_t nodes = 0;
  must(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  std::size_t edges = 2 * nodes;
  std::vector<cudaGraphNode_t> from(edges);
  std::vector<cudaGraphNode_t> to(edges);
  std::vector<cudaGraphEdgeData> data(edges);  // programmatic edges cannot be asked for without
#if CUDART_VERSION >= 13000
  const auto status = cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &edges);
#else
  const auto status = cudaGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &edges);
#endif
  must(status, "cudaGraphGetEdges");
  const auto distinct = [&](std::vector<cudaGraphNode_t>& ends) {
    ends.resize(edges);
    std::sort(ends.begin(), ends.end());
    return std::adjacent_find(ends.begin(), ends.end()) == ends.end();
  };
  if (edges + 1 == nodes && distinct(from) && distinct(to)) return;
  throw Error(ErrorCode::cuda,
              fmt::format("{}: the graph of {} launches has {} dependencies that form no chain",
                          name, nodes, edges));
}

}  // namespace

double Sample::quantile(double q) const {
  const auto last = static_cast<double>(microseconds.size() - 1);
  return microseconds[static_cast<std::size_t>(q * last + 0.5)];
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
    require_chain(graph, candidate.name);
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
    std::sort(times[i].begin(), times[i].end());
    samples.push_back({candidates[i].name, std::move(times[i])});
  }
  return samples;
}

}  // namespace ropewalk::measure
