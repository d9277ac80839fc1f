// What measured memory holds.
#pragma once

#include <cstdint>

#include "measure/buffer.h"
#include "ropewalk/types.h"

namespace ropewalk::measure {

/// Normal random numbers of `dtype` through the whole buffer. Copies are measured on such data too:
/// on a Zen 5 a copy of zeros is faster than a copy of anything else (docs/cpu.md).
void fill_normal(const Buffer& buffer, Dtype dtype, std::uint64_t seed);

}  // namespace ropewalk::measure
