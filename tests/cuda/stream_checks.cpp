// Streams, graphs, threads' current devices, and tensors of more than 2^32 elements.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "ropewalk/cuda.h"
#include "ropewalk/error.h"
#include "tests/cuda/checks.h"
#include "verify/compare.h"
#include "verify/cuda/device_memory.h"
#include "verify/cuda/device_values.h"
#include "verify/host_tensor.h"
#include "verify/random.h"

namespace ropewalk::testing {
namespace {

using verify::DeviceBuffer;
using verify::HostTensor;

void must(cudaError_t status) {
  if (status != cudaSuccess) throw Error(ErrorCode::cuda, cudaGetErrorString(status));
}

struct Qk {
  HostTensor q, k, q_out, k_out, q_cpu, k_cpu;
  DeviceBuffer memory;
  std::array<Rotation, 2> on_device, on_host;

  Qk(Dtype dtype, std::int64_t tokens, std::uint64_t seed)
      : q(dtype, {1, tokens, 8, 128}),
        k(dtype, {1, tokens, 2, 128}),
        q_out(dtype, {1, tokens, 8, 128}),
        k_out(dtype, {1, tokens, 2, 128}),
        q_cpu(dtype, {1, tokens, 8, 128}),
        k_cpu(dtype, {1, tokens, 2, 128}),
        memory(static_cast<std::size_t>(2 * tokens * 10 * 128) * size_of(dtype)) {
    verify::Random random(seed);
    random.fill(q.view());
    random.fill(k.view());
    const std::size_t q_bytes = static_cast<std::size_t>(tokens * 8 * 128) * size_of(dtype);
    const std::size_t k_bytes = q_bytes / 4;
    std::byte* at = memory.data();
    must(cudaMemcpy(at, q.view().data, q_bytes, cudaMemcpyHostToDevice));
    must(cudaMemcpy(at + q_bytes, k.view().data, k_bytes, cudaMemcpyHostToDevice));
    std::byte* out = at + q_bytes + k_bytes;
    on_device = {Rotation{bthd(at, dtype, 1, tokens, 8, 128), bthd(out, dtype, 1, tokens, 8, 128)},
                 Rotation{bthd(at + q_bytes, dtype, 1, tokens, 2, 128),
                          bthd(out + q_bytes, dtype, 1, tokens, 2, 128)}};
    on_host = {Rotation{q, q_cpu}, Rotation{k, k_cpu}};
  }
  void poison_output() const { must(cudaMemset(on_device[0].out.data, 0xff, memory.size() / 2)); }
  /// Empty where the device's output has the bits of the CPU at these positions.
  [[nodiscard]] std::string difference(const RotaryPlan& plan, const Positions& positions) const {
    rotate(plan, on_host, positions);
    must(cudaMemcpy(q_out.view().data, on_device[0].out.data,
                    static_cast<std::size_t>(q_out.view().elements()) * size_of(q.view().dtype),
                    cudaMemcpyDeviceToHost));
    must(cudaMemcpy(k_out.view().data, on_device[1].out.data,
                    static_cast<std::size_t>(k_out.view().elements()) * size_of(q.view().dtype),
                    cudaMemcpyDeviceToHost));
    verify::Comparison found = verify::compare_bits(q_cpu.view(), q_out.view());
    found.merge(verify::compare_bits(k_cpu.view(), k_out.view()));
    return found.detail;
  }
};

/// Captured once; replayed after the positions in device memory have changed.
void check_graph(Report& report, bool programmatic, std::uint64_t seed) {
  const std::int64_t tokens = 33;
  const RotaryPlan plan = make_plan(128);
  const cuda::DevicePlan device_plan(plan);
  const Qk data(Dtype::bfloat16, tokens, seed);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(tokens), 5);
  const DeviceBuffer there(positions.size() * 8);
  there.upload(positions.data(), there.size());
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cuda::rotate(device_plan, data.on_device,
               Positions::from_tokens(std::span(there.as<const std::int64_t>(), positions.size())),
               stream, {.programmatic = programmatic});
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphInstantiate(&ready, graph, 0));
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{131071}, std::int64_t{1} << 31}) {
    for (std::size_t t = 0; t < positions.size(); ++t) {
      positions[t] = first + static_cast<std::int64_t>(3 * t);
    }
    there.upload(positions.data(), there.size());
    data.poison_output();
    must(cudaDeviceSynchronize());
    must(cudaGraphLaunch(ready, stream));
    must(cudaStreamSynchronize(stream));
    const std::string difference = data.difference(plan, Positions::from_tokens(positions));
    report.check(difference.empty(), fmt::format("replay from {}: {}", first, difference));
  }
  must(cudaGraphExecDestroy(ready));
  must(cudaGraphDestroy(graph));
  must(cudaStreamDestroy(stream));
}

