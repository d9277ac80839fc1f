#include "measure/cuda/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <unordered_map>

#include "measure/cuda/floors.h"
#include "ropewalk/error.h"
#include "verify/cuda/device_memory.h"

namespace ropewalk::measure {
namespace {

using verify::must;

// With some tens of graphs of 400 nodes alive, the nodes of some cost 0.15 to 0.3 µs more than
// those of others, copies as well as rotations.
constexpr std::size_t kGraphsAtOnce = 8;

constexpr std::int64_t kFlushBytes = std::int64_t{256} << 20;

struct Edges {
  std::vector<cudaGraphNode_t> from, to;
};

Edges edges_of(cudaGraph_t graph, std::size_t room) {
  Edges edges{std::vector<cudaGraphNode_t>(room), std::vector<cudaGraphNode_t>(room)};
  std::vector<cudaGraphEdgeData> data(room);  // programmatic edges cannot be asked for without
#if CUDART_VERSION >= 13000
  must(cudaGraphGetEdges(graph, edges.from.data(), edges.to.data(), data.data(), &room),
       "cudaGraphGetEdges");
#else
  must(cudaGraphGetEdges_v2(graph, edges.from.data(), edges.to.data(), data.data(), &room),
       "cudaGraphGetEdges");
#endif
  edges.from.resize(room);
  edges.to.resize(room);
  return edges;
}

/// Nodes that could run side by side would hide what a launch costs: whenever the finished nodes
/// are taken away, exactly one may start.
void require_chain(cudaGraph_t graph, const std::string& name) {
  std::size_t count = 0;
  must(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> nodes(count);
  must(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
  const Edges edges = edges_of(graph, 4 * count);
  std::unordered_map<cudaGraphNode_t, int> waits_for;
  std::unordered_multimap<cudaGraphNode_t, cudaGraphNode_t> followers;
  for (std::size_t i = 0; i < edges.from.size(); ++i) {
    ++waits_for[edges.to[i]];
    followers.emplace(edges.from[i], edges.to[i]);
  }
  std::vector<cudaGraphNode_t> ready;
  for (const cudaGraphNode_t node : nodes) {
    if (waits_for[node] == 0) ready.push_back(node);
  }
  for (std::size_t done = 0; done < nodes.size(); ++done) {
    if (ready.size() != 1) {
      throw Error(ErrorCode::cuda, fmt::format("{}: {} launches of its graph could run at once",
                                               name, ready.size()));
    }
    const auto [begin, end] = followers.equal_range(ready.front());
    ready.clear();
    for (auto edge = begin; edge != end; ++edge) {
      if (--waits_for[edge->second] == 0) ready.push_back(edge->second);
    }
  }
}

}  // namespace

double Sample::quantile(double q) const {
  const auto last = static_cast<double>(microseconds.size() - 1);
  return microseconds[static_cast<std::size_t>(std::lround(q * last))];
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
  std::vector<Sample> samples;
  const std::span all(candidates);
  for (std::size_t first = 0; first < all.size(); first += kGraphsAtOnce) {
    const std::size_t count = std::min(kGraphsAtOnce, all.size() - first);
    for (Sample& sample : time_together(all.subspan(first, count), options)) {
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

std::vector<Sample> ChainTimer::time_together(std::span<const Candidate> candidates,
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
