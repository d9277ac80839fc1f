#include <cstdlib>
#include <string>

#include "base/check.h"
#include "ropewalk/rotate.h"
#include "rotate/cpu/kernels.h"

namespace ropewalk {
namespace cpu {
namespace {

constexpr const Kernel* kKernels[] = {
    &kScalarKernel,
#if defined(ROPEWALK_HAVE_X86_KERNELS)
    &kAvx2Kernel,
    &kAvx512Kernel,
    &kAvx512Bf16Kernel,
#endif
};

const Kernel& find(std::string_view name, std::string_view argument) {
  std::string known;
  for (const Kernel* kernel : kKernels) {
    if (kernel->name == name) {
      if (!kernel->supported()) {
        fail(ErrorCode::unsupported, "{}: kernel \"{}\" is not supported by this processor",
             argument, name);
      }
      return *kernel;
    }
    known += known.empty() ? "" : ", ";
    known += kernel->name;
  }
  fail(ErrorCode::unsupported, "{}: expected one of {}, got \"{}\"", argument, known, name);
}

const Kernel& default_kernel() {
  if (const char* forced = std::getenv("ROPEWALK_KERNEL"); forced != nullptr && *forced != '\0') {
    return find(forced, "ROPEWALK_KERNEL");
  }
  const Kernel* best = &kScalarKernel;
  for (const Kernel* kernel : kKernels) {
    if (kernel->supported()) best = kernel;
  }
  return *best;
}

}  // namespace

std::span<const Kernel* const> kernels() noexcept { return kKernels; }

const Kernel& kernel_named(std::string_view name) {
  if (!name.empty()) return find(name, "kernel");
  static const Kernel& chosen = default_kernel();
  return chosen;
}

}  // namespace cpu

std::vector<CpuKernelInfo> cpu_kernels() {
  std::vector<CpuKernelInfo> list;
  for (const cpu::Kernel* kernel : cpu::kernels()) {
    list.push_back({kernel->name, kernel->description, kernel->supported()});
  }
  return list;
}

std::string_view active_cpu_kernel() { return cpu::kernel_named({}).name; }

}  // namespace ropewalk
