#include "measure/fill.h"

#include <algorithm>
#include <cstring>

#include "verify/random.h"

namespace ropewalk::measure {

void fill_normal(const Buffer& buffer, Dtype dtype, std::uint64_t seed) {
  // Random elements are expensive; a block of them is repeated through the buffer.
  constexpr std::int64_t kBlockElements = 65'521;  // prime: no two rows of a head start alike
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t elements = static_cast<std::int64_t>(buffer.size()) / size;
  const std::int64_t block = std::min(elements, kBlockElements);
  if (block == 0) return;
  const TensorView view{buffer.data(), dtype, {1, 1, 1, block}, {block, block, block, 1}};
  verify::Random(seed).fill(view, verify::Values::normal);
  const auto block_bytes = static_cast<std::size_t>(block * size);
  for (std::size_t at = block_bytes; at < buffer.size(); at += block_bytes) {
    std::memcpy(buffer.data() + at, buffer.data(), std::min(block_bytes, buffer.size() - at));
  }
}

}  // namespace ropewalk::measure
