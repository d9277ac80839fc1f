#include "rotate/cuda/kernels.h"

namespace ropewalk::cuda {

DtypeKernels kernels_of(Dtype dtype) {
  static const DtypeKernels all[] = {float64_kernels(), float32_kernels(), float16_kernels(),
                                     bfloat16_kernels()};
  return all[static_cast<std::size_t>(dtype)];
}

VectorFunction find_vector_kernel(Dtype dtype, Order read, Order write, const VectorShape& shape) {
  for (const VectorKernel& kernel : kernels_of(dtype).vectors) {
    if (kernel.read == read && kernel.write == write && kernel.shape == shape) {
      return kernel.function;
    }
  }
  return nullptr;
}

WarpFunction find_warp_kernel(Dtype dtype, Order order, const WarpShape& shape) {
  for (const WarpKernel& kernel : kernels_of(dtype).warps) {
    if (kernel.order == order && kernel.shape == shape) return kernel.function;
  }
  return nullptr;
}

}  // namespace ropewalk::cuda
