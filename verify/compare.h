// Compares strided views with the oracle, or with each other bit for bit. Looks at every element.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"
#include "ropewalk/types.h"
#include "verify/quad.h"

namespace ropewalk::verify {

/// What a comparison found. Indices are (batch, token, head, channel).
struct Comparison {
  std::int64_t elements = 0;
  std::int64_t failed = 0;    ///< elements that are wrong
  std::int64_t computed = 0;  ///< elements that were judged by the tolerance
  double worst_ratio = 0;     ///< largest error / bound over them; above 1 is wrong
  std::array<std::int64_t, 4> worst_at{-1, -1, -1, -1};
  double worst_abs_error = 0;
  std::int64_t correctly_rounded = 0;  ///< of the computed ones, those nearest to the truth
  std::string detail;                  ///< the first failure in words; empty where all is right

  [[nodiscard]] bool pass() const noexcept { return failed == 0 && detail.empty(); }
  [[nodiscard]] double correctly_rounded_share() const noexcept {
    return computed == 0 ? 1.0
                         : static_cast<double>(correctly_rounded) / static_cast<double>(computed);
  }
  /// Adds another view's findings (q and k of one call).
  void merge(const Comparison& other);
};

/// The exact image of a whole view, with the bound of every element. About 48 bytes an element.
struct Expectation {
  Dtype dtype = Dtype::float32;
  std::array<std::int64_t, 4> size{};
  struct Element {
    Quad y = 0;
    Quad bound = 0;                 ///< for finite y
    std::uint64_t copied_bits = 0;  ///< where `copied`: the only right answer
    bool copied = false;
    bool nan_or_infinite = false;  ///< either will do (tolerance.h, may_be_nan_or_infinite)
  };
  std::vector<Element> elements;  ///< in index order
};

/// Runs the oracle over `in`.
[[nodiscard]] Expectation expect(const PlanSpec& spec, const Positions& positions,
                                 Direction direction, const ConstTensorView& in);

/// Judges `out`: copied elements by their bits, NaN and infinities by their places (and an
/// infinity's sign) first, every other element by the tolerance. A finite truth whose rounding may
/// overflow within its bound is right either way.
[[nodiscard]] Comparison compare(const Expectation& expected, const ConstTensorView& out);

/// NaN payloads and signs are the hardware's own, so a NaN may stand for any other.
enum class NanRule : std::uint8_t { any_nan, same_bits };

/// Judges two views by bits alone; −0 and +0 differ. Each differing element is a failure.
[[nodiscard]] Comparison compare_bits(const ConstTensorView& a, const ConstTensorView& b,
                                      NanRule rule = NanRule::any_nan);

/// A hash of every element in index order, NaNs made alike: equal exactly where compare_bits
/// passes, up to a collision of 64 bits. For comparing machines and kernels without the data.
[[nodiscard]] std::uint64_t hash_bits(const ConstTensorView& view);

/// Address of an element.
[[nodiscard]] const void* element_at(const ConstTensorView& view,
                                     const std::array<std::int64_t, 4>& index) noexcept;
[[nodiscard]] void* element_at(const TensorView& view,
                               const std::array<std::int64_t, 4>& index) noexcept;

/// Calls body(index) for every index of a shape, channel fastest.
template <class Body>
void for_each_index(const std::array<std::int64_t, 4>& size, Body&& body) {
  std::array<std::int64_t, 4> i{};
  for (i[kBatch] = 0; i[kBatch] < size[kBatch]; ++i[kBatch]) {
    for (i[kToken] = 0; i[kToken] < size[kToken]; ++i[kToken]) {
      for (i[kHead] = 0; i[kHead] < size[kHead]; ++i[kHead]) {
        for (i[kChannel] = 0; i[kChannel] < size[kChannel]; ++i[kChannel]) body(i);
      }
    }
  }
}

}  // namespace ropewalk::verify
