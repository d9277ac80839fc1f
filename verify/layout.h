// The memory layouts that results must not depend on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/host_tensor.h"

namespace ropewalk::verify {

enum class Layout : std::uint8_t {
  bthd,                ///< contiguous, tokens before heads
  bhtd,                ///< contiguous, heads before tokens
  thd,                 ///< one batch row, tokens flat
  packed_qkv,          ///< q and k are slices of one buffer with q, k and v heads
  channel_stride_two,  ///< every second element
  odd_alignment,       ///< first element one past an aligned address, odd row strides
  reversed_tokens,     ///< negative token stride
};
inline constexpr std::array kLayouts{Layout::bthd,
                                     Layout::bhtd,
                                     Layout::thd,
                                     Layout::packed_qkv,
                                     Layout::channel_stride_two,
                                     Layout::odd_alignment,
                                     Layout::reversed_tokens};
[[nodiscard]] std::string_view name_of(Layout) noexcept;

struct QkShape {
  std::int64_t batch = 1;
  std::int64_t tokens = 0;
  std::int64_t query_heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t head_dim = 0;
};

/// q and k of one call in poisoned memory, guard pages at the ends.
struct Placement {
  std::vector<HostBuffer> buffers;
  TensorView q, k;

  [[nodiscard]] std::vector<std::vector<std::byte>> snapshot() const;
  void restore(const std::vector<std::vector<std::byte>>& snapshot) const;
  /// Empty, or what changed outside the elements of q and k since the snapshot.
  [[nodiscard]] std::string changed_outside(
      const std::vector<std::vector<std::byte>>& snapshot) const;
};

/// Layout::thd needs batch 1.
[[nodiscard]] Placement place(Layout layout, Dtype dtype, const QkShape& shape);

}  // namespace ropewalk::verify
