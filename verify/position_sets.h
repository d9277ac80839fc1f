// The positions that every verification visits, in every way a caller can give them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ropewalk/rotate.h"
#include "ropewalk/types.h"
#include "verify/random.h"

namespace ropewalk::verify {

/// Positions where other implementations go wrong; a test below 1000 alone proves nothing about
/// long context. The last two of float64 are near its limit of 2^53.
[[nodiscard]] std::vector<std::int64_t> landmark_positions(Dtype dtype);

enum class PositionKind : std::uint8_t {
  tokens_int64,    ///< one per token: all landmarks
  tokens_int32,    ///< those that fit
  batch_tokens,    ///< (batch, token), rows differ
  offset,          ///< a run that starts at a landmark
  batch_offsets,   ///< one start per row
  packed,          ///< cu_seqlens, with an empty sequence
  packed_starts,   ///< cu_seqlens with a start per sequence
  three_axes,      ///< (axes, batch, token)
  float32_axes,    ///< fractional, two axes
  float64_tokens,  ///< fractional, one axis
  padded,          ///< some rows at the padding position
};
inline constexpr std::array kPositionKinds{
    PositionKind::tokens_int64,   PositionKind::tokens_int32,  PositionKind::batch_tokens,
    PositionKind::offset,         PositionKind::batch_offsets, PositionKind::packed,
    PositionKind::packed_starts,  PositionKind::three_axes,    PositionKind::float32_axes,
    PositionKind::float64_tokens, PositionKind::padded};
[[nodiscard]] std::string_view name_of(PositionKind) noexcept;

/// Positions with the memory they point to. Movable; not copyable, since the pointers would stay
/// with the original.
struct PositionSet {
  PositionSet() = default;
  PositionSet(PositionSet&&) = default;
  PositionSet& operator=(PositionSet&&) = default;

  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  int axes = 1;
  Positions positions;
  std::vector<std::int64_t> int64s;
  std::vector<std::int32_t> int32s;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int32_t> cu_seqlens;
};

/// At most `max_batch` rows.
[[nodiscard]] PositionSet make_positions(PositionKind kind, Dtype dtype, Random& random,
                                         std::int64_t max_batch = 3);

}  // namespace ropewalk::verify
