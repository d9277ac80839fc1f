
// Element types and strided views. Knows nothing about rotary embeddings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ropewalk/export.h"

namespace ropewalk {

enum class Dtype : std::uint8_t { float64, float32, float16, bfloat16 };

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::float64: return 8;
    case Dtype::float32: return 4;
    case Dtype::float16:
    case Dtype::bfloat16: return 2;
  }
  return 0;
}

/// "float64", "float32", "float16" or "bfloat16".
[[nodiscard]] ROPEWALK_API std::string_view name_of(Dtype dtype) noexcept;

/// The inverse of name_of; also takes "fp64", "f32", "half", "bf16" and the like.
/// Throws Error(invalid_argument).
[[nodiscard]] ROPEWALK_API Dtype dtype_from_name(std::string_view name);

/// The four dimensions of every view, in this order. The layout (BTHD, BHTD, THD …) is expressed
/// by strides alone.
enum Dimension : int { kBatch = 0, kToken = 1, kHead = 2, kChannel = 3 };

/// A writable strided view of q or k. `data` points at element (0, 0, 0, 0); strides are in
/// elements, may be negative, and may be zero where the view is only read. Does not own.
struct TensorView {
  void* data = nullptr;
  Dtype dtype = Dtype::float32;
  std::array<std::int64_t, 4> size{};    ///< batch, token, head, channel (= head_dim)
  std::array<std::int64_t, 4> stride{};  ///< in elements

  [[nodiscard]] std::int64_t elements() const noexcept {
    return size[0] * size[1] * size[2] * size[3];
  }
  [[nodiscard]] bool operator==(const TensorView&) const = default;
};

/// A read-only view.
struct ConstTensorView {
  const void* data = nullptr;
  Dtype dtype = Dtype::float32;
  std::array<std::int64_t, 4> size{};
  std::array<std::int64_t, 4> stride{};

  ConstTensorView() = default;
  ConstTensorView(const void* data_, Dtype dtype_, std::array<std::int64_t, 4> size_,
                  std::array<std::int64_t, 4> stride_)
      : data(data_), dtype(dtype_), size(size_), stride(stride_) {}
  ConstTensorView(const TensorView& view)  // NOLINT(google-explicit-constructor): widening
      : data(view.data), dtype(view.dtype), size(view.size), stride(view.stride) {}

  [[nodiscard]] std::int64_t elements() const noexcept {
    return size[0] * size[1] * size[2] * size[3];
  }
};

/// Contiguous views. `batch × token × head × channel` in memory order for `bthd`; heads before
/// tokens for `bhtd`.
[[nodiscard]] ROPEWALK_API TensorView bthd(void* data, Dtype dtype, std::int64_t batch,
                                           std::int64_t tokens, std::int64_t heads,
                                           std::int64_t head_dim) noexcept;
[[nodiscard]] ROPEWALK_API TensorView bhtd(void* data, Dtype dtype, std::int64_t batch,
                                           std::int64_t tokens, std::int64_t heads,
                                           std::int64_t head_dim) noexcept;

}  // namespace ropewalk
