// A decode step in a CUDA graph, in C++: projection → rotation of q and k in one launch →
// attention. Positions lie in device memory and are changed between replays; an empty slot of the
// batch has position −1 and its rows are passed through.
//
// Checks that replays equal eager launches bit for bit and prints the times of both at 1 to 64
// tokens. Without a GPU it says so and ends.
#include <cuda_runtime.h>
#include <ropewalk/cuda.h>
#include <ropewalk/error.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using ropewalk::Dtype;
using ropewalk::Rotation;

constexpr int kHeads = 8, kKeyHeads = 2, kHeadDim = 128, kHidden = 512, kContext = 256;
constexpr int kWidth = (kHeads + 2 * kKeyHeads) * kHeadDim;  // q, k, v of a token
constexpr int kPadding = -1;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "cuda_graph: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

/// qkv[t, o] = Σ x[t, i] · w[o, i]; a block for each token, a thread for some outputs.
__global__ void project(const float* x, const float* w, float* qkv) {
  const int token = blockIdx.x;
  for (int o = blockIdx.y * blockDim.x + threadIdx.x; o < kWidth; o += gridDim.y * blockDim.x) {
    float sum = 0;
    for (int i = 0; i < kHidden; ++i) sum += x[token * kHidden + i] * w[o * kHidden + i];
    qkv[token * kWidth + o] = sum;
  }
}

