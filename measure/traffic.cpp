#include "measure/traffic.h"

namespace ropewalk::measure {

std::int64_t necessary_bytes(const Shape& shape, bool in_place) noexcept {
  const std::int64_t channels = in_place ? shape.rotary_dim : shape.head_dim;
  return 2 * shape.batch * shape.tokens * (shape.query_heads + shape.key_heads) * channels *
         static_cast<std::int64_t>(size_of(shape.dtype));
}

std::int64_t three_times_counted_bytes(const Shape& shape, bool in_place) noexcept {
  return necessary_bytes(shape, in_place) / 2 * 3;
}

}  // namespace ropewalk::measure
