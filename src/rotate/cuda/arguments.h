// What a kernel gets, as plain data. Every number is final: kernels decide nothing about shapes.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace ropewalk::cuda {

/// Division by a constant as a product: exact for 0 ≤ x < 2^31.
struct Divisor {
  std::uint32_t multiplier = 0x80000001u;
  std::uint32_t shift = 31;
  std::uint32_t divisor = 1;

  ROPEWALK_HD std::uint32_t quotient(std::uint32_t x) const {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(x) * multiplier) >> shift);
  }
};

/// floor(2^(31+s) / divisor) + 1 with s = ceil(log2 divisor) errs by less than 1 / divisor.
/// 1 ≤ divisor < 2^31.
[[nodiscard]] constexpr Divisor make_divisor(std::uint32_t divisor) {
  std::uint32_t s = 0;
  while ((std::uint64_t{1} << s) < divisor) ++s;
  const std::uint64_t multiplier = (std::uint64_t{1} << (31 + s)) / divisor + 1;
  return {static_cast<std::uint32_t>(multiplier), 31 + s, divisor};
}

/// One tensor, for the narrow path. Its rows are numbered by three indices, the fastest in memory
/// first; one of the three counts groups of heads, and the dimensions that memory allows to merge
/// are merged.
struct ViewArgs {
  const char* in = nullptr;  ///< first channel of the head
  char* out = nullptr;
  Divisor size0, size1;
  std::int64_t groups = 0;        ///< product of the three sizes
  std::int64_t size[2] = {1, 1};  ///< the same as size0, size1, where those would overflow
  std::int64_t in_stride[3] = {}, out_stride[3] = {};  ///< bytes
  std::int64_t in_head = 0, out_head = 0;              ///< bytes between the heads of a group
  std::int64_t position_stride[3] = {};                ///< elements of the position array
  std::int64_t token_stride[3] = {};                   ///< what an index adds to the token number
  std::int64_t in_channel = 0, out_channel = 0;        ///< bytes
};

/// Where positions come from. One component, integer: start + token · by_token + data[index].
struct PositionArgs {
  enum Type : std::uint32_t { kNone, kInt32, kInt64, kFloat32, kFloat64 };
  const void* data = nullptr;
  std::uint32_t type = kNone;
  std::uint32_t by_token = 0;  ///< 1: the token number is added
  std::int64_t start = 0;
  std::int64_t limit = 0;  ///< valid: low ≤ p < limit
  std::int64_t low = 0;
  std::int64_t range = 0;            ///< limit − low
  const void* cu_seqlens = nullptr;  ///< packed sequences where not null
  std::uint32_t cu_type = kNone;
  std::uint32_t has_padding = 0;
  std::int64_t sequences = 0;
  std::int64_t padding = 0;
  std::int64_t axis_stride = 0;
  std::int32_t axes = 1;  ///< given; 1 serves every pair
};

/// fraction and low word of a frequency side by side, for float64 data.
struct alignas(16) PreciseFraction {
  std::uint64_t fraction;
  std::uint64_t low;
};

/// Where cosines and sines come from.
struct AngleArgs {
  const std::uint64_t* fractions = nullptr;
  const PreciseFraction* precise = nullptr;
  const std::int64_t* whole = nullptr;
  const std::uint8_t* axis = nullptr;
  double cos_amplitude = 1;
  double sin_amplitude = 1;
  float cos_amplitude32 = 1;  ///< the same rounded, so that no kernel converts
  float sin_amplitude32 = 1;
  const void* table_cos = nullptr;  ///< table mode: rows × pairs
  const void* table_sin = nullptr;
  std::uint32_t step = 0;  ///< table mode: Step
};

enum Step : std::uint32_t { kFused, kSeparate, kStepwise };

/// How the channels of a row are shared out to lanes (threadIdx.x). Distances in bytes.
struct RowArgs {
  std::uint32_t lanes = 0;  ///< that rotate; the rest copy
  std::uint32_t copy_lanes = 0;
  std::uint32_t copy_chunks = 0;  ///< outside the window
  std::uint32_t copy_before = 0;  ///< bytes before the window
  std::uint32_t window = 0;       ///< bytes of the window
  std::uint32_t half = 0;         ///< from a channel to its partner in a half pairing
  std::uint32_t block_pairs = 0;  ///< pairs of a block with a half pairing of its own
  std::uint32_t pairs = 0;
};

/// The narrow path decides more at run time.
struct NarrowArgs {
  std::uint32_t read_interleaved = 0;
  std::uint32_t write_interleaved = 0;
  std::uint32_t in_place = 0;
  std::uint32_t heads = 1;  ///< of a group
  std::int64_t offset = 0;  ///< first channel of the window
  std::int64_t head_dim = 0;
  std::int64_t split_block = 0;
  std::int64_t blocks = 0;    ///< of both tensors
  std::uint32_t general = 0;  ///< several axes or fractions
};

