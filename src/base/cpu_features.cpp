#include "base/cpu_features.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace ropewalk {
namespace {

#if defined(__x86_64__) && defined(__GNUC__)
/// Asked of the processor itself: clang's __builtin_cpu_supports does not know the name.
bool supports_f16c() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

const CpuFeatures& cpu_features() noexcept {
  static const CpuFeatures features = [] {
    CpuFeatures found;
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    found.avx2_fma_f16c = __builtin_cpu_supports("avx2") != 0 &&
                          __builtin_cpu_supports("fma") != 0 && supports_f16c();
    found.avx512 = found.avx2_fma_f16c && __builtin_cpu_supports("avx512f") != 0 &&
                   __builtin_cpu_supports("avx512bw") != 0 &&
                   __builtin_cpu_supports("avx512dq") != 0 &&
                   __builtin_cpu_supports("avx512vl") != 0;
    found.avx512bf16 = found.avx512 && __builtin_cpu_supports("avx512bf16") != 0;
#endif
    return found;
  }();
  return features;
}

std::size_t last_level_cache_bytes() noexcept {
  static const std::size_t bytes = [] {
    long largest = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    largest = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
    return largest > 0 ? static_cast<std::size_t>(largest) : std::size_t{32} << 20;
  }();
  return bytes;
}

int available_processors() noexcept {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace ropewalk
