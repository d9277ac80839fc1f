#include "cli/device.h"

#include "base/check.h"

#if defined(ROPEWALK_HAVE_CUDA)
#include "verify/cuda/backend.h"
#endif

namespace ropewalk::cli {

void add_device_option(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "Where to run: cpu, or cuda for the first GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

bool is_cuda(const std::string& device) {
  if (device != "cuda") return false;
  if (const std::string why = why_no_cuda(); !why.empty()) {
    fail(ErrorCode::unsupported, "--device: {}", why);
  }
  return true;
}

#if defined(ROPEWALK_HAVE_CUDA)

namespace {

void require_good_positions(std::uint64_t bad_rows) {
  if (bad_rows > 0) {
    fail(ErrorCode::bad_position, "positions: {} rows stand outside the valid range", bad_rows);
  }
}

}  // namespace

std::string why_no_cuda() { return cuda::why_no_device(); }

void rotate_on_cuda(const RotaryPlan& plan, std::span<const Rotation> rotations,
                    const Positions& positions, Direction direction) {
  const cuda::DevicePlan device_plan(plan);
  verify::rotate_on_device(device_plan, rotations, positions, direction);
  require_good_positions(device_plan.bad_rows());
}

void rotate_on_cuda(const RotaryTable& table, std::span<const Rotation> rotations,
                    const Positions& positions, Direction direction) {
  require_good_positions(verify::rotate_on_device(table, rotations, positions, direction, -1));
}

verify::Backend cuda_verify_backend() { return verify::cuda_backend(); }
std::vector<std::string> cuda_verify_kernels() { return verify::cuda_kernels(); }

#else

namespace {

[[noreturn]] void no_cuda() { fail(ErrorCode::unsupported, "--device: {}", why_no_cuda()); }

}  // namespace

std::string why_no_cuda() { return "this build has no CUDA kernels (nvcc was not found)"; }

void rotate_on_cuda(const RotaryPlan&, std::span<const Rotation>, const Positions&, Direction) {
  no_cuda();
}
void rotate_on_cuda(const RotaryTable&, std::span<const Rotation>, const Positions&, Direction) {
  no_cuda();
}
verify::Backend cuda_verify_backend() { no_cuda(); }
std::vector<std::string> cuda_verify_kernels() { no_cuda(); }

#endif

}  // namespace ropewalk::cli
