// Index arithmetic of the kernels, in as few instructions as there are.
#pragma once

#include <cstdint>

namespace ropewalk::cuda {

__device__ __forceinline__ std::uint32_t quotient(std::uint32_t x, std::uint32_t multiplier,
                                                  std::uint32_t shift) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(x) * multiplier) >> shift);
}

/// sum + i · s in one instruction, for an index below 2^31 and a signed stride.
__device__ __forceinline__ std::int64_t add_product(std::uint32_t i, std::int32_t stride,
                                                    std::int64_t sum) {
  asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(sum) : "r"(i), "r"(stride));
  return sum;
}

}  // namespace ropewalk::cuda
