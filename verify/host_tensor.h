// Host tensors for tests, verification and measurement: owned, poisoned and watched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/types.h"
#include "verify/guard_page.h"

namespace ropewalk::verify {

/// Bytes that no fill writes by chance: a NaN in every dtype, so that a read of it shows too.
inline constexpr std::byte kPoison{0xff};

/// Owned memory of one or several views, between guard pages and poisoned: the bytes before,
/// between and after the views' elements are canaries.
class HostBuffer {
 public:
  /// Room for `elements` of the dtype, at a byte offset of `lead` elements from the first byte and
  /// with `tail` canary elements behind; tail 0 puts the last element against the guard page.
  HostBuffer(Dtype dtype, std::int64_t elements, std::int64_t lead = 0, std::int64_t tail = 0);

  [[nodiscard]] Dtype dtype() const noexcept { return dtype_; }
  /// Address of element 0 (after the lead).
  [[nodiscard]] void* data() const noexcept;
  [[nodiscard]] std::span<std::byte> bytes() const noexcept;

  /// A view of this buffer whose first element is `offset` elements after data().
  [[nodiscard]] TensorView view(std::int64_t offset, std::array<std::int64_t, 4> size,
                                std::array<std::int64_t, 4> stride) const noexcept;

  void poison() const noexcept;
  [[nodiscard]] std::vector<std::byte> snapshot() const;
  void restore(std::span<const std::byte> snapshot) const;

  /// Empty where every byte outside the elements of `written` still is as in the snapshot; else a
  /// sentence with the first byte that changed.
  [[nodiscard]] std::string changed_outside(std::span<const std::byte> snapshot,
                                            std::span<const TensorView> written) const;

 private:
  Dtype dtype_;
  std::int64_t lead_;
  std::unique_ptr<GuardedBuffer> memory_;
};

/// A contiguous tensor of its own: batch, token, head, channel in memory order.
class HostTensor {
 public:
  HostTensor(Dtype dtype, std::array<std::int64_t, 4> size);
  [[nodiscard]] const TensorView& view() const noexcept { return view_; }
  operator TensorView() const noexcept { return view_; }         // NOLINT(*-explicit-*)
  operator ConstTensorView() const noexcept { return {view_}; }  // NOLINT(*-explicit-*)
  [[nodiscard]] const HostBuffer& buffer() const noexcept { return buffer_; }
  /// Value of an element as double (exact for every dtype).
  [[nodiscard]] double at(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t c) const;
  /// Rounds the values, in index order, into the elements.
  void assign(std::span<const double> values) const;

 private:
  HostBuffer buffer_;
  TensorView view_;
};

/// Copies elements (bits) between views of one shape and dtype.
void copy_elements(const ConstTensorView& from, const TensorView& to);

}  // namespace ropewalk::verify
