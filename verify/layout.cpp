#include "verify/layout.h"

namespace ropewalk::verify {
namespace {

using Shape = std::array<std::int64_t, 4>;

/// A view alone in its buffer, whose elements span `extent` elements from the first to the last.
void add_alone(Placement& placement, TensorView& view, Dtype dtype, const Shape& size,
               const Shape& stride, std::int64_t lead) {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    const std::int64_t reach = stride[d] * (size[d] - 1);
    (reach < 0 ? lowest : highest) += reach;
  }
  placement.buffers.emplace_back(dtype, highest - lowest + 1, lead);
  view = placement.buffers.back().view(-lowest, size, stride);
}

Shape strides_of(Layout layout, const Shape& size) {
  const auto [batch, tokens, heads, channels] = size;
  switch (layout) {
    case Layout::bhtd: return {heads * tokens * channels, channels, tokens * channels, 1};
    case Layout::channel_stride_two:
      return {2 * tokens * heads * channels, 2 * heads * channels, 2 * channels, 2};
    case Layout::odd_alignment: {
      const std::int64_t row = channels + 1 + channels % 2;  // odd: alignment varies by head
      return {tokens * heads * row, heads * row, row, 1};
    }
    case Layout::reversed_tokens:
      return {tokens * heads * channels, -heads * channels, channels, 1};
    default: return {tokens * heads * channels, heads * channels, channels, 1};
  }
}

void place_packed(Placement& placement, Dtype dtype, const QkShape& s) {
  const std::int64_t row = (s.query_heads + 2 * s.key_heads) * s.head_dim;
  const Shape stride{s.tokens * row, row, s.head_dim, 1};
  placement.buffers.emplace_back(dtype, s.batch * s.tokens * row);
  const HostBuffer& buffer = placement.buffers.back();
  placement.q = buffer.view(0, {s.batch, s.tokens, s.query_heads, s.head_dim}, stride);
  placement.k =
      buffer.view(s.query_heads * s.head_dim, {s.batch, s.tokens, s.key_heads, s.head_dim}, stride);
}

}  // namespace

std::string_view name_of(Layout layout) noexcept {
  switch (layout) {
    case Layout::bthd: return "bthd";
    case Layout::bhtd: return "bhtd";
    case Layout::thd: return "thd";
    case Layout::packed_qkv: return "packed_qkv";
    case Layout::channel_stride_two: return "channel_stride_two";
    case Layout::odd_alignment: return "odd_alignment";
    case Layout::reversed_tokens: return "reversed_tokens";
  }
  return "?";
}

std::vector<std::vector<std::byte>> Placement::snapshot() const {
  std::vector<std::vector<std::byte>> result;
  result.reserve(buffers.size());
  for (const HostBuffer& buffer : buffers) result.push_back(buffer.snapshot());
  return result;
}

void Placement::restore(const std::vector<std::vector<std::byte>>& snapshot) const {
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].restore(snapshot[i]);
}

std::string Placement::changed_outside(const std::vector<std::vector<std::byte>>& snapshot) const {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::vector<TensorView> written;
    if (buffers.size() == 1 || i == 0) written.push_back(q);
    if (buffers.size() == 1 || i == 1) written.push_back(k);
    if (std::string what = buffers[i].changed_outside(snapshot[i], written); !what.empty()) {
      return what;
    }
  }
  return {};
}

Placement place(Layout layout, Dtype dtype, const QkShape& s) {
  Placement placement;
  if (layout == Layout::packed_qkv) {
    place_packed(placement, dtype, s);
    return placement;
  }
  const Shape q_size{s.batch, s.tokens, s.query_heads, s.head_dim};
  const Shape k_size{s.batch, s.tokens, s.key_heads, s.head_dim};
  const std::int64_t lead = layout == Layout::odd_alignment ? 1 : 0;
  add_alone(placement, placement.q, dtype, q_size, strides_of(layout, q_size), lead);
  add_alone(placement, placement.k, dtype, k_size, strides_of(layout, k_size), lead);
  return placement;
}

}  // namespace ropewalk::verify
