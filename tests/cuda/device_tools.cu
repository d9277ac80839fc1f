#include <cuda_runtime.h>

#include "tests/cuda/device_tools.h"
#include "verify/cuda/device_memory.h"

namespace ropewalk::testing {
namespace {

__device__ std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__global__ void fill(std::uint16_t* data, std::int64_t elements, std::uint64_t seed) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < elements; i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const std::uint64_t bits = mixed(static_cast<std::uint64_t>(i) + seed);
    // Sign, an exponent from 2^-7 to 2^0, seven bits of mantissa.
    const auto exponent = static_cast<std::uint16_t>(120 + (bits >> 8 & 7));
    data[i] = static_cast<std::uint16_t>((bits & 0x807f) | exponent << 7);
  }
}

__global__ void compare(const std::uint16_t* a, const std::uint16_t* b, std::int64_t words,
                        unsigned long long* differences) {
  unsigned long long mine = 0;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < words;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    mine += a[i] != b[i] ? 1 : 0;
  }
  if (mine != 0) atomicAdd(differences, mine);
}

constexpr int kBlocks = 2048;
constexpr int kThreads = 256;

}  // namespace

void fill_bfloat16(void* data, std::int64_t elements, std::uint64_t seed) {
  fill<<<kBlocks, kThreads>>>(static_cast<std::uint16_t*>(data), elements, seed << 40);
}

void poison(void* data, std::size_t bytes) { cudaMemset(data, 0xff, bytes); }

std::uint64_t count_differences(const void* a, const void* b, std::int64_t words) {
  const verify::DeviceBuffer counter(sizeof(unsigned long long));
  unsigned long long count = 0;
  counter.upload(&count, sizeof count);
  compare<<<kBlocks, kThreads>>>(static_cast<const std::uint16_t*>(a),
                                 static_cast<const std::uint16_t*>(b), words,
                                 counter.as<unsigned long long>());
  counter.download(&count, sizeof count);
  return count;
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  return free;
}

}  // namespace ropewalk::testing
