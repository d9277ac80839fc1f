// --device: the same subcommand on a GPU.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "measure/case.h"
#include "measure/floor.h"
#include "ropewalk/table.h"
#include "verify/matrix.h"

namespace ropewalk::cli {

/// Adds --device {cpu, cuda}; where `all` is offered too, its meaning.
void add_device_option(CLI::App& command, std::string& device, const std::string& all = {});

/// True for "cuda". Throws Error(unsupported) with the reason where there is no GPU, or where this
/// build has no CUDA.
[[nodiscard]] bool is_cuda(const std::string& device);

/// Empty where a GPU can be used; else why not, in one sentence.
[[nodiscard]] std::string why_no_cuda();

/// For is_cuda(): host tensors rotated on the GPU and copied back. A bad position throws
/// Error(bad_position); where the device's memory is too small, std::bad_alloc.
void rotate_on_cuda(const RotaryPlan& plan, std::span<const Rotation> rotations,
                    const Positions& positions, Direction direction);
void rotate_on_cuda(const RotaryTable& table, std::span<const Rotation> rotations,
                    const Positions& positions, Direction direction);

/// For is_cuda(): the backend of the verification matrix, and its kernels, the scalar one first.
[[nodiscard]] verify::Backend cuda_verify_backend();
[[nodiscard]] std::vector<std::string> cuda_verify_kernels();

/// For is_cuda(): the first GPU in one line, and as JSON.
[[nodiscard]] std::string cuda_device_text();
[[nodiscard]] Json cuda_device_json();

/// For is_cuda(): throws Error(unsupported) for a launch policy that does not exist.
void check_cuda_kernel(const std::string& policy);

/// For is_cuda(): measure::measure and measure::measure_floors on the GPU. Of the options, seconds
/// and the least number of samples count. `warm`: the data stay in the L2 cache.
[[nodiscard]] measure::Measurement measure_on_cuda(const measure::Case& c, std::uint64_t seed,
                                                   const measure::TimingOptions& options,
                                                   bool warm);
[[nodiscard]] std::vector<measure::Floor> measure_floors_on_cuda(
    const measure::TimingOptions& options, bool warm);

}  // namespace ropewalk::cli
