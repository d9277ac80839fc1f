#include "base/cpu_features.h"
#include "rotate/cpu/kernel_table.h"
#include "rotate/cpu/kernels.h"
#include "rotate/cpu/vec_avx2_words.h"

namespace ropewalk::cpu {

const Kernel kAvx2Kernel{.name = "avx2",
                         .description = "256-bit, FMA, F16C",
                         .supported = [] { return cpu_features().avx2_fma_f16c; },
                         .store_alignment = 32,
                         .angles_float = &fill_angles<avx2::Float32>,
                         .angles_double = &fill_angles<avx2::Float64>,
                         .tile = &tile_of<avx2::Isa>,
                         .fence = &avx2::Float32::fence};

}  // namespace ropewalk::cpu
