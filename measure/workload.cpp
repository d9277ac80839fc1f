#include "measure/workload.h"

#include <algorithm>
#include <cstring>

#include "measure/fill.h"

namespace ropewalk::measure {
namespace {

constexpr int kPoison = 0xff;  // a NaN in every dtype

std::array<std::int64_t, 4> strides_of(Layout layout, std::int64_t tokens, std::int64_t heads,
                                       std::int64_t row) {
  const std::int64_t batch = tokens * heads * row;
  return layout == Layout::bthd ? std::array<std::int64_t, 4>{batch, heads * row, row, 1}
                                : std::array<std::int64_t, 4>{batch, row, tokens * row, 1};
}

/// Positions of several axes as a vision model has them: a quarter text, where all components are
/// equal, then a picture of rows and columns, then text again.
std::vector<std::int64_t> axis_positions(int axes, std::int64_t tokens, std::int64_t start) {
  std::vector<std::int64_t> data(static_cast<std::size_t>(axes * tokens));
  const std::int64_t picture = tokens / 4;
  const std::int64_t text = tokens - tokens / 4;
  std::int64_t columns = 1;
  while (columns * columns < text - picture) ++columns;
  for (std::int64_t a = 0; a < axes; ++a) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::int64_t p = t;
      if (t >= picture && t < text) {
        const std::int64_t cell = t - picture;
        p = picture + (a == 1 ? cell / columns : a == 2 ? cell % columns : 0);
      }
      data[static_cast<std::size_t>(a * tokens + t)] = start + p;
    }
  }
  return data;
}

}  // namespace

std::string_view name_of(Layout layout) noexcept {
  return layout == Layout::bthd ? "bthd" : "bhtd";
}

Shape shape_of(const Case& c) noexcept {
  return {c.batch, c.tokens, c.query_heads, c.key_heads, c.plan.head_dim(), c.plan.rotary_dim(),
          c.dtype};
}

Workload::Workload(const Case& c, std::uint64_t seed) : case_(c) {
  tensors_.reserve(2);
  add(c.query_heads, c.query_lead, seed);
  if (c.key_heads > 0) add(c.key_heads, c.key_lead, seed + 1);
  if (c.plan.axes() == 1) {
    positions_ = Positions::from_offset(c.start);
  } else {
    position_data_ = axis_positions(c.plan.axes(), c.tokens, c.start);
    positions_ = Positions::from_axes(position_data_, c.plan.axes(), 1, c.tokens);
    positions_.batch_stride = 0;
  }
  reset();
}

void Workload::add(std::int64_t heads, std::int64_t lead, std::uint64_t seed) {
  const std::int64_t head_dim = case_.plan.head_dim();
  const std::int64_t row = lead + head_dim;
  const auto size = size_of(case_.dtype);
  const std::int64_t rows = case_.batch * case_.tokens * heads;
  const std::array<std::int64_t, 4> shape{case_.batch, case_.tokens, heads, head_dim};
  const auto strided = strides_of(case_.layout, case_.tokens, heads, row);
  const auto dense = strides_of(case_.layout, case_.tokens, heads, head_dim);
  const auto lead_bytes = static_cast<std::size_t>(lead) * size;

  const std::int64_t out_row = case_.in_place ? row : head_dim;
  tensors_.push_back({Buffer(static_cast<std::size_t>(rows * row) * size),
                      Buffer(static_cast<std::size_t>(rows * out_row) * size)});
  const Tensor& tensor = tensors_.back();
  fill_normal(tensor.in, case_.dtype, seed);
  originals_.emplace_back(tensor.in.data() + lead_bytes, case_.dtype, shape, strided);
  if (case_.in_place) {
    rotations_.push_back(
        Rotation::in_place({tensor.out.data() + lead_bytes, case_.dtype, shape, strided}));
  } else {
    rotations_.push_back({originals_.back(), {tensor.out.data(), case_.dtype, shape, dense}});
  }
}

std::vector<Workload::Memory> Workload::memory() const {
  std::vector<Memory> all;
  for (const Tensor& tensor : tensors_) {
    all.push_back({case_.in_place ? tensor.out.bytes() : tensor.in.bytes(), tensor.out.bytes()});
  }
  return all;
}

Positions Workload::position_of(std::int64_t token) const noexcept {
  if (position_data_.empty()) return Positions::from_offset(case_.start + token);
  Positions one = positions_;
  one.data = position_data_.data() + token;
  one.count = 1;
  one.values = -1;
  return one;
}

void Workload::rotate(std::string_view kernel) const {
  RotateOptions options;
  options.direction = case_.direction;
  options.threads = case_.threads;
  options.kernel = kernel.empty() ? std::string_view(case_.kernel) : kernel;
  ropewalk::rotate(case_.plan, rotations_, positions_, options);
}

void Workload::reset() const {
  for (const Tensor& tensor : tensors_) {
    if (case_.in_place) {
      std::memcpy(tensor.out.data(), tensor.in.data(), tensor.out.size());
    } else {
      std::memset(tensor.out.data(), kPoison, tensor.out.size());
    }
  }
}

}  // namespace ropewalk::measure
