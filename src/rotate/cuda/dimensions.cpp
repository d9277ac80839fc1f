#include "rotate/cuda/dimensions.h"

#include <cstdlib>
#include <utility>

#include "ropewalk/types.h"

namespace ropewalk::cuda {
namespace {

/// One step of `outer` is `inner.size` steps of `inner`, in memory and for positions.
bool can_merge(const RowDimension& inner, const RowDimension& outer) {
  return !inner.heads && !outer.heads && outer.in == inner.in * inner.size &&
         outer.out == inner.out * inner.size && outer.position == inner.position * inner.size &&
         outer.token == inner.token * inner.size;
}

}  // namespace

PositionStrides position_strides(const Positions& positions) {
  switch (positions.kind) {
    case Positions::Kind::offset:
    case Positions::Kind::packed: return {0, 0, 0, 1};
    case Positions::Kind::per_batch: return {positions.batch_stride, 0, 0, 1};
    case Positions::Kind::per_token: break;
  }
  // The token number has no use here; without it more dimensions merge.
  return {positions.batch_stride, positions.token_stride, 0, 0};
}

std::array<RowDimension, 3> row_dimensions(const Rotation& rotation, const PositionStrides& strides,
                                           std::int64_t heads_per_group, bool head_first) {
  const auto& [in, out] = rotation;
  const auto bytes = static_cast<std::int64_t>(size_of(in.dtype));
  const RowDimension head{(in.size[kHead] + heads_per_group - 1) / heads_per_group,
                          in.stride[kHead] * heads_per_group * bytes,
                          out.stride[kHead] * heads_per_group * bytes,
                          0,
                          0,
                          true};
  const RowDimension token{in.size[kToken], in.stride[kToken] * bytes, out.stride[kToken] * bytes,
                           strides.token,   strides.token_token,       false};
  const RowDimension batch{in.size[kBatch], in.stride[kBatch] * bytes, out.stride[kBatch] * bytes,
                           strides.batch,   strides.batch_token,       false};
  std::array<RowDimension, 3> all{head, token, batch};
  // Dimensions of one element have no order; they go outside, where they cost nothing. A stable
  // insertion sort: std::stable_sort would allocate, for three elements in every call.
  const auto before = [](const RowDimension& a, const RowDimension& b) {
    if ((a.size == 1) != (b.size == 1)) return b.size == 1;
    return std::llabs(a.out) < std::llabs(b.out);
  };
  const std::size_t first = head_first ? 1 : 0;
  for (std::size_t i = first + 1; i < all.size(); ++i) {
    for (std::size_t j = i; j > first && before(all[j], all[j - 1]); --j) {
      std::swap(all[j], all[j - 1]);
    }
  }
  std::array<RowDimension, 3> merged{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool keep_apart = head_first && count <= 1;  // the head stays alone
    if (all[i].size == 1 && !(head_first && i == 0)) continue;
    if (count > 0 && !keep_apart && can_merge(merged[count - 1], all[i])) {
      merged[count - 1].size *= all[i].size;
    } else {
      merged[count++] = all[i];
    }
  }
  return merged;
}

ViewArgs view_of(const std::array<RowDimension, 3>& dimensions) {
  ViewArgs view;
  view.groups = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const RowDimension& d = dimensions[i];
    view.groups *= d.size;
    view.in_stride[i] = d.in;
    view.out_stride[i] = d.out;
    view.position_stride[i] = d.position;
    view.token_stride[i] = d.token;
  }
  view.size[0] = dimensions[0].size;
  view.size[1] = dimensions[1].size;
  if (view.groups < (std::int64_t{1} << 31)) {
    view.size0 = make_divisor(static_cast<std::uint32_t>(view.size[0]));
    view.size1 = make_divisor(static_cast<std::uint32_t>(view.size[1]));
  }
  return view;
}

bool fill_view(const std::array<RowDimension, 3>& dimensions, VectorView& view) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  const auto fits = [](std::int64_t x) { return x >= -kLimit && x < kLimit; };
  std::int64_t groups = 1;
  std::int64_t positions = 0;  // reach of the index into the position array
  std::int64_t tokens = 0;
  bool all_fit = true;
  for (std::size_t i = 0; i < 3; ++i) {
    const RowDimension& d = dimensions[i];
    groups *= d.size;
    if (i < 2) all_fit = all_fit && fits(d.in) && fits(d.out);
    positions += std::llabs(d.position) * (d.size - 1);
    tokens += std::llabs(d.token) * (d.size - 1);
  }
  all_fit = all_fit && positions < kLimit && tokens < kLimit;
  if (!all_fit || groups >= kLimit) return false;
  const auto& [d0, d1, d2] = dimensions;
  const Divisor size0 = make_divisor(static_cast<std::uint32_t>(d0.size));
  const Divisor size1 = make_divisor(static_cast<std::uint32_t>(d1.size));
  view.multiplier0 = size0.multiplier;
  view.multiplier1 = size1.multiplier;
  view.size0 = size0.divisor;
  view.size1 = size1.divisor;
  view.shifts = size0.shift | size1.shift << 8;
  view.groups = static_cast<std::uint32_t>(groups);
  const auto narrow = [](std::int64_t x) { return static_cast<std::int32_t>(x); };
  view.in0 = narrow(d0.in);
  view.in1 = narrow(d1.in);
  view.in2 = d2.in;
  view.out0 = narrow(d0.out);
  view.out1 = narrow(d1.out);
  view.out2 = d2.out;
  view.position0 = narrow(d0.position);
  view.position1 = narrow(d1.position);
  view.position2 = narrow(d2.position);
  view.token0 = narrow(d0.token);
  view.token1 = narrow(d1.token);
  view.token2 = narrow(d2.token);
  return true;
}

std::uint32_t head_index(const std::array<RowDimension, 3>& dimensions) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (dimensions[i].heads) return i;
  }
  return 3;
}

}  // namespace ropewalk::cuda
