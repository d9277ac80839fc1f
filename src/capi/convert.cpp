#include "capi/convert.h"

namespace ropewalk::capi {
namespace {

/// The C++ enumerator at `value` of the C enum; Error(invalid_argument) naming the field.
template <class T, std::size_t N>
T choose(const char* name, std::int32_t value, const std::array<T, N>& choices, int first = 0) {
  const std::int64_t index = std::int64_t{value} - first;
  require(index >= 0 && index < static_cast<std::int64_t>(N), "{} must be one of {} to {}, got {}",
          name, first, first + static_cast<int>(N) - 1, value);
  return choices[static_cast<std::size_t>(index)];
}

Positions::Type integer_or_float(const char* name, std::int32_t value) {
  using enum Positions::Type;
  return choose(name, value, std::array{int64, int32, float32, float64});
}

TensorView view_from(const ropewalk_view& view) {
  TensorView result;
  result.data = view.data;
  result.dtype = dtype_from(view.dtype);
  std::ranges::copy(view.size, result.size.begin());
  std::ranges::copy(view.stride, result.stride.begin());
  return result;
}

}  // namespace

Dtype dtype_from(std::int32_t value) {
  using enum Dtype;
  return choose("dtype", value, std::array{float64, float32, float16, bfloat16}, ROPEWALK_FLOAT64);
}

Pairing pairing_from(std::int32_t value) {
  using enum Pairing;
  return choose("pairing", value, std::array{half, interleaved, interleaved_to_half});
}

PlanOptions plan_options_from(const ropewalk_plan_options* options) {
  const ropewalk_plan_options given = known_part(options, "options");
  PlanOptions result;
  if (given.layer_type != nullptr) result.layer_type = given.layer_type;
  require(given.length >= 0, "options.length must not be negative, got {}", given.length);
  if (given.length > 0) result.length = given.length;
  using enum Arithmetic;
  result.arithmetic =
      choose("options.arithmetic", given.arithmetic,
             std::array{exact, parity_p0, parity_p1, parity_p2, parity_p3, parity_p4});
  result.frequency_precision =
      choose("options.frequency_precision", given.frequency_precision,
             std::array{result.frequency_precision, FrequencyPrecision::formula,
                        FrequencyPrecision::model});
  return result;
}

Positions positions_from(const ropewalk_positions* positions) {
  const ropewalk_positions given = known_part(&deref(positions, "positions"), "positions");
  using enum Positions::Kind;
  Positions result;
  result.kind =
      choose("positions.kind", given.kind, std::array{offset, per_batch, per_token, packed});
  result.type = integer_or_float("positions.type", given.type);
  result.start = given.start;
  result.data = given.data;
  result.axes = given.axes == 0 ? 1 : given.axes;
  result.count = given.count;
  result.batches = given.batches;
  result.axis_stride = given.axis_stride;
  result.batch_stride = given.batch_stride;
  result.token_stride = given.token_stride;
  result.cu_seqlens = given.cu_seqlens;
  result.cu_type = integer_or_float("positions.cu_type", given.cu_type);
  result.sequences = given.sequences;
  if (given.has_padding != 0) result.padding = given.padding;
  return result;
}

RotateOptions rotate_options_from(const ropewalk_rotate_options* options) {
  const ropewalk_rotate_options given = known_part(options, "options");
  RotateOptions result;
  result.direction = choose("options.direction", given.direction,
                            std::array{Direction::forward, Direction::inverse});
  require(given.threads >= 0, "options.threads must not be negative, got {}", given.threads);
  result.threads = given.threads;
  if (given.kernel != nullptr) result.kernel = given.kernel;
  return result;
}

Rotations::Rotations(const ropewalk_rotation* rotations, std::size_t count) : count_(count) {
  require(rotations != nullptr || count == 0, "rotations must not be NULL");
  data_ = few_.data();
  if (count > few_.size()) {
    many_.resize(count);
    data_ = many_.data();
  }
  for (std::size_t i = 0; i < count; ++i) {
    data_[i].in = view_from(rotations[i].in);
    data_[i].out = view_from(rotations[i].out);
  }
}

}  // namespace ropewalk::capi
