// Rotating sets of buffers, and the floors timed beside a rotation of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/cuda/chain.h"

namespace ropewalk::measure {

/// Equal pieces of device memory that a chain visits in turn; the same one again only when all
/// have been.
struct RotatingSets {
  std::byte* in_memory = nullptr;
  std::byte* out_memory = nullptr;  ///< in place: the same
  std::int64_t set_bytes = 0;       ///< a multiple of 256
  int count = 1;

  [[nodiscard]] int index(int node) const noexcept { return node % count; }
  [[nodiscard]] std::byte* in(int node) const noexcept { return in_memory + offset(node); }
  [[nodiscard]] std::byte* out(int node) const noexcept { return out_memory + offset(node); }

 private:
  [[nodiscard]] std::int64_t offset(int node) const noexcept { return index(node) * set_bytes; }
};

/// `bytes` up to the next boundary of a set.
[[nodiscard]] std::int64_t aligned_set(std::int64_t bytes) noexcept;

/// Sets for a chain whose launches touch `touched_bytes` each: six times the L2 cache in all, or,
/// warm, two fifths of it; between 1 and what `room_bytes` hold of `set_bytes` each.
[[nodiscard]] int sets_of_chain(std::int64_t touched_bytes, std::int64_t set_bytes,
                                std::int64_t room_bytes, std::int64_t l2_bytes, bool warm) noexcept;

/// Launches of a chain that takes about two milliseconds at 4 TB/s: 3 to 400.
[[nodiscard]] int nodes_of_chain(std::int64_t moved_bytes) noexcept;

/// The floors as candidates: passes over the first `copy_bytes` bytes of each set, one way, and an
/// empty kernel, named kEmpty.
inline constexpr std::string_view kEmpty = "empty";
[[nodiscard]] std::vector<Candidate> floor_candidates(const RotatingSets& sets,
                                                      std::int64_t copy_bytes, bool in_place,
                                                      bool programmatic);

/// The fastest floor among samples, by name; null where none is there.
[[nodiscard]] const Sample* fastest_floor(const std::vector<Sample>& samples);
[[nodiscard]] const Sample* sample_named(const std::vector<Sample>& samples, std::string_view name);

}  // namespace ropewalk::measure
