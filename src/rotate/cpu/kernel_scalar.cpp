#include "phase/scalar_lanes.h"
#include "rotate/cpu/kernel_table.h"
#include "rotate/cpu/kernels.h"

namespace ropewalk::cpu {
namespace {

struct ScalarIsa {
  template <class Storage>
  using Lanes = ScalarLanes<Storage>;
};

template <class Storage>
TileFunction tile64(const TileKey& key) {
  return tile_in_order<ScalarLanes<Storage, double>, Separate, Store::cached>(key.read, key.write);
}

}  // namespace

TileFunction tile_computing_in_double(const TileKey& key) {
  switch (key.dtype) {
    case Dtype::float64: return tile64<double>(key);
    case Dtype::float32: return tile64<float>(key);
    case Dtype::float16: return tile64<Float16>(key);
    case Dtype::bfloat16: return tile64<BFloat16>(key);
  }
  return nullptr;
}

const Kernel kScalarKernel{.name = "scalar",
                           .description = "portable C++, one lane",
                           .supported = [] { return true; },
                           .store_alignment = 1,
                           .angles_float = &fill_angles<ScalarLanes<float>>,
                           .angles_double = &fill_angles<ScalarLanes<double>>,
                           .tile = &tile_of<ScalarIsa>,
                           .fence = &ScalarLanes<float>::fence};

}  // namespace ropewalk::cpu
