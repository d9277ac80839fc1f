// Which kernel serves a call, and how its grid is cut: a few printable numbers, chosen by one
// function from facts about the call.
#pragma once

#include <cstdint>
#include <string>

#include "ropewalk/types.h"

namespace ropewalk::cuda {

/// Order of the two channels of a pair in memory.
enum class Order : std::uint8_t { half, interleaved };

/// How blocks are laid over the rows.
enum class Map : std::uint8_t {
  sweep,   ///< one flat sweep in memory order, the second tensor behind the first
  tokens,  ///< a token per blockIdx.y, both tensors side by side in blockIdx.x
};

struct Policy {
  bool vectors = false;  ///< false: the narrow path, right for every view
  Map map = Map::sweep;
  int pairs = 1;          ///< neighbouring pairs of a thread and head
  int heads = 1;          ///< of a thread; they share sines and cosines
  int threads = 128;      ///< of a block, at most
  bool full_row = false;  ///< 16 bytes of a row in one piece, the partner's by shuffle
  bool warp = false;      ///< heads of a token share a warp and its angles (warp_kernel.h)
  [[nodiscard]] bool operator==(const Policy&) const = default;
};

/// "sweep-4x2-64-row", "tokens-2x1-128-warp", "narrow".
[[nodiscard]] std::string to_string(const Policy& policy);
/// The inverse. Throws Error(invalid_argument).
[[nodiscard]] Policy policy_from_name(std::string_view name);

/// The facts that decide.
struct Call {
  int compute_capability = 90;  ///< 10 · major + minor
  Dtype dtype = Dtype::bfloat16;
  Order read = Order::half;
  Order write = Order::half;
  bool table = false;
  bool general = false;       ///< several axes, or fractional positions
  bool several_axes = false;  ///< given, one component each
  bool fractional = false;
  bool padding = false;
  bool packed = false;           ///< cu_seqlens
  bool int32_positions = false;  ///< one component each
  bool in_place = false;
  bool programmatic = false;     ///< in a chain of programmatic launches
  bool partial = false;          ///< the window is not the whole head
  bool computes_double = false;  ///< float64 inside although the data is not
  bool heads_inside = true;      ///< heads vary faster in memory than tokens
  bool channels_adjacent = true;
  std::int64_t pairs = 64;
  std::int64_t block_pairs = 64;
  std::int64_t copied = 0;         ///< channels outside the window that are copied
  std::int64_t alignment = 16;     ///< bytes, of every row and every part of one
  std::int64_t tokens = 1;         ///< of all batch rows
  std::int64_t heads[2] = {1, 0};  ///< of each tensor
  std::int64_t bytes = 0;          ///< moved: read and written
  std::int64_t rows = 1;           ///< of the largest tensor
  std::int64_t batches = 1;        ///< that cannot be counted as further tokens
  bool steps_by_one = true;        ///< a token further, the next element of the position array
  bool heads_alike = true;         ///< in both tensors, heads lie apart by the same strides
};

/// Whether Source::plain serves the call (shapes.h).
[[nodiscard]] bool is_plain(const Call& call, const Policy& policy);

/// Heads that a warp rotates; of a policy with `warp`.
[[nodiscard]] std::int64_t heads_of_warp(const Call& call, const Policy& policy);

/// Whether the kernels take the call at all with this policy.
[[nodiscard]] bool is_possible(const Call& call, const Policy& policy);

/// The policy for a call; always possible.
[[nodiscard]] Policy choose_policy(const Call& call);

}  // namespace ropewalk::cuda
