#include "verify/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "verify/number.h"
#include "verify/oracle.h"

namespace ropewalk::verify {
namespace {

using Index = std::array<std::int64_t, 4>;

std::int64_t offset_of(const Index& stride, const Index& index) noexcept {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < 4; ++d) offset += stride[d] * index[d];
  return offset;
}

void fail(Comparison& result, const Index& at, const std::string& reason) {
  ++result.failed;
  if (result.detail.empty()) {
    result.detail = fmt::format("element (batch {}, token {}, head {}, channel {}): {}", at[0],
                                at[1], at[2], at[3], reason);
  }
}

double as_double(Quad value) noexcept { return static_cast<double>(value); }

/// Whether a non-finite output is right where the truth is finite, or the reverse.
bool may_overflow(Dtype dtype, const Expectation::Element& e) noexcept {
  return magnitude(e.y) + e.bound >= overflow_threshold(dtype);
}

bool must_overflow(Dtype dtype, const Expectation::Element& e) noexcept {
  return magnitude(e.y) - e.bound >= overflow_threshold(dtype);
}

/// Settles elements where one side is not finite; true where it did.
bool judge_non_finite(Comparison& result, Dtype dtype, const Expectation::Element& e, Quad got,
                      const Index& at) {
  if (is_finite(e.y) && is_finite(got) && !must_overflow(dtype, e)) return false;
  bool right = false;
  if (e.nan_or_infinite) {
    right = !is_finite(got);
  } else if (is_nan(e.y) || is_nan(got)) {
    right = is_nan(e.y) && is_nan(got);
  } else if (!is_finite(e.y)) {
    right = got == e.y;
  } else {
    right = is_infinite(got) && may_overflow(dtype, e) && (got > 0) == (e.y > 0);
  }
  if (!right) {
    fail(result, at, fmt::format("expected {}, got {}", as_double(e.y), as_double(got)));
  }
  return true;
}

void judge_finite(Comparison& result, Dtype dtype, const Expectation::Element& e, Quad got,
                  const Index& at) {
  const Quad error = magnitude(got - e.y);
  const double ratio = as_double(error / e.bound);
  ++result.computed;
  result.worst_abs_error = std::max(result.worst_abs_error, as_double(error));
  if (result.worst_at[0] < 0 || ratio > result.worst_ratio) {
    result.worst_ratio = ratio;
    result.worst_at = at;
  }
  if (got == round_to(dtype, e.y)) ++result.correctly_rounded;
  if (!(error <= e.bound)) {
    fail(result, at,
         fmt::format("expected {:.17g}, got {:.17g}: error {:.3g} is {:.3g} × the bound",
                     as_double(e.y), as_double(got), as_double(error), ratio));
  }
}

bool same_shape(Comparison& result, Dtype dtype, const Index& size, const ConstTensorView& view) {
  if (view.dtype == dtype && view.size == size) return true;
  result.failed = 1;
  result.detail =
      fmt::format("expected {} of shape ({}), got {} of shape ({})", name_of(dtype),
                  fmt::join(size, ", "), name_of(view.dtype), fmt::join(view.size, ", "));
  return false;
}

}  // namespace

void Comparison::merge(const Comparison& other) {
  elements += other.elements;
  failed += other.failed;
  computed += other.computed;
  correctly_rounded += other.correctly_rounded;
  worst_abs_error = std::max(worst_abs_error, other.worst_abs_error);
  if (other.worst_ratio > worst_ratio || worst_at[0] < 0) {
    worst_ratio = other.worst_ratio;
    worst_at = other.worst_at;
  }
  if (detail.empty()) detail = other.detail;
}

const void* element_at(const ConstTensorView& view, const Index& index) noexcept {
  return static_cast<const std::byte*>(view.data) +
         offset_of(view.stride, index) * static_cast<std::int64_t>(size_of(view.dtype));
}

void* element_at(const TensorView& view, const Index& index) noexcept {
  return static_cast<std::byte*>(view.data) +
         offset_of(view.stride, index) * static_cast<std::int64_t>(size_of(view.dtype));
}

Expectation expect(const PlanSpec& spec, const Positions& positions, Direction direction,
                   const ConstTensorView& in) {
  Expectation result{in.dtype, in.size, {}};
  result.elements.reserve(static_cast<std::size_t>(in.elements()));
  Oracle oracle(spec, positions, direction);
  const auto channels = static_cast<std::size_t>(in.size[kChannel]);
  std::vector<Quad> row(channels);
  std::vector<Expected> image(channels);
  for (std::int64_t b = 0; b < in.size[kBatch]; ++b) {
    for (std::int64_t t = 0; t < in.size[kToken]; ++t) {
      oracle.seek(b, t);
      for (std::int64_t h = 0; h < in.size[kHead]; ++h) {
        for (std::size_t c = 0; c < channels; ++c) {
          row[c] = load_value(in.dtype, element_at(in, {b, t, h, static_cast<std::int64_t>(c)}));
        }
        oracle.row(row, image);
        for (const Expected& e : image) {
          Expectation::Element element{.y = e.exact.y};
          if (e.copied_from >= 0) {
            element.copied = true;
            element.copied_bits = load_bits(in.dtype, element_at(in, {b, t, h, e.copied_from}));
          } else {
            element.bound = exact_bound(in.dtype, spec.amplitude, e.exact);
            element.nan_or_infinite = may_be_nan_or_infinite(in.dtype, e.exact);
          }
          result.elements.push_back(element);
        }
      }
    }
  }
  return result;
}

Comparison compare(const Expectation& expected, const ConstTensorView& out) {
  Comparison result;
  if (!same_shape(result, expected.dtype, expected.size, out)) return result;
  std::size_t next = 0;
  for_each_index(out.size, [&](const Index& at) {
    const Expectation::Element& e = expected.elements[next++];
    ++result.elements;
    const std::uint64_t bits = load_bits(out.dtype, element_at(out, at));
    if (e.copied) {
      if (bits != e.copied_bits) {
        fail(result, at,
             fmt::format("expected a copy of bits {:#x}, got {:#x}", e.copied_bits, bits));
      }
      return;
    }
    const Quad got = decode(out.dtype, bits);
    if (!judge_non_finite(result, out.dtype, e, got, at)) {
      judge_finite(result, out.dtype, e, got, at);
    }
  });
  return result;
}

Comparison compare_bits(const ConstTensorView& a, const ConstTensorView& b, NanRule rule) {
  Comparison result;
  if (!same_shape(result, a.dtype, a.size, b)) return result;
  for_each_index(a.size, [&](const Index& at) {
    ++result.elements;
    std::uint64_t left = load_bits(a.dtype, element_at(a, at));
    std::uint64_t right = load_bits(b.dtype, element_at(b, at));
    if (rule == NanRule::any_nan) {
      left = canonical_bits(a.dtype, left);
      right = canonical_bits(b.dtype, right);
    }
    if (left == right) return;
    fail(result, at,
         fmt::format("bits {:#x} ({}) against {:#x} ({})", left, as_double(decode(a.dtype, left)),
                     right, as_double(decode(b.dtype, right))));
  });
  return result;
}

std::uint64_t hash_bits(const ConstTensorView& view) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const std::size_t bytes = size_of(view.dtype);
  for_each_index(view.size, [&](const Index& at) {
    const std::uint64_t bits =
        canonical_bits(view.dtype, load_bits(view.dtype, element_at(view, at)));
    for (std::size_t i = 0; i < bytes; ++i) {
      hash = (hash ^ ((bits >> (8 * i)) & 0xff)) * 0x100000001b3u;
    }
  });
  return hash;
}

}  // namespace ropewalk::verify
