// Which vector kernels are compiled. Each costs about 3 KB of machine code per architecture, so the
// list holds what policies choose and what tests compare, no more.
#pragma once

#include <cstdint>

#include "ropewalk/types.h"
#include "rotate/cuda/policy.h"

namespace ropewalk::cuda {

/// Where a kernel takes its angles from.
enum class Source : std::uint8_t {
  plain,    ///< one integer position a row; no packed sequences, padding, copied channels, blocks
            ///< or ragged heads: the common case, without the instructions for the others
  integer,  ///< one integer position a row
  axes,     ///< several axes, integers, without padding
  general,  ///< several axes, or fractions
  table,    ///< one integer position a row, which names a row of a table
};

struct VectorShape {
  Source source = Source::integer;
  Map map = Map::sweep;
  int pairs = 1;
  int heads = 1;
  bool full_row = false;
  [[nodiscard]] bool operator==(const VectorShape&) const = default;
};

/// A kernel whose warps share angles (warp_kernel.h). Source::integer is that of packed sequences.
struct WarpShape {
  Source source = Source::plain;
  Map map = Map::sweep;
  int row_pairs = 64;  ///< of a head
  int pairs = 8;       ///< of a lane and head
  int heads = 1;       ///< of a lane
  int threads = 128;   ///< of a block
  [[nodiscard]] bool operator==(const WarpShape&) const = default;
};

inline constexpr WarpShape kWarpShapes16[] = {
    {Source::plain, Map::tokens, 64, 2, 1, 64},  {Source::plain, Map::tokens, 64, 2, 1, 128},
    {Source::plain, Map::tokens, 64, 2, 1, 256}, {Source::plain, Map::tokens, 64, 2, 2, 128},
    {Source::plain, Map::tokens, 64, 4, 1, 64},  {Source::plain, Map::tokens, 64, 4, 2, 64},
    {Source::plain, Map::tokens, 64, 8, 2, 32},  {Source::plain, Map::sweep, 64, 8, 1, 128},
    {Source::axes, Map::sweep, 64, 4, 2, 128},   {Source::integer, Map::sweep, 64, 8, 2, 64},
    {Source::plain, Map::tokens, 32, 2, 1, 128}, {Source::plain, Map::tokens, 32, 4, 1, 64},
    {Source::plain, Map::sweep, 32, 8, 1, 128},  {Source::plain, Map::tokens, 128, 4, 1, 128},
    {Source::plain, Map::tokens, 128, 8, 1, 64},
};
inline constexpr WarpShape kWarpShapes32[] = {{Source::plain, Map::tokens, 64, 2, 1, 128},
                                              {Source::plain, Map::tokens, 64, 4, 1, 64},
                                              {Source::plain, Map::sweep, 64, 4, 1, 128},
                                              {Source::axes, Map::sweep, 64, 4, 2, 128}};
inline constexpr WarpShape kWarpShapes64[] = {{Source::plain, Map::tokens, 64, 2, 1, 128}};

inline constexpr VectorShape kShapes16Half[] = {
    {Source::plain, Map::tokens, 2, 1, false},  {Source::plain, Map::sweep, 2, 1, false},
    {Source::plain, Map::sweep, 2, 2, false},   {Source::plain, Map::sweep, 2, 4, false},
    {Source::plain, Map::sweep, 4, 1, false},   {Source::plain, Map::sweep, 4, 2, false},
    {Source::plain, Map::sweep, 4, 4, false},   {Source::plain, Map::sweep, 8, 2, false},
    {Source::plain, Map::sweep, 4, 4, true},    {Source::integer, Map::sweep, 1, 4, false},
    {Source::integer, Map::sweep, 2, 4, false}, {Source::integer, Map::sweep, 4, 1, false},
    {Source::integer, Map::sweep, 4, 4, false}, {Source::integer, Map::sweep, 8, 2, false},
    {Source::integer, Map::sweep, 4, 4, true},  {Source::axes, Map::sweep, 4, 4, false},
    {Source::general, Map::sweep, 4, 1, false}, {Source::general, Map::sweep, 4, 4, false},
    {Source::table, Map::sweep, 4, 1, false},   {Source::table, Map::sweep, 4, 4, false},
};
inline constexpr VectorShape kShapes16Interleaved[] = {
    {Source::plain, Map::tokens, 2, 1, false},  {Source::plain, Map::sweep, 2, 1, false},
    {Source::plain, Map::sweep, 2, 2, false},   {Source::plain, Map::sweep, 2, 4, false},
    {Source::plain, Map::sweep, 4, 1, false},   {Source::plain, Map::sweep, 4, 2, false},
    {Source::plain, Map::sweep, 4, 4, false},   {Source::integer, Map::sweep, 1, 4, false},
    {Source::integer, Map::sweep, 2, 4, false}, {Source::integer, Map::sweep, 4, 1, false},
    {Source::integer, Map::sweep, 4, 4, false}, {Source::axes, Map::sweep, 4, 4, false},
    {Source::general, Map::sweep, 4, 1, false}, {Source::general, Map::sweep, 4, 4, false},
    {Source::table, Map::sweep, 4, 1, false},   {Source::table, Map::sweep, 4, 4, false},
};
inline constexpr VectorShape kShapes32[] = {
    {Source::plain, Map::tokens, 2, 1, false},  {Source::plain, Map::sweep, 2, 1, false},
    {Source::plain, Map::sweep, 2, 2, false},   {Source::plain, Map::sweep, 2, 4, false},
    {Source::plain, Map::sweep, 4, 1, false},   {Source::plain, Map::sweep, 4, 2, false},
    {Source::integer, Map::sweep, 1, 4, false}, {Source::integer, Map::sweep, 4, 1, false},
    {Source::integer, Map::sweep, 4, 2, false}, {Source::axes, Map::sweep, 4, 2, false},
    {Source::general, Map::sweep, 4, 1, false}, {Source::general, Map::sweep, 4, 2, false},
    {Source::table, Map::sweep, 4, 1, false},
};
inline constexpr VectorShape kShapes64[] = {
    {Source::plain, Map::tokens, 1, 1, false},  {Source::plain, Map::sweep, 1, 2, false},
    {Source::plain, Map::sweep, 1, 4, false},   {Source::plain, Map::sweep, 2, 1, false},
    {Source::plain, Map::sweep, 2, 2, false},   {Source::integer, Map::sweep, 1, 4, false},
    {Source::integer, Map::sweep, 2, 1, false}, {Source::integer, Map::sweep, 2, 2, false},
    {Source::general, Map::sweep, 2, 1, false}, {Source::table, Map::sweep, 2, 1, false},
};
/// Read in one order, written in the other.
inline constexpr VectorShape kShapesMixed16[] = {{Source::integer, Map::sweep, 4, 1, false},
                                                 {Source::integer, Map::sweep, 4, 2, false},
                                                 {Source::integer, Map::sweep, 4, 4, false}};
inline constexpr VectorShape kShapesMixed32[] = {{Source::integer, Map::sweep, 4, 1, false},
                                                 {Source::integer, Map::sweep, 4, 2, false}};
inline constexpr VectorShape kShapesMixed64[] = {{Source::integer, Map::sweep, 2, 1, false}};

}  // namespace ropewalk::cuda