/// Stores this token's key and value, then attends to those of its slot up to its position. A block
/// for each token and head, a thread for each channel.
__global__ void attend(const float* qkv, const long long* positions, float* keys, float* values,
                       float* out) {
  __shared__ float score[kContext];
  __shared__ float partial[kHeadDim];
  const int slot = blockIdx.x, head = blockIdx.y, channel = threadIdx.x;
  const int key_head = head / (kHeads / kKeyHeads);
  float& result = out[(slot * kHeads + head) * kHeadDim + channel];
  const long long position = positions[slot];
  if (position < 0) {
    result = 0;
    return;
  }
  const float* token = qkv + slot * kWidth;
  const auto at = [&](long long p) {
    return ((slot * kContext + p) * kKeyHeads + key_head) * kHeadDim + channel;
  };
  // Every head of a group stores the same values.
  keys[at(position)] = token[(kHeads + key_head) * kHeadDim + channel];
  values[at(position)] = token[(kHeads + kKeyHeads + key_head) * kHeadDim + channel];
  for (long long p = 0; p <= position; ++p) {
    partial[channel] = token[head * kHeadDim + channel] * keys[at(p)];
    for (int half = kHeadDim / 2; half > 0; half /= 2) {
      __syncthreads();
      if (channel < half) partial[channel] += partial[channel + half];
    }
    __syncthreads();
    if (channel == 0) score[p] = partial[0] * rsqrtf(static_cast<float>(kHeadDim));
  }
  __syncthreads();
  float largest = score[0], sum = 0, weighted = 0;
  for (long long p = 1; p <= position; ++p) largest = fmaxf(largest, score[p]);
  for (long long p = 0; p <= position; ++p) {
    const float weight = expf(score[p] - largest);
    sum += weight;
    weighted += weight * values[at(p)];
  }
  result = weighted / sum;
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    check(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  [[nodiscard]] T* get() const { return data_; }
  void set(const std::vector<T>& from) {
    check(cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "copy");
  }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> to(count_);
    check(cudaMemcpy(to.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "copy");
    return to;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// A step for `slots` sequences, one new token each.
class Step {
 public:
  explicit Step(int slots)
      : slots_(slots),
        plan_(ropewalk::make_plan(kHeadDim, 500000.0)),
        weights(std::size_t{kWidth} * kHidden),
        x(std::size_t(slots) * kHidden),
        qkv_(std::size_t(slots) * kWidth),
        keys_(std::size_t(slots) * kContext * kKeyHeads * kHeadDim),
        values_(std::size_t(slots) * kContext * kKeyHeads * kHeadDim),
        positions(std::size_t(slots)),
        out(std::size_t(slots) * kHeads * kHeadDim) {}

  /// q and k of the packed projection, in place, in one launch.
  void rotate(cudaStream_t stream) const {
    const auto view = [&](int first_head, int heads) {
      ropewalk::TensorView v;
      v.data = qkv_.get() + first_head * kHeadDim;
      v.dtype = Dtype::float32;
      v.size = {slots_, 1, heads, kHeadDim};
      v.stride = {kWidth, kWidth, kHeadDim, 1};
      return v;
    };
    const Rotation rotations[] = {Rotation::in_place(view(0, kHeads)),
                                  Rotation::in_place(view(kHeads, kKeyHeads))};
    ropewalk::Positions where;
    where.kind = ropewalk::Positions::Kind::per_token;
    where.data = positions.get();
    where.count = 1;
    where.batch_stride = 1;
    where.padding = kPadding;
    ropewalk::cuda::rotate(plan_, rotations, where, stream);
  }

  void run(cudaStream_t stream) const {
    project<<<dim3(unsigned(slots_), 12), 128, 0, stream>>>(x.get(), weights.get(), qkv_.get());
    rotate(stream);
    attend<<<dim3(unsigned(slots_), kHeads), kHeadDim, 0, stream>>>(
        qkv_.get(), positions.get(), keys_.get(), values_.get(), out.get());
    check(cudaGetLastError(), "launch");
  }

 private:
  int slots_;
  ropewalk::cuda::DevicePlan plan_;

 public:
  DeviceArray<float> weights, x;

 private:
  DeviceArray<float> qkv_, keys_, values_;

 public:
  DeviceArray<long long> positions;
  DeviceArray<float> out;
};

using Body = std::function<void(cudaStream_t)>;

cudaGraphExec_t capture(cudaStream_t stream, const Body& body) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of capture");
  body(stream);
  check(cudaStreamEndCapture(stream, &graph), "end of capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiation");
  check(cudaGraphDestroy(graph), "destruction");
  return executable;
}

/// Median of 30 runs of 20 calls, in microseconds for each call.
double microseconds(cudaStream_t stream, const Body& body) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<float> times(30);
  for (float& time : times) {
    check(cudaEventRecord(begin, stream), "record");
    for (int i = 0; i < 20; ++i) body(stream);
    check(cudaEventRecord(end, stream), "record");
    check(cudaEventSynchronize(end), "run");
    check(cudaEventElapsedTime(&time, begin, end), "time");
  }
  std::nth_element(times.begin(), times.begin() + 15, times.end());
  check(cudaEventDestroy(begin), "event");
  check(cudaEventDestroy(end), "event");
  return times[15] * 1e3 / 20;
}

void run(int slots, std::mt19937& random) {
  Step step(slots);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  const auto numbers = [&](std::size_t count, float scale) {
    std::vector<float> values(count);
    for (float& value : values) value = scale * normal(random);
    return values;
  };
  step.weights.set(numbers(std::size_t{kWidth} * kHidden, 0.04F));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "stream");
  const cudaGraphExec_t graph = capture(stream, [&](cudaStream_t s) { step.run(s); });
  for (int turn = 0; turn < 4; ++turn) {
    std::vector<long long> positions(static_cast<std::size_t>(slots));
    for (long long& position : positions) position = (random() + turn) % kContext;
    if (slots > 1) positions.back() = kPadding;
    step.positions.set(positions);
    step.x.set(numbers(std::size_t(slots) * kHidden, 1.0F));
    check(cudaGraphLaunch(graph, stream), "replay");
    check(cudaStreamSynchronize(stream), "replay");
    const std::vector<float> replayed = step.out.read();
    step.run(stream);
    check(cudaStreamSynchronize(stream), "step");
    if (replayed != step.out.read()) {
      std::fprintf(stderr, "cuda_graph: the replay differs at %d tokens\n", slots);
      std::exit(1);
    }
  }
  const cudaGraphExec_t rotation = capture(stream, [&](cudaStream_t s) { step.rotate(s); });
  const double times[] = {
      microseconds(stream, [&](cudaStream_t s) { step.rotate(s); }),
      microseconds(stream, [&](cudaStream_t s) { cudaGraphLaunch(rotation, s); }),
      microseconds(stream, [&](cudaStream_t s) { step.run(s); }),
      microseconds(stream, [&](cudaStream_t s) { cudaGraphLaunch(graph, s); })};
  check(cudaStreamSynchronize(stream), "timing");
  std::printf("%6d | %8.2f %8.2f %6.2f | %8.2f %8.2f %6.2f\n", slots, times[0], times[1],
              times[0] / times[1], times[2], times[3], times[2] / times[3]);
  check(cudaGraphExecDestroy(graph), "destruction");
  check(cudaGraphExecDestroy(rotation), "destruction");
  check(cudaStreamDestroy(stream), "stream");
}

}  // namespace

int main() {
  if (const std::string why = ropewalk::cuda::why_no_device(); !why.empty()) {
    std::printf("cuda_graph: %s\n", why.c_str());
    return 0;
  }
  try {
    std::mt19937 random(std::random_device{}());
    std::printf("tokens | rotation: eager, graph (us), speed-up | step: eager, graph, speed-up\n");
    for (const int slots : {1, 2, 4, 8, 16, 32, 64}) run(slots, random);
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "cuda_graph: %s\n", error.what());
    return 1;
  }
  return 0;
}
