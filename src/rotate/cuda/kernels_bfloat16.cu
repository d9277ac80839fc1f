#include "rotate/cuda/kernel_table.h"

namespace ropewalk::cuda {

DtypeKernels bfloat16_kernels() {
  return make_kernels<BFloat16, kShapes16Half, kShapes16Interleaved, kShapesMixed16,
                      kWarpShapes16>();
}

}  // namespace ropewalk::cuda
