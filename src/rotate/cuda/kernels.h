// The compiled kernels, as the launcher sees them.
#pragma once

#include <span>

#include "rotate/cuda/arguments.h"
#include "rotate/cuda/shapes.h"

namespace ropewalk::cuda {

using Kernel = void (*)(Args);
using VectorFunction = void (*)(VectorArgs);

struct VectorKernel {
  Order read;
  Order write;
  VectorShape shape;
  VectorFunction function;
};

/// A kernel that takes WarpArgs in the token map, WarpSweepArgs in the sweep.
using WarpFunction = const void*;

struct WarpKernel {
  Order order;
  WarpShape shape;
  WarpFunction function;
};

struct DtypeKernels {
  std::span<const VectorKernel> vectors;
  std::span<const WarpKernel> warps;
  Kernel narrow;
  Kernel narrow_table;
  Kernel narrow_table_double;  ///< computing in float64 (parity P4)
  Kernel copy;
};

[[nodiscard]] DtypeKernels float64_kernels();
[[nodiscard]] DtypeKernels float32_kernels();
[[nodiscard]] DtypeKernels float16_kernels();
[[nodiscard]] DtypeKernels bfloat16_kernels();
[[nodiscard]] DtypeKernels kernels_of(Dtype dtype);

/// Null where no such kernel is compiled.
[[nodiscard]] VectorFunction find_vector_kernel(Dtype dtype, Order read, Order write,
                                                const VectorShape& shape);

[[nodiscard]] WarpFunction find_warp_kernel(Dtype dtype, Order order, const WarpShape& shape);

}  // namespace ropewalk::cuda
