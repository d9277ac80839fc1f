// One tensor of a file as the view that a rotation wants.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "ropewalk/rotate.h"

namespace ropewalk::cli {

/// The dtypes that can be rotated; empty for the others.
[[nodiscard]] std::optional<Dtype> rotatable_dtype(const std::string& safetensors_dtype) noexcept;

/// A contiguous tensor's bytes as (batch, token, head, channel). `layout` is "bthd", "bhtd" or
/// "thd"; three dimensions have no batch. Throws Error(invalid_argument) naming the tensor for a
/// number of dimensions that the layout does not have.
[[nodiscard]] TensorView view_of(const SafetensorsEntry& tensor, std::byte* data,
                                 const std::string& layout);

/// Positions as rows of a table that has these positions and no others.
struct TablePositions {
  std::vector<std::int64_t> positions;  ///< one per row of the table
  std::vector<std::int64_t> rows;  ///< of each token, where tokens do not just follow each other
  Positions description;           ///< what rotate takes; points into `rows`
};

/// --positions: where tokens start, or a tensor of positions read from the input file.
class PositionSource {
 public:
  /// `text` is an integer or the name of a tensor of shape (token), (batch, token) or
  /// (axes, batch, token) with dtype I32, I64, F32 or F64. Throws Error naming it otherwise.
  PositionSource(const std::string& text, bool fractional, const SafetensorsReader& file);

  /// Positions of a view; Error(invalid_argument) where the tensor's sizes do not fit it.
  [[nodiscard]] Positions for_view(const TensorView& view, const std::string& name) const;
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

}  // namespace ropewalk::cli
