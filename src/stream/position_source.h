// Tensors of a file as views, and the positions of their tokens.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "ropewalk/rotate.h"

namespace ropewalk::stream {

/// The dtypes that can be rotated; empty for the others.
[[nodiscard]] std::optional<Dtype> rotatable_dtype(const std::string& safetensors_dtype) noexcept;

/// A contiguous tensor's bytes as (batch, token, head, channel). `layout` is "bthd", "bhtd" or
/// "thd"; three dimensions have no batch. Throws Error(invalid_argument) naming the tensor for a
/// number of dimensions that the layout does not have.
[[nodiscard]] TensorView view_of(const SafetensorsEntry& tensor, std::byte* data,
                                 const std::string& layout);

/// A piece of a contiguous tensor: whole batch rows, or whole heads of one row, or tokens of one
/// row (and head, where heads lie outside of tokens).
struct Piece {
  std::uint64_t begin = 0;  ///< bytes from the beginning of the tensor
  std::uint64_t bytes = 0;
  std::uint64_t smallest = 0;  ///< bytes of a token, which no piece is shorter than
  std::int64_t batch = 0;      ///< the first batch row
  std::int64_t token = 0;      ///< the first token
  TensorView view;             ///< of the piece alone; data is null
};

/// The piece that begins at byte `begin`, which a piece ends at: as long as `limit` allows, at
/// least one token. `whole` is the view of the tensor.
[[nodiscard]] Piece piece_at(const TensorView& whole, std::uint64_t begin, std::uint64_t limit);

/// The positions of a piece, from those of the whole view: of kind offset, or per_token.
[[nodiscard]] Positions positions_of_piece(Positions whole, const Piece& piece);

/// Positions as rows of a table that has these positions and no others.
struct TablePositions {
  std::vector<std::int64_t> positions;  ///< one per row of the table
  std::vector<std::int64_t> rows;  ///< of each token, where tokens do not just follow each other
  Positions description;           ///< what rotate takes; points into `rows`
};

/// The positions of a stream: where tokens start, or a tensor of positions read from the input
/// file.
class PositionSource {
 public:
  /// `text` is an integer or the name of a tensor of shape (token), (batch, token) or
  /// (axes, batch, token) with dtype I32, I64, F32 or F64. Throws Error naming it otherwise.
  PositionSource(const std::string& text, bool fractional, const SafetensorsReader& file);

  /// Positions of a view; Error(invalid_argument) where the tensor's sizes do not fit it.
  [[nodiscard]] Positions for_view(const TensorView& view, const std::string& name) const;
  /// Rows of a table from position 0 on that the view's tokens need; throws as for_table does.
  [[nodiscard]] std::int64_t table_rows(const TensorView& view) const;
  /// The same for a table, each position once: how large a position is costs nothing. The view has
  /// elements. Error(bad_position) for a position outside the limits of the view's dtype,
  /// Error(invalid_argument) for float positions or sizes that do not fit.
  [[nodiscard]] TablePositions for_table(const TensorView& view, const std::string& name) const;

 private:
  void load(const SafetensorsEntry& tensor, const SafetensorsReader& file);
  [[nodiscard]] std::vector<std::int64_t> integers() const;

  std::optional<std::int64_t> start_;
  std::string name_;
  Positions::Type type_ = Positions::Type::int64;
  std::int64_t axes_ = 1, batch_ = 1, tokens_ = 0;
  std::vector<std::byte> data_;
};

}  // namespace ropewalk::stream
