#include "rotate/cuda/kernel_table.h"

namespace ropewalk::cuda {

DtypeKernels float64_kernels() {
  return make_kernels<double, kShapes64, kShapes64, kShapesMixed64, kWarpShapes64>();
}

}  // namespace ropewalk::cuda
