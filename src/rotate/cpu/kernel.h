// What a CPU kernel supplies, and the arguments it gets: plain data, already checked.
#pragma once

#include <cstdint>
#include <string_view>

#include "phase/phase.h"
#include "ropewalk/plan.h"
#include "ropewalk/types.h"

namespace ropewalk::cpu {

/// Order of the two channels of a pair in memory.
enum class Order : std::uint8_t { half, interleaved };

/// How a pair is computed (rotate/pair.h) and in which type.
enum class Step : std::uint8_t {
  fused,      ///< exact
  separate,   ///< P1, P2, P3
  stepwise,   ///< P0
  separate64  ///< P4: float64 inside, whatever the data
};

/// Where stores go: through the cache, or past it (out of place, larger than the last cache).
enum class Store : std::uint8_t { cached, streaming };

inline constexpr std::int64_t kMaxPairs = kMaxRotaryDim / 2;
/// Cosines (or sines) of a tile: kTileAngles float or half as many double, 32 KiB.
inline constexpr std::int64_t kTileAngles = 8192;
inline constexpr std::int64_t kMaxTileTokens = 128;
/// With the head loop outside, heads that go through the tokens side by side and share the angles
/// in registers: as many streams as the first cache can hold apart (docs/cpu.md).
inline constexpr std::int64_t kHeadsTogether = 4;
/// In cache fewer loads of angles weigh more than streams do.
inline constexpr std::int64_t kHeadsTogetherInCache = 8;

/// Rows of angles start on a cache line.
ROPEWALK_HD constexpr std::int64_t padded_pairs(std::int64_t pairs) {
  return (pairs + 31) / 32 * 32;
}

/// Fills cosines and sines of a run of tokens. Compute is float or double.
struct AngleArgs {
  const std::uint64_t* fractions;  ///< one per pair
  const Turns* turns;              ///< one per pair; read for float64 and fractional positions
  const std::uint8_t* axis;        ///< one per pair; null where all pairs read axis 0
  std::int64_t pairs;
  std::int64_t tokens;
  int axes;
  const FixedPosition* positions;  ///< tokens × axes
  bool fractional;                 ///< positions have a fractional part
  double amplitude;                ///< multiplies the cosine, rounded to Compute
  double sine_amplitude;           ///< multiplies the sine: amplitude, sign and direction
  void* cos;                       ///< tokens × padded_pairs(pairs)
  void* sin;
};
using AngleFunction = void (*)(const AngleArgs&);

/// Rotates the heads of a run of tokens of one view.
struct TileArgs {
  const char* in;  ///< element (token 0 of the tile, head 0, channel 0)
  char* out;
  std::int64_t in_token, in_head, in_channel;     ///< strides in bytes
  std::int64_t out_token, out_head, out_channel;  ///< strides in bytes
  std::int64_t tokens, heads, head_dim;
  std::int64_t offset;       ///< first rotated channel
  std::int64_t pairs;        ///< of the whole window
  std::int64_t block_pairs;  ///< pairs of each half-paired block; = pairs without blocks
  const void* cos;           ///< tokens × padded_pairs(pairs) of the computing type
  const void* sin;
  const bool* pass;  ///< tokens that are only copied; null: none
  bool in_place;
  bool heads_outside;  ///< head loop outside the token loop, as the strides ask
  bool from_memory;    ///< the data lie beyond the last cache: fetch ahead
};
using TileFunction = void (*)(const TileArgs&);

/// Index of a tile function within a kernel.
struct TileKey {
  Dtype dtype;
  Order read;
  Order write;
  Step step;
  Store store;
};

struct Kernel {
  std::string_view name;
  std::string_view description;
  bool (*supported)();
  std::int64_t store_alignment;  ///< bytes that streaming stores need
  AngleFunction angles_float;
  AngleFunction angles_double;
  TileFunction (*tile)(const TileKey&);
  void (*fence)();  ///< after streaming stores, before other threads are told
};

}  // namespace ropewalk::cpu
