// What a number was measured on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ropewalk::measure {

/// A data or unified cache as the operating system describes it.
struct Cache {
  int level = 0;
  std::int64_t bytes = 0;
  int shared_by = 0;  ///< processors; 0: unknown
};

struct Machine {
  std::string cpu;               ///< model name, "unknown" where the system does not tell
  std::vector<std::string> isa;  ///< the instruction set extensions that kernels ask for
  std::vector<Cache> caches;     ///< of the first processor, data and unified, by level
  int processors = 1;            ///< that this process may run on
  std::string system;            ///< operating system and release
  std::string compiler;
  std::string build_type;
  std::string version;  ///< of Ropewalk
  std::string commit;   ///< empty: unknown
};

/// Asked once; the same object afterwards.
[[nodiscard]] const Machine& machine();

/// Bytes of the second-level cache, 1 MiB where unknown.
[[nodiscard]] std::int64_t level2_cache_bytes();

/// Bytes of the largest cache, as the operating system describes it.
[[nodiscard]] std::int64_t largest_cache_bytes();

/// Bytes from which a working set counts as outside every cache: four times the largest one.
[[nodiscard]] std::int64_t out_of_cache_bytes();

/// One line for people: processor, cores, caches, instruction sets.
[[nodiscard]] std::string to_string(const Machine& facts);

}  // namespace ropewalk::measure