/// Chains in which each kernel reads what the one before wrote, with programmatic launch.
void check_programmatic_chain(Report& report, std::uint64_t seed) {
  const RotaryPlan plan = make_plan(128);
  const cuda::DevicePlan device_plan(plan);
  for (const std::int64_t tokens : {1, 8, 300}) {
    const Qk a(Dtype::float32, tokens, seed);
    const Qk b(Dtype::float32, tokens, seed);
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const bool programmatic : {false, true}) {
      const Qk& data = programmatic ? b : a;
      const std::array in_place{
          Rotation::in_place({data.on_device[0].out.data, Dtype::float32,
                              data.on_device[0].out.size, data.on_device[0].out.stride}),
          Rotation::in_place({data.on_device[1].out.data, Dtype::float32,
                              data.on_device[1].out.size, data.on_device[1].out.stride})};
      const cuda::Options options{.programmatic = programmatic};
      must(cudaDeviceSynchronize());
      cuda::rotate(device_plan, data.on_device, Positions::from_offset(11), stream, options);
      for (int i = 0; i < 20; ++i) {
        cuda::rotate(device_plan, in_place, Positions::from_offset(1000 + i), stream, options);
      }
      must(cudaStreamSynchronize(stream));
    }
    const std::uint64_t different =
        verify::different_bytes(a.on_device[0].out.data, b.on_device[0].out.data,
                                static_cast<std::int64_t>(a.memory.size() / 2));
    report.check(different == 0, fmt::format("programmatic chain of 21, {} tokens: {} bytes differ",
                                             tokens, different));
    must(cudaStreamDestroy(stream));
  }
}

void check_two_streams(Report& report, std::uint64_t seed) {
  const RotaryPlan plans[2] = {make_plan(128, 10000.0), make_plan(128, 500000.0)};
  const cuda::DevicePlan device_plans[2] = {cuda::DevicePlan(plans[0]), cuda::DevicePlan(plans[1])};
  const Qk data[2] = {Qk(Dtype::bfloat16, 700, seed), Qk(Dtype::bfloat16, 700, seed + 1)};
  cudaStream_t streams[2];
  for (cudaStream_t& s : streams) must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  must(cudaDeviceSynchronize());
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < 2; ++i) {
      cuda::rotate(device_plans[i], data[i].on_device, Positions::from_offset(round), streams[i]);
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    must(cudaStreamSynchronize(streams[i]));
    const std::string difference = data[i].difference(plans[i], Positions::from_offset(49));
    report.check(difference.empty(), fmt::format("stream {}: {}", i, difference));
    must(cudaStreamDestroy(streams[i]));
  }
}

/// With one device only the current one can be tried; with two the other is.
void check_devices(Report& report, std::uint64_t seed) {
  const int last = static_cast<int>(cuda::devices().size()) - 1;
  must(cudaSetDevice(last));
  const RotaryPlan plan = make_plan(128);
  const cuda::DevicePlan device_plan(plan, last);
  const Qk data(Dtype::float16, 9, seed);
  must(cudaSetDevice(0));
  cuda::rotate(device_plan, data.on_device, Positions::from_offset(2), nullptr);
  int current = -1;
  must(cudaGetDevice(&current));
  report.check(current == 0, "the current device stays as it was");
  must(cudaSetDevice(last));
  must(cudaDeviceSynchronize());
  const std::string difference = data.difference(plan, Positions::from_offset(2));
  report.check(difference.empty(), fmt::format("device {} of {}: {}", last, last + 1, difference));
  must(cudaSetDevice(0));
}