/// Of the narrow path.
struct Args {
  ViewArgs view[2];
  std::uint32_t programmatic = 0;
  PositionArgs position;
  AngleArgs angle;
  RowArgs row;
  unsigned long long* bad_rows = nullptr;
  NarrowArgs narrow;
};

/// One tensor, for the vector kernels: as ViewArgs, but all numbers except the outermost strides
/// fit 32 bits. 88 bytes.
struct VectorView {
  std::uint32_t multiplier0 = 0x80000001u, multiplier1 = 0x80000001u;
  std::uint32_t size0 = 1, size1 = 1;
  std::uint32_t shifts = 31 | 31 << 8;  ///< of the divisions by size0 and size1
  std::uint32_t groups = 0;
  std::int32_t in0 = 0, in1 = 0, in_head = 0;  ///< bytes
  std::int32_t out0 = 0, out1 = 0, out_head = 0;
  std::int64_t in2 = 0, out2 = 0;
  std::int32_t position0 = 0, position1 = 0, position2 = 0;  ///< elements of the position array
  std::int32_t token0 = 0, token1 = 0, token2 = 0;  ///< what an index adds to the token number
};

/// Facts that spare the common cases work.
enum VectorFlags : std::uint32_t {
  kLinear = 1,        ///< row groups lie one behind the other: offset = g · in0
  kSameStrides = 2,   ///< input and output have the same strides
  kThreeIndices = 4,  ///< some view needs its third index
  kProgrammatic = 8,
  kRaggedHeads = 16,  ///< head counts are no multiples of a thread's heads
  kMayCollide = 32,   ///< in place: a row must be read as a whole before it is written
};

/// Of the vector kernels. What the first loads wait for comes first: each further line of constant
/// memory that a block touches costs it tens of nanoseconds, a few percent of a decode step.
struct VectorArgs {
  const char* in[2] = {};  ///< first channel of the window
  const void* position_data = nullptr;
  const void* frequencies = nullptr;  ///< fractions, or precise ones for float64
  std::uint32_t split = 0;            ///< blocks (groups of heads, in the token map) of view 0
  std::uint32_t flags = 0;
  std::uint32_t lanes = 0;  ///< row.lanes
  std::uint32_t half = 0;   ///< row.half
  VectorView view[2];
  char* out[2] = {};
  PositionArgs position;
  AngleArgs angle;
  RowArgs row;
  unsigned long long* bad_rows = nullptr;
  std::uint32_t heads[2] = {};       ///< kRaggedHeads: of each tensor
  std::uint32_t head_index[2] = {};  ///< kRaggedHeads: which of the three indices counts groups
};

/// WarpArgs::facts: in the lowest bits the blocks of tensor 0 (token map), and above them:
enum WarpFacts : std::uint32_t {
  kWarpInt64 = 1u << 24,  ///< positions in memory; neither bit: none
  kWarpInt32 = 1u << 25,
  kWarpAddToken = 1u << 26,
  kWarpHeadsInside =
      1u << 27,             ///< the sweep passes over the heads of a token before the next token
  kWarpBatches = 1u << 28,  ///< blockIdx.y is the batch row
  kWarpProgrammatic = 1u << 29,
};
inline constexpr std::uint32_t kWarpMostBlocks = (1u << 24) - 1;

/// Of the warp kernels. The first 48 bytes are what the loads of few tokens wait for: with them the
/// line of constant memory ends. A launch costs more the more arguments there are, so that those of
/// the sweep are apart.
struct WarpArgs {
  const char* in[2] = {};               ///< first channel of the window
  const void* position_data = nullptr;  ///< without positions in memory: the start itself
  const void* frequencies = nullptr;
  std::int32_t in_token[2] = {};  ///< bytes
  std::int32_t in_head = 0;       ///< bytes, of both tensors
  std::uint32_t facts = 0;        ///< WarpFacts
  char* out[2] = {};
  std::int32_t out_token[2] = {};
  std::int32_t out_head = 0;
  float cos_amplitude32 = 1, sin_amplitude32 = 1;
  double cos_amplitude = 1, sin_amplitude = 1;
  unsigned long long* bad_rows = nullptr;
};

/// What the sweep knows of one tensor.
struct WarpView {
  std::uint32_t multiplier = 0x80000001u;  ///< of the division by inner
  std::uint32_t shift = 31;
  std::uint32_t inner = 1;                   ///< groups of heads, or tokens
  std::uint32_t outer = 0;                   ///< the other of the two
  std::int64_t in_batch = 0, out_batch = 0;  ///< bytes
};

struct WarpSweepArgs : WarpArgs {
  std::uint32_t split = 0;  ///< blocks of tensor 0
  WarpView view[2];
  std::int32_t position_token = 0, position_batch = 0;  ///< elements of the position array
  std::int32_t axis_stride = 0;
  std::uint32_t axes = 1;
  const std::uint8_t* axis = nullptr;
  PositionArgs packed;  ///< Source::integer: packed sequences
};

}  // namespace ropewalk::cuda
