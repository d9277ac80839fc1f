#include "cli/device.h"

#include <algorithm>

#include "base/check.h"

#if defined(ROPEWALK_HAVE_CUDA)
#include "measure/cuda/device_case.h"
#include "verify/cuda/backend.h"
#endif

namespace ropewalk::cli {

void add_device_option(CLI::App& command, std::string& device, const std::string& all) {
  std::vector<std::string> known{"cpu", "cuda"};
  std::string meaning = "Where to run: cpu, or cuda for the first GPU";
  if (!all.empty()) {
    known.emplace_back("all");
    meaning += "; all: " + all;
  }
  command.add_option("--device", device, meaning)
      ->check(CLI::IsMember(known))
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

std::string cuda_device_text() {
  const cuda::DeviceInfo gpu = cuda::devices().at(0);
  return fmt::format("{}, compute capability {}.{}, {} multiprocessors, L2 {} MiB", gpu.name,
                     gpu.compute_capability / 10, gpu.compute_capability % 10, gpu.multiprocessors,
                     gpu.l2_bytes >> 20);
}

Json cuda_device_json() {
  const cuda::DeviceInfo gpu = cuda::devices().at(0);
  return {{"name", gpu.name},
          {"compute_capability", gpu.compute_capability},
          {"multiprocessors", gpu.multiprocessors},
          {"l2_bytes", gpu.l2_bytes},
          {"memory_bytes", gpu.memory_bytes}};
}

void check_cuda_kernel(const std::string& policy) {
  const std::vector<std::string> known = cuda::policy_names();
  if (std::find(known.begin(), known.end(), policy) != known.end()) return;
  fail(ErrorCode::unsupported,
       "--kernel: expected a launch policy such as \"narrow\" or \"{}\" on a GPU, got \"{}\"",
       known.back(), policy);
}

namespace {

measure::DeviceTimingOptions device_options(const measure::TimingOptions& options, bool warm) {
  const bool counted = options.min_samples == options.max_samples;
  return {.seconds = options.seconds, .samples = counted ? options.min_samples : 0, .warm = warm};
}

}  // namespace

measure::Measurement measure_on_cuda(const measure::Case& c, std::uint64_t seed,
                                     const measure::TimingOptions& options, bool warm) {
  return measure::measure_on_device(c, seed, device_options(options, warm));
}

std::vector<measure::Floor> measure_floors_on_cuda(const measure::TimingOptions& options,
                                                   bool warm) {
  return measure::measure_device_floors(
      warm ? measure::device_resident_bytes() : measure::device_out_of_cache_bytes(),
      device_options(options, warm));
}

#else

namespace {

[[noreturn]] void no_cuda() { fail(ErrorCode::unsupported, "--device: {}", why_no_cuda()); }

}  // namespace

std::string why_no_cuda() { return "this build has no CUDA kernels: " ROPEWALK_NO_CUDA; }

void rotate_on_cuda(const RotaryPlan&, std::span<const Rotation>, const Positions&, Direction) {
  no_cuda();
}
void rotate_on_cuda(const RotaryTable&, std::span<const Rotation>, const Positions&, Direction) {
  no_cuda();
}
verify::Backend cuda_verify_backend() { no_cuda(); }
std::vector<std::string> cuda_verify_kernels() { no_cuda(); }
std::string cuda_device_text() { no_cuda(); }
Json cuda_device_json() { no_cuda(); }
void check_cuda_kernel(const std::string&) { no_cuda(); }
measure::Measurement measure_on_cuda(const measure::Case&, std::uint64_t,
                                     const measure::TimingOptions&, bool) {
  no_cuda();
}
std::vector<measure::Floor> measure_floors_on_cuda(const measure::TimingOptions&, bool) {
  no_cuda();
}

#endif

}  // namespace ropewalk::cli
