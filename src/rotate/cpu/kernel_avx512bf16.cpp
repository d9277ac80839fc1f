#include "base/cpu_features.h"
#include "rotate/cpu/kernel_table.h"
#include "rotate/cpu/kernels.h"
#include "rotate/cpu/vec_avx512_words.h"

namespace ropewalk::cpu {

const Kernel kAvx512Bf16Kernel{.name = "avx512bf16",
                               .description = "512-bit with bfloat16 conversion instructions",
                               .supported = [] { return cpu_features().avx512bf16; },
                               .store_alignment = 64,
                               .angles_float = &fill_angles<avx512::Float32>,
                               .angles_double = &fill_angles<avx512::Float64>,
                               .tile = &tile_of<avx512::Isa<true>>,
                               .fence = &avx512::Float32::fence};

}  // namespace ropewalk::cpu
