// The ways to say where tokens stand.
#include "ropewalk/rotate.h"

namespace ropewalk {
namespace {

template <class T>
constexpr Positions::Type type_of() {
  if constexpr (std::is_same_v<T, std::int32_t>) return Positions::Type::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Positions::Type::int64;
  if constexpr (std::is_same_v<T, float>) return Positions::Type::float32;
  return Positions::Type::float64;
}

/// (axes, batch, token), contiguous. Sizes that do not fit the array are refused by rotate.
template <class T>
Positions contiguous(std::span<const T> values, std::int64_t axes, std::int64_t batch,
                     std::int64_t tokens) {
  Positions positions;
  positions.kind = Positions::Kind::per_token;
  positions.type = type_of<T>();
  positions.data = values.data();
  positions.axes = axes;
  positions.count = tokens;
  positions.batches = batch;
  positions.values = static_cast<std::int64_t>(values.size());
  positions.axis_stride = batch * tokens;
  positions.batch_stride = batch == 1 ? 0 : tokens;
  return positions;
}

template <class T>
Positions packed(std::span<const T> cu_seqlens) {
  Positions positions;
  positions.kind = Positions::Kind::packed;
  positions.cu_seqlens = cu_seqlens.data();
  positions.cu_type = type_of<T>();
  positions.sequences = static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  return positions;
}

template <class T>
std::int64_t rows_of(std::span<const T> positions, std::int64_t tokens) {
  return tokens > 0 ? static_cast<std::int64_t>(positions.size()) / tokens : 0;
}

}  // namespace

Positions Positions::from_offset(std::int64_t start) noexcept {
  Positions positions;
  positions.start = start;
  return positions;
}

Positions Positions::from_batch_offsets(std::span<const std::int64_t> starts) noexcept {
  Positions positions;
  positions.kind = Kind::per_batch;
  positions.data = starts.data();
  positions.count = static_cast<std::int64_t>(starts.size());
  positions.batch_stride = 1;
  return positions;
}

Positions Positions::from_tokens(std::span<const std::int64_t> positions) noexcept {
  return contiguous(positions, 1, 1, static_cast<std::int64_t>(positions.size()));
}

Positions Positions::from_tokens(std::span<const std::int32_t> positions) noexcept {
  return contiguous(positions, 1, 1, static_cast<std::int64_t>(positions.size()));
}

Positions Positions::from_batch_tokens(std::span<const std::int64_t> positions,
                                       std::int64_t tokens) noexcept {
  return contiguous(positions, 1, rows_of(positions, tokens), tokens);
}

Positions Positions::from_batch_tokens(std::span<const std::int32_t> positions,
                                       std::int64_t tokens) noexcept {
  return contiguous(positions, 1, rows_of(positions, tokens), tokens);
}

Positions Positions::from_axes(std::span<const std::int64_t> positions, std::int64_t axes,
                               std::int64_t batch, std::int64_t tokens) noexcept {
  return contiguous(positions, axes, batch, tokens);
}

Positions Positions::from_cu_seqlens(std::span<const std::int32_t> cu_seqlens) noexcept {
  return packed(cu_seqlens);
}

Positions Positions::from_cu_seqlens(std::span<const std::int64_t> cu_seqlens) noexcept {
  return packed(cu_seqlens);
}

Positions Positions::from_floats(std::span<const float> positions, std::int64_t axes,
                                 std::int64_t batch, std::int64_t tokens) noexcept {
  return contiguous(positions, axes, batch, tokens);
}

Positions Positions::from_floats(std::span<const double> positions, std::int64_t axes,
                                 std::int64_t batch, std::int64_t tokens) noexcept {
  return contiguous(positions, axes, batch, tokens);
}

}  // namespace ropewalk
