// The kernels compiled in, and the choice among them.
#pragma once

#include <span>
#include <string_view>

#include "rotate/cpu/kernel.h"

namespace ropewalk::cpu {

extern const Kernel kScalarKernel;
#if defined(ROPEWALK_HAVE_X86_KERNELS)
extern const Kernel kAvx2Kernel;
extern const Kernel kAvx512Kernel;
extern const Kernel kAvx512Bf16Kernel;
#endif

/// Parity P4 on data of any dtype: every instruction set uses this one.
[[nodiscard]] TileFunction tile_computing_in_double(const TileKey& key);

/// All kernels compiled in, best last.
[[nodiscard]] std::span<const Kernel* const> kernels() noexcept;

/// The kernel of that name; empty: ROPEWALK_KERNEL where set, else the best supported one.
/// Throws Error(unsupported) for a name that is unknown or not supported here.
[[nodiscard]] const Kernel& kernel_named(std::string_view name);

}  // namespace ropewalk::cpu
