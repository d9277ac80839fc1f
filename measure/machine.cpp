#include "measure/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/cpu_features.h"
#include "measure/build_info.h"

namespace ropewalk::measure {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "0-3,8" has five processors.
int processors_in_list(const std::string& list) {
  int count = 0;
  std::size_t at = 0;
  while (at < list.size()) {
    std::size_t used = 0;
    const int first = std::stoi(list.substr(at), &used);
    at += used;
    int last = first;
    if (at < list.size() && list[at] == '-') {
      last = std::stoi(list.substr(at + 1), &used);
      at += 1 + used;
    }
    count += last - first + 1;
    ++at;  // the comma
  }
  return count;
}

/// "2048K" or "32M" in bytes, 0 where it is neither.
std::int64_t bytes_of_size(const std::string& text) {
  if (text.empty()) return 0;
  const std::int64_t number = std::atoll(text.c_str());
  switch (text.back()) {
    case 'K': return number << 10;
    case 'M': return number << 20;
    case 'G': return number << 30;
    default: return number;
  }
}

std::vector<Cache> caches_from_sysfs() {
  std::vector<Cache> found;
  for (int index = 0; index < 16; ++index) {
    const std::filesystem::path folder =
        fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", index);
    const std::string level = first_line(folder / "level");
    if (level.empty()) break;
    if (first_line(folder / "type") == "Instruction") continue;
    found.push_back({std::atoi(level.c_str()), bytes_of_size(first_line(folder / "size")),
                     processors_in_list(first_line(folder / "shared_cpu_list"))});
  }
  return found;
}

/// On x86 the C library answers these from the cpuid instruction.
std::vector<Cache> caches_from_sysconf() {
  std::vector<Cache> found;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  for (int i = 0; i < 3; ++i) {
    if (const long bytes = sysconf(names[i]); bytes > 0) found.push_back({i + 1, bytes, 0});
  }
#endif
  return found;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") || line.starts_with("Model")) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> found;
  const CpuFeatures& features = cpu_features();
  if (features.avx2_fma_f16c) found.insert(found.end(), {"avx2", "fma", "f16c"});
  if (features.avx512) found.insert(found.end(), {"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  if (features.avx512bf16) found.emplace_back("avx512_bf16");
  return found;
}

std::string operating_system() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

std::string human_bytes(std::int64_t bytes) {
  return bytes >= (1 << 20) ? fmt::format("{} MiB", bytes >> 20)
                            : fmt::format("{} KiB", bytes >> 10);
}

}  // namespace

const Machine& machine() {
  static const Machine facts = [] {
    Machine m;
    m.cpu = cpu_model();
    m.isa = instruction_sets();
    m.caches = caches_from_sysfs();
    if (m.caches.empty()) m.caches = caches_from_sysconf();
    std::sort(m.caches.begin(), m.caches.end(),
              [](const Cache& a, const Cache& b) { return a.level < b.level; });
    m.processors = available_processors();
    m.system = operating_system();
    m.compiler = kCompiler;
    m.build_type = kBuildType;
    m.version = kVersion;
    m.commit = kCommit;
    return m;
  }();
  return facts;
}

std::int64_t level2_cache_bytes() {
  for (const Cache& cache : machine().caches) {
    if (cache.level == 2 && cache.bytes > 0) return cache.bytes;
  }
  return std::int64_t{1} << 20;
}

std::int64_t largest_cache_bytes() {
  std::int64_t largest = 0;
  for (const Cache& cache : machine().caches) largest = std::max(largest, cache.bytes);
  return largest > 0 ? largest : static_cast<std::int64_t>(last_level_cache_bytes());
}

std::int64_t out_of_cache_bytes() { return 4 * largest_cache_bytes(); }

std::string to_string(const Machine& facts) {
  std::string caches;
  for (const Cache& cache : facts.caches) {
    caches += fmt::format(", L{} {}", cache.level, human_bytes(cache.bytes));
  }
  return fmt::format(
      "{}, {} processor{}{}, {}", facts.cpu, facts.processors, facts.processors == 1 ? "" : "s",
      caches,
      facts.isa.empty() ? "no vector extension" : fmt::format("{}", fmt::join(facts.isa, " ")));
}

}  // namespace ropewalk::measure
