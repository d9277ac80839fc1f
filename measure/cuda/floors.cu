#include "measure/cuda/floors.h"
#include "rotate/cuda/programmatic.h"
#include "verify/cuda/device_memory.h"

namespace ropewalk::measure {
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

__global__ void empty(bool programmatic) {
  if (!programmatic) return;
  cuda::start_dependents();
  cuda::wait_for_predecessor();
}

/// Launches with or without the attribute of programmatic launch.
template <class... A>
void launch(void (*kernel)(A...), dim3 grid, dim3 block, cudaStream_t stream, bool programmatic,
            A... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  if (programmatic) {
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  verify::must(cudaLaunchKernelEx(&config, kernel, arguments...), "launch of a floor");
}

constexpr int kBlocks = 1056;
constexpr int kThreads = 256;

}  // namespace

std::span<const FloorKernel> floor_kernels() { return kFloors; }

void launch_floor(const FloorKernel& kernel, const void* in, void* out, std::int64_t bytes,
                  cudaStream_t stream, bool programmatic) {
  if (kernel.accesses == 0) {
    verify::must(
        cudaMemcpyAsync(out, in, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
    return;
  }
  const std::int64_t count = bytes / 16;
  const std::int64_t of_block = static_cast<std::int64_t>(kernel.accesses) * kernel.threads;
  launch(pass_of(kernel), dim3(static_cast<unsigned>((count + of_block - 1) / of_block)),
         dim3(static_cast<unsigned>(kernel.threads)), stream, programmatic,
         static_cast<const uint4*>(in), static_cast<uint4*>(out), count, programmatic);
}

void launch_empty(cudaStream_t stream, bool programmatic) {
  launch(&empty, dim3(1), dim3(32), stream, programmatic, programmatic);
}

void launch_delay(std::uint64_t nanoseconds, cudaStream_t stream) {
  delay<<<1, 1, 0, stream>>>(nanoseconds);
}

void launch_flush(const void* memory, std::int64_t bytes, unsigned* sink, cudaStream_t stream) {
  flush<<<kBlocks, kThreads, 0, stream>>>(static_cast<const uint4*>(memory), bytes / 16, sink);
}

}  // namespace ropewalk::measure
