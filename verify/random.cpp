#include "verify/random.h"

#include "verify/compare.h"
#include "verify/number.h"

namespace ropewalk::verify {

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::string_view name_of(Values values) noexcept {
  switch (values) {
    case Values::normal: return "normal";
    case Values::wide: return "wide";
    case Values::non_finite: return "non_finite";
  }
  return "?";
}

std::uint64_t Random::element(Dtype dtype, Values values) {
  const Format format = format_of(dtype);
  if (values == Values::wide) {
    if (integer(0, 15) == 0) return encode(dtype, integer(0, 1) == 0 ? Quad(0) : -Quad(0));
    const auto power = integer(format.min_exponent - format.precision, format.max_exponent - 3);
    return encode(dtype, scale_by_power(normal(), static_cast<int>(power)));
  }
  if (values == Values::non_finite) {
    switch (integer(0, 11)) {
      case 0: return encode(dtype, __builtin_nan(""));
      case 1: return encode(dtype, __builtin_inf());
      case 2: return encode(dtype, -__builtin_inf());
      default: break;
    }
  }
  return encode(dtype, normal());
}

void Random::fill(const TensorView& view, Values values) {
  for_each_index(view.size, [&](const std::array<std::int64_t, 4>& at) {
    store_bits(view.dtype, element_at(view, at), element(view.dtype, values));
  });
}

}  // namespace ropewalk::verify
