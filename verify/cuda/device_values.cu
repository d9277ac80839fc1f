#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "verify/cuda/device_memory.h"
#include "verify/cuda/device_values.h"

namespace ropewalk::verify {
namespace {

constexpr int kBlocks = 2048;
constexpr int kThreads = 256;

__device__ std::int64_t first_index() {
  return blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
}
__device__ std::int64_t index_step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// splitmix64's finaliser: every bit of the result depends on every bit of x.
__device__ std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Box and Muller's, of two 24-bit uniform numbers.
__device__ float normal(std::uint64_t index, std::uint64_t seed) {
  const std::uint64_t bits = mixed(index + (seed << 40));
  const float u = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xffffffu) * 0x1p-24f;
  return sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
}

template <class T>
__global__ void fill(T* data, std::int64_t elements, std::uint64_t seed) {
  for (std::int64_t i = first_index(); i < elements; i += index_step()) {
    data[i] = static_cast<T>(normal(static_cast<std::uint64_t>(i), seed));
  }
}

__global__ void compare(const unsigned char* a, const unsigned char* b, std::int64_t bytes,
                        unsigned long long* count) {
  unsigned long long mine = 0;
  const std::int64_t words = bytes / 8;
  for (std::int64_t i = first_index(); i < words; i += index_step()) {
    std::uint64_t x =
        reinterpret_cast<const std::uint64_t*>(a)[i] ^ reinterpret_cast<const std::uint64_t*>(b)[i];
    for (; x != 0; x >>= 8) mine += (x & 0xff) != 0 ? 1 : 0;
  }
  for (std::int64_t i = 8 * words + first_index(); i < bytes; i += index_step()) {
    mine += a[i] != b[i] ? 1 : 0;
  }
  if (mine != 0) atomicAdd(count, mine);
}

template <class T>
void launch_fill(void* data, std::int64_t elements, std::uint64_t seed, cudaStream_t stream) {
  fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<T*>(data), elements, seed);
}

}  // namespace

void fill_normal(void* data, std::int64_t elements, Dtype dtype, std::uint64_t seed,
                 cudaStream_t stream) {
  switch (dtype) {
    case Dtype::bfloat16: launch_fill<__nv_bfloat16>(data, elements, seed, stream); break;
    case Dtype::float16: launch_fill<__half>(data, elements, seed, stream); break;
    case Dtype::float32: launch_fill<float>(data, elements, seed, stream); break;
    case Dtype::float64: launch_fill<double>(data, elements, seed, stream); break;
  }
}

void count_different_bytes(const void* a, const void* b, std::int64_t bytes,
                           unsigned long long* count, cudaStream_t stream) {
  compare<<<kBlocks, kThreads, 0, stream>>>(static_cast<const unsigned char*>(a),
                                            static_cast<const unsigned char*>(b), bytes, count);
}

std::uint64_t different_bytes(const void* a, const void* b, std::int64_t bytes) {
  const DeviceBuffer counter(sizeof(unsigned long long));
  unsigned long long count = 0;
  counter.upload(&count, sizeof count);
  count_different_bytes(a, b, bytes, counter.as<unsigned long long>(), nullptr);
  counter.download(&count, sizeof count);
  return count;
}

}  // namespace ropewalk::verify
