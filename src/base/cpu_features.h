// What the processor can do, asked once at run time.
#pragma once

#include <cstddef>

namespace ropewalk {

struct CpuFeatures {
  bool avx2_fma_f16c = false;
  bool avx512 = false;      ///< F, BW, DQ and VL
  bool avx512bf16 = false;  ///< the same and BF16
};

[[nodiscard]] const CpuFeatures& cpu_features() noexcept;

/// Bytes of the largest cache that this processor reports, or 32 MiB where it reports none.
[[nodiscard]] std::size_t last_level_cache_bytes() noexcept;

/// Processors that this process may run on, at least 1.
[[nodiscard]] int available_processors() noexcept;

}  // namespace ropewalk
