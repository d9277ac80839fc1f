#include "rotate/cuda/kernel_table.h"

namespace ropewalk::cuda {

DtypeKernels float16_kernels() {
  return make_kernels<Float16, kShapes16Half, kShapes16Interleaved, kShapesMixed16,
                      kWarpShapes16>();
}

}  // namespace ropewalk::cuda
