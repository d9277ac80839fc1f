#include "rotate/cuda/kernel_table.h"

namespace ropewalk::cuda {

DtypeKernels float32_kernels() {
  return make_kernels<float, kShapes32, kShapes32, kShapesMixed32, kWarpShapes32>();
}

}  // namespace ropewalk::cuda
