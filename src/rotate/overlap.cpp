#include "rotate/overlap.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace ropewalk {
namespace {

using Int = __int128;

/// Non-negative coefficient times a variable in [0, bound].
struct Term {
  std::int64_t coefficient = 0;
  std::int64_t bound = 0;
};

/// Σ coefficient · x = target over the bounded variables: the views meet where it has a solution.
class MeetingPoint {
 public:
  MeetingPoint(const ConstTensorView& a, const ConstTensorView& b)
      : target_(static_cast<Int>(reinterpret_cast<std::intptr_t>(b.data)) -
                static_cast<Int>(reinterpret_cast<std::intptr_t>(a.data))) {
    add_view(a, 1);
    add_view(b, -1);
    // A byte inside an element of a, less a byte inside an element of b.
    const auto size_a = static_cast<std::int64_t>(size_of(a.dtype));
    const auto size_b = static_cast<std::int64_t>(size_of(b.dtype));
    add_term(1, size_a);
    add_term(-1, size_b);
    merge_and_sort();
  }

  [[nodiscard]] Overlap solve() {
    if (target_ < 0 || target_ > reach_[0]) return Overlap::none;
    const bool found = search(0, target_);
    if (steps_ > kMaxSteps) return Overlap::undecided;
    return found ? Overlap::shared : Overlap::none;
  }

 private:
  static constexpr int kMaxTerms = 10;
  static constexpr int kMaxSteps = 20000;

  void add_view(const ConstTensorView& view, int sign) {
    const auto size = static_cast<std::int64_t>(size_of(view.dtype));
    for (std::size_t d = 0; d < 4; ++d) add_term(sign * view.stride[d] * size, view.size[d]);
  }

  /// coefficient · x for x in [0, count); a negative one runs from the other end.
  void add_term(std::int64_t coefficient, std::int64_t count) {
    if (count <= 1 || coefficient == 0) return;
    if (coefficient < 0) {
      target_ += static_cast<Int>(-coefficient) * (count - 1);
      coefficient = -coefficient;
    }
    terms_[static_cast<std::size_t>(count_++)] = {coefficient, count - 1};
  }

  void merge_and_sort() {
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const Term& x, const Term& y) { return x.coefficient > y.coefficient; });
    int kept = 0;
    for (int i = 0; i < count_; ++i) {
      const Term& term = terms_[static_cast<std::size_t>(i)];
      Term* last = kept > 0 ? &terms_[static_cast<std::size_t>(kept - 1)] : nullptr;
      if (last != nullptr && last->coefficient == term.coefficient) {
        last->bound += term.bound;
      } else {
        terms_[static_cast<std::size_t>(kept++)] = term;
      }
    }
    count_ = kept;
    reach_[static_cast<std::size_t>(count_)] = 0;
    divisor_[static_cast<std::size_t>(count_)] = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      reach_[k] = reach_[k + 1] + static_cast<Int>(terms_[k].coefficient) * terms_[k].bound;
      divisor_[k] = std::gcd(divisor_[k + 1], terms_[k].coefficient);
    }
  }

  /// Whether the terms from `level` on can make `rest`, which lies in [0, reach_[level]].
  bool search(int level, Int rest) {
    if (++steps_ > kMaxSteps) return false;
    if (rest == 0) return true;
    const auto k = static_cast<std::size_t>(level);
    if (level == count_ || rest % divisor_[k] != 0) return false;
    const Term& term = terms_[k];
    const Int most = std::min<Int>(term.bound, rest / term.coefficient);
    const Int need = rest - reach_[k + 1];
    const Int least = need <= 0 ? 0 : (need + term.coefficient - 1) / term.coefficient;
    for (Int x = most; x >= least; --x) {
      if (search(level + 1, rest - x * term.coefficient)) return true;
      if (steps_ > kMaxSteps) return false;
    }
    return false;
  }

  Int target_;
  std::array<Term, kMaxTerms> terms_{};
  int count_ = 0;
  std::array<Int, kMaxTerms + 1> reach_{};             ///< largest sum of the terms from here
  std::array<std::int64_t, kMaxTerms + 1> divisor_{};  ///< of every sum of the terms from here
  int steps_ = 0;
};

/// The first byte of a view, and the one after its last.
struct Extent {
  Int first;
  Int end;
};
Extent extent_of(const ConstTensorView& view) {
  const auto size = static_cast<Int>(size_of(view.dtype));
  const Int data = static_cast<Int>(reinterpret_cast<std::uintptr_t>(view.data));
  Extent extent{data, data + size};
  for (std::size_t d = 0; d < 4; ++d) {
    const Int reach = static_cast<Int>(view.stride[d]) * (view.size[d] - 1) * size;
    (reach < 0 ? extent.first : extent.end) += reach;
  }
  return extent;
}

}  // namespace

Overlap overlap_of(const ConstTensorView& a, const ConstTensorView& b) {
  // Nearly every call: the two lie apart as a whole.
  const Extent extent_a = extent_of(a);
  const Extent extent_b = extent_of(b);
  if (extent_a.end <= extent_b.first || extent_b.end <= extent_a.first) return Overlap::none;
  return MeetingPoint(a, b).solve();
}

bool elements_are_disjoint(const ConstTensorView& view) {
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    return std::llabs(view.stride[x]) < std::llabs(view.stride[y]);
  });
  Int extent = 1;  // elements spanned by the dimensions so far; each next one must step over it
  for (const std::size_t d : order) {
    if (view.size[d] <= 1) continue;
    const Int stride = std::llabs(view.stride[d]);
    if (stride < extent) return false;
    extent += stride * (view.size[d] - 1);
  }
  return true;
}

}  // namespace ropewalk