/// More than 2^31 and 2^32 elements in one tensor, compared in full with rotations of small pieces
/// by the narrow path.
void check_large_tensor(Report& report, Pairing pairing, std::int64_t tokens, bool heads_first,
                        const std::string& policy) {
  constexpr std::int64_t heads = 40;
  constexpr std::int64_t dim = 128;
  const std::int64_t elements = tokens * heads * dim;
  const auto bytes = static_cast<std::size_t>(elements) * 2;
  const std::string what = fmt::format("{} {} elements {} {}", name_of(pairing), elements,
                                       heads_first ? "heads first" : "tokens first", policy);
  std::size_t free = 0;
  std::size_t total = 0;
  must(cudaMemGetInfo(&free, &total));
  if (free < 3 * bytes) {
    fmt::print("skipped {}: too little memory\n", what);
    return;
  }
  const cuda::DevicePlan plan(make_plan(dim, 10000.0, 0, pairing));
  const DeviceBuffer in(bytes);
  const DeviceBuffer out(bytes);
  const DeviceBuffer expected(bytes);
  verify::fill_normal(in.data(), elements, Dtype::bfloat16, 3, nullptr);
  must(cudaMemset(out.data(), 0xff, bytes));
  must(cudaMemset(expected.data(), 0x7f, bytes));  // other bytes: what nobody wrote differs
  const auto view = [&](const DeviceBuffer& buffer) {
    return heads_first ? bhtd(buffer.data(), Dtype::bfloat16, 1, tokens, heads, dim)
                       : bthd(buffer.data(), Dtype::bfloat16, 1, tokens, heads, dim);
  };
  cuda::rotate(plan, std::array{Rotation{view(in), view(out)}}, Positions::from_offset(0), nullptr,
               {.policy = policy});
  constexpr std::int64_t piece = 4096;
  for (std::int64_t first = 0; first < tokens; first += piece) {
    TensorView from = view(in);
    TensorView to = view(expected);
    const std::int64_t lead = first * from.stride[kToken] * 2;
    from.data = static_cast<std::byte*>(from.data) + lead;
    to.data = static_cast<std::byte*>(to.data) + lead;
    from.size[kToken] = to.size[kToken] = std::min(piece, tokens - first);
    cuda::rotate(plan, std::array{Rotation{from, to}}, Positions::from_offset(first), nullptr,
                 {.policy = "narrow"});
  }
  const std::uint64_t different =
      verify::different_bytes(out.data(), expected.data(), static_cast<std::int64_t>(bytes));
  report.check(different == 0, fmt::format("{}: {} bytes differ", what, different));
}

}  // namespace

void check_streams_and_graphs(Report& report, const CheckOptions& options) {
  report.section("graph capture, positions changed", [&] {
    check_graph(report, false, options.seed);
    check_graph(report, true, options.seed);
  });
  report.section("programmatic chains", [&] { check_programmatic_chain(report, options.seed); });
  report.section("two streams", [&] { check_two_streams(report, options.seed); });
  report.section("devices", [&] { check_devices(report, options.seed); });
}

void check_large(Report& report, const CheckOptions&) {
  report.section("more than 2^31 and 2^32 elements", [&] {
    constexpr std::int64_t over31 = (std::int64_t{1} << 31) / (40 * 128) + 77;
    constexpr std::int64_t over32 = (std::int64_t{1} << 32) / (40 * 128) + 77;
    check_large_tensor(report, Pairing::half, over31, false, "");
    check_large_tensor(report, Pairing::half, over32, false, "");
    check_large_tensor(report, Pairing::half, over32, true, "");
    check_large_tensor(report, Pairing::interleaved, over32, false, "");
    check_large_tensor(report, Pairing::interleaved, over32, true, "narrow");
  });
}

}  // namespace ropewalk::testing
