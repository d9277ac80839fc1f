#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "bench/cuda/floors.h"
#include "rotate/cuda/programmatic.h"

namespace ropewalk::bench {
namespace {

constexpr FloorKernel kFloors[] = {
    {"memcpy", false, 0, 0},       {"copy 1x128", false, 1, 128}, {"copy 1x256", false, 1, 256},
    {"copy 2x128", false, 2, 128}, {"copy 4x128", false, 4, 128}, {"flip 1x128", true, 1, 128},
    {"flip 1x256", true, 1, 256},  {"flip 2x128", true, 2, 128},  {"flip 4x128", true, 4, 128},
};

template <int kAccesses, bool kFlip>
__global__ void pass(const uint4* in, uint4* out, std::int64_t count, bool programmatic) {
  if (programmatic) {
    cuda::start_dependents();
    cuda::wait_for_predecessor();
  }
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x * kAccesses + threadIdx.x;
  uint4 x[kAccesses];
#pragma unroll
  for (int i = 0; i < kAccesses; ++i) {
    const std::int64_t at = first + i * blockDim.x;
    if (at < count) x[i] = in[at];
  }
#pragma unroll
  for (int i = 0; i < kAccesses; ++i) {
    const std::int64_t at = first + i * blockDim.x;
    if (at >= count) continue;
    if constexpr (kFlip) {
      x[i].x ^= 0x80008000u;
      x[i].y ^= 0x80008000u;
      x[i].z ^= 0x80008000u;
      x[i].w ^= 0x80008000u;
    }
    out[at] = x[i];
  }
}

using Pass = void (*)(const uint4*, uint4*, std::int64_t, bool);
Pass pass_of(const FloorKernel& kernel) {
  switch (kernel.accesses) {
    case 1: return kernel.in_place ? &pass<1, true> : &pass<1, false>;
    case 2: return kernel.in_place ? &pass<2, true> : &pass<2, false>;
    default: return kernel.in_place ? &pass<4, true> : &pass<4, false>;
  }
}

__global__ void delay(std::uint64_t nanoseconds) {
  std::uint64_t begin;
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

__global__ void flush(const uint4* memory, std::int64_t count, unsigned* sink) {
  unsigned sum = 0;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const uint4 x = __ldcg(memory + i);
    sum ^= x.x ^ x.y ^ x.z ^ x.w;
  }
  if (sum == 0x12345679u) *sink = sum;
}

__device__ std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ float normal(std::uint64_t index, std::uint64_t seed) {
  const std::uint64_t bits = mixed(index + (seed << 40));
  const float u = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xffffffu) * 0x1p-24f;
  return sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
}

template <class T>
__global__ void fill(T* data, std::int64_t elements, std::uint64_t seed) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < elements; i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    data[i] = static_cast<T>(normal(static_cast<std::uint64_t>(i), seed));
  }
}

__global__ void compare(const unsigned char* a, const unsigned char* b, std::int64_t bytes,
                        unsigned long long* count) {
  unsigned long long mine = 0;
  const std::int64_t words = bytes / 8;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  for (std::int64_t i = first; i < words; i += stride) {
    mine +=
        reinterpret_cast<const std::uint64_t*>(a)[i] != reinterpret_cast<const std::uint64_t*>(b)[i]
            ? 1
            : 0;
  }
  for (std::int64_t i = 8 * words + first; i < bytes; i += stride) mine += a[i] != b[i] ? 1 : 0;
  if (mine != 0) atomicAdd(count, mine);
}

constexpr int kBlocks = 1056;
constexpr int kThreads = 256;

}  // namespace

std::span<const FloorKernel> floor_kernels() { return kFloors; }

void launch_floor(const FloorKernel& kernel, const void* in, void* out, std::int64_t bytes,
                  cudaStream_t stream, bool programmatic) {
  if (kernel.accesses == 0) {
    cudaMemcpyAsync(out, in, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream);
    return;
  }
  const std::int64_t count = bytes / 16;
  const std::int64_t of_block = static_cast<std::int64_t>(kernel.accesses) * kernel.threads;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>((count + of_block - 1) / of_block));
  config.blockDim = dim3(static_cast<unsigned>(kernel.threads));
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  if (programmatic) {
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  cudaLaunchKernelEx(&config, pass_of(kernel), static_cast<const uint4*>(in),
                     static_cast<uint4*>(out), count, programmatic);
}

void launch_delay(std::uint64_t nanoseconds, cudaStream_t stream) {
  delay<<<1, 1, 0, stream>>>(nanoseconds);
}

void launch_flush(const void* memory, std::int64_t bytes, unsigned* sink, cudaStream_t stream) {
  flush<<<kBlocks, kThreads, 0, stream>>>(static_cast<const uint4*>(memory), bytes / 16, sink);
}

void launch_fill(void* data, std::int64_t elements, int kind, std::uint64_t seed,
                 cudaStream_t stream) {
  switch (kind) {
    case 0:
      fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(data), elements, seed);
      break;
    case 1:
      fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<__half*>(data), elements, seed);
      break;
    case 2:
      fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<float*>(data), elements, seed);
      break;
    default: fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<double*>(data), elements, seed);
  }
}

void launch_compare(const void* a, const void* b, std::int64_t bytes, unsigned long long* count,
                    cudaStream_t stream) {
  compare<<<kBlocks, kThreads, 0, stream>>>(static_cast<const unsigned char*>(a),
                                            static_cast<const unsigned char*>(b), bytes, count);
}

}  // namespace ropewalk::bench
