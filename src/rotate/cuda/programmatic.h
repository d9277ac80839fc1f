// Programmatic dependent launch: a kernel may start while its predecessor drains. Cards before
// compute capability 9.0 never start one early, and have no such instructions.
#pragma once

namespace ropewalk::cuda {

__device__ __forceinline__ void start_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Returns when everything the predecessor wrote can be read, at once where there is none.
__device__ __forceinline__ void wait_for_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace ropewalk::cuda
