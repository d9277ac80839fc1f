// The GPU as a backend of the verification matrix: host buffers to the device and back.
#pragma once

#include <string>
#include <vector>

#include "ropewalk/cuda.h"
#include "verify/matrix.h"

namespace ropewalk::verify {

/// Rotates host buffers on a device. The memory from the first to the last element of every view
/// travels, with whatever lies between elements, at addresses that are aligned like the host's;
/// all of it comes back, so canaries show what the device wrote. Synchronous.
/// `policy` as in cuda::Options.
void rotate_on_device(const cuda::DevicePlan& plan, std::span<const Rotation> rotations,
                      const Positions& positions, Direction direction,
                      std::string_view policy = {});
/// With angles from a table. Returns the bad rows.
std::uint64_t rotate_on_device(const RotaryTable& table, std::span<const Rotation> rotations,
                               const Positions& positions, Direction direction, int device);

/// Kernel names: "cuda", or "cuda:POLICY", where a policy that cannot take the case is replaced by
/// the one that rotate chooses; any other name is a CPU kernel's.
[[nodiscard]] Backend cuda_backend(int device = 0);

/// The scalar CPU kernel, whose bits the others must have, then "cuda" and "cuda:narrow".
[[nodiscard]] std::vector<std::string> cuda_kernels();

}  // namespace ropewalk::verify
