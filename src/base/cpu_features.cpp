#include "base/cpu_features.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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

/// Bytes of one cache as the kernel shows it, 0 where there is none. sysconf is no substitute: on
/// some processors it adds up the last-level caches of a whole socket.
std::size_t cache_bytes(int index) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  unsigned long kibibytes = 0;
  const int fields = std::fscanf(file, "%luK", &kibibytes);
  std::fclose(file);
  return fields == 1 ? static_cast<std::size_t>(kibibytes) << 10 : 0;
}

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
    std::size_t largest = 0;
    for (int index = 0; index < 8; ++index) largest = std::max(largest, cache_bytes(index));
    return largest > 0 ? largest : std::size_t{32} << 20;
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
