#include "stream/position_source.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/text.h"
#include "rotate/positions.h"

namespace ropewalk::stream {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace

std::optional<Dtype> rotatable_dtype(const std::string& name) noexcept {
  if (name == "F64") return Dtype::float64;
  if (name == "F32") return Dtype::float32;
  if (name == "F16") return Dtype::float16;
  if (name == "BF16") return Dtype::bfloat16;
  return std::nullopt;
}

TensorView view_of(const SafetensorsEntry& tensor, std::byte* data, const std::string& layout) {
  const auto& shape = tensor.shape;
  const std::size_t rank = shape.size();
  const bool fits = layout == "thd" ? rank == 3 : rank == 3 || rank == 4;
  require(fits, "layout: tensor {} has shape {}, which is not {}", in_quotes(tensor.name),
          shape_text(shape), layout);
  const std::int64_t batch = rank == 4 ? shape[0] : 1;
  const std::int64_t outer = shape[rank - 3];
  const std::int64_t inner = shape[rank - 2];
  const std::int64_t channels = shape[rank - 1];
  const Dtype dtype = rotatable_dtype(tensor.dtype).value();
  return layout == "bhtd" ? bhtd(data, dtype, batch, inner, outer, channels)
                          : bthd(data, dtype, batch, outer, inner, channels);
}

Piece piece_at(const TensorView& whole, std::uint64_t begin, std::uint64_t limit) {
  const auto size = static_cast<std::uint64_t>(size_of(whole.dtype));
  const auto& [batch, tokens, heads, channels] = whole.size;
  const bool heads_outside = whole.stride[kHead] > whole.stride[kToken];
  const std::int64_t inner_heads = heads_outside ? 1 : heads;
  const std::uint64_t token_bytes = size * static_cast<std::uint64_t>(inner_heads * channels);
  const std::uint64_t row_bytes = token_bytes * static_cast<std::uint64_t>(tokens);
  const std::uint64_t rows_per_batch = static_cast<std::uint64_t>(heads_outside ? heads : 1);
  const std::uint64_t row = begin / row_bytes;
  const std::uint64_t in_batch = row % rows_per_batch;

  Piece piece;
  piece.begin = begin;
  piece.smallest = token_bytes;
  piece.batch = static_cast<std::int64_t>(row / rows_per_batch);
  piece.token = static_cast<std::int64_t>(begin % row_bytes / token_bytes);
  const auto at_most = [limit](std::uint64_t left, std::uint64_t bytes) {
    return static_cast<std::int64_t>(std::clamp<std::uint64_t>(limit / bytes, 1, left));
  };
  std::int64_t batches = 1, piece_heads = inner_heads, piece_tokens = tokens;
  if (piece.token == 0 && in_batch == 0 && limit >= row_bytes * rows_per_batch) {
    batches = at_most(static_cast<std::uint64_t>(batch - piece.batch), row_bytes * rows_per_batch);
    piece_heads = heads;
  } else if (piece.token == 0 && heads_outside && limit >= row_bytes) {
    piece_heads = at_most(rows_per_batch - in_batch, row_bytes);
  } else {
    piece_tokens = at_most(static_cast<std::uint64_t>(tokens - piece.token), token_bytes);
  }
  piece.view = heads_outside
                   ? bhtd(nullptr, whole.dtype, batches, piece_tokens, piece_heads, channels)
                   : bthd(nullptr, whole.dtype, batches, piece_tokens, piece_heads, channels);
  piece.bytes = size * static_cast<std::uint64_t>(piece.view.elements());
  return piece;
}

PositionSource::PositionSource(const std::string& text, bool fractional,
                               const SafetensorsReader& file)
    : start_(integer_of(text)), name_(text) {
  if (start_) return;
  const SafetensorsEntry* tensor = file.find(text);
  require(tensor != nullptr,
          "positions: expected an integer or the name of a tensor of the input file, got {}",
          in_quotes(text));
  require(fractional || (tensor->dtype != "F32" && tensor->dtype != "F64"),
          "positions: tensor {} has the float dtype {}, which rounds large integers; give "
          "integers, or allow fractional ones (--fractional) where fractions are meant",
          in_quotes(text), tensor->dtype);
  load(*tensor, file);
}

void PositionSource::load(const SafetensorsEntry& tensor, const SafetensorsReader& file) {
  static const std::map<std::string, Positions::Type> kTypes{{"I32", Positions::Type::int32},
                                                             {"I64", Positions::Type::int64},
                                                             {"F32", Positions::Type::float32},
                                                             {"F64", Positions::Type::float64}};
  const auto type = kTypes.find(tensor.dtype);
  require(type != kTypes.end(), "positions: expected dtype I32, I64, F32 or F64, tensor {} has {}",
          in_quotes(name_), tensor.dtype);
  const auto& shape = tensor.shape;
  require(!shape.empty() && shape.size() <= 3,
          "positions: expected shape (token), (batch, token) or (axes, batch, token), tensor {} "
          "has {}",
          in_quotes(name_), shape_text(shape));
  type_ = type->second;
  tokens_ = shape.back();
  if (shape.size() >= 2) batch_ = shape[shape.size() - 2];
  if (shape.size() == 3) axes_ = shape[0];
  data_.resize(tensor.bytes);
  file.read(tensor, 0, data_);
}

Positions PositionSource::for_view(const TensorView& view, const std::string& name) const {
  if (start_) return Positions::from_offset(*start_);
  require(tokens_ == view.size[kToken] && (batch_ == 1 || batch_ == view.size[kBatch]),
          "positions: {} describes {} × {} tokens, tensor {} has {} × {}", in_quotes(name_), batch_,
          tokens_, in_quotes(name), view.size[kBatch], view.size[kToken]);
  Positions positions;
  positions.kind = Positions::Kind::per_token;
  positions.type = type_;
  positions.data = data_.data();
  positions.axes = axes_;
  positions.count = tokens_;
  positions.axis_stride = batch_ * tokens_;
  positions.batch_stride = batch_ == 1 ? 0 : tokens_;
  positions.token_stride = 1;
  return positions;
}

Positions positions_of_piece(Positions whole, const Piece& piece) {
  if (whole.kind == Positions::Kind::offset) {
    whole.start += piece.token;
    return whole;
  }
  const std::int64_t skipped = piece.batch * whole.batch_stride + piece.token * whole.token_stride;
  const bool narrow =
      whole.type == Positions::Type::int32 || whole.type == Positions::Type::float32;
  whole.data = static_cast<const char*>(whole.data) + skipped * (narrow ? 4 : 8);
  whole.count = piece.view.size[kToken];
  return whole;
}

std::int64_t PositionSource::table_rows(const TensorView& view) const {
  if (start_) return *start_ + view.size[kToken];
  return std::ranges::max(integers()) + 1;
}

std::vector<std::int64_t> PositionSource::integers() const {
  std::vector<std::int64_t> values;
  const auto each = [&](auto sample) {
    values.reserve(data_.size() / sizeof sample);
    for (std::size_t at = 0; at < data_.size(); at += sizeof sample) {
      std::memcpy(&sample, data_.data() + at, sizeof sample);
      values.push_back(sample);
    }
  };
  switch (type_) {
    case Positions::Type::int32: each(std::int32_t{}); break;
    case Positions::Type::int64: each(std::int64_t{}); break;
    default:
      fail(ErrorCode::invalid_argument,
           "positions: a parity arithmetic needs integer positions, tensor {} holds floats",
           in_quotes(name_));
  }
  return values;
}

TablePositions PositionSource::for_table(const TensorView& view, const std::string& name) const {
  TablePositions result;
  result.description = for_view(view, name);
  const std::int64_t tokens = view.size[kToken];
  if (start_) {
    check_offset(result.description, {.batch = view.size[kBatch],
                                      .tokens = tokens,
                                      .float64_data = view.dtype == Dtype::float64});
    result.positions.resize(static_cast<std::size_t>(tokens));
    std::iota(result.positions.begin(), result.positions.end(), *start_);
    result.description.start = 0;
    return result;
  }
  result.rows = integers();
  result.positions = result.rows;
  std::ranges::sort(result.positions);
  const auto repeated = std::ranges::unique(result.positions);
  result.positions.erase(repeated.begin(), repeated.end());
  for (std::int64_t& row : result.rows) {
    row = std::ranges::lower_bound(result.positions, row) - result.positions.begin();
  }
  result.description.type = Positions::Type::int64;
  result.description.data = result.rows.data();
  return result;
}

}  // namespace ropewalk::stream
