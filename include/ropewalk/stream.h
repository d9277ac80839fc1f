// stream_rotate: rotates the tensors of a safetensors file that may be larger than memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/export.h"
#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"
#include "ropewalk/table.h"

namespace ropewalk {

/// How far a stream is. Bytes are those of tensor data.
struct StreamProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::string_view tensor;  ///< being worked on
  /// Not 0: memory was short, and pieces are of this many bytes at most from now on.
  std::uint64_t halved_to = 0;
};

/// Rotates a piece in place; angles come from `table` where it is not null. std::bad_alloc means
/// that the piece was too large: it is read again and tried in halves.
using PieceRotator = std::function<void(const RotaryPlan& plan, const RotaryTable* table,
                                        const TensorView& piece, const Positions& positions)>;

struct StreamOptions {
  /// Names of the tensors to rotate; empty: all of 3 or 4 dimensions, a floating dtype and
  /// head_dim channels. The others are copied.
  std::vector<std::string> tensors;
  /// An integer, where tokens start, or the name of a tensor of the file: (token), (batch, token)
  /// or (axes, batch, token).
  std::string positions = "0";
  std::string layout = "bthd";  ///< "bthd", "bhtd" or "thd"
  bool fractional = false;      ///< allow a tensor of float positions
  Direction direction = Direction::forward;
  int threads = 0;
  std::string_view kernel;
  /// A piece is at most this long, or one token. What is held in memory: one piece and positions.
  std::uint64_t chunk_bytes = std::uint64_t{64} << 20;
  /// Keep `<output>.partial` and `<output>.journal` when interrupted, and go on from them.
  bool resume = false;
  /// For a parity arithmetic: the table is read from this file, or made and saved there.
  std::filesystem::path table_file;
  PieceRotator rotator;  ///< empty: rotate() of this library
  std::function<void(const StreamProgress&)> progress;
};

struct StreamResult {
  std::vector<std::string> rotated;  ///< names, in the order of the file
  std::vector<std::string> copied;
  std::uint64_t bytes = 0;        ///< of tensor data
  std::uint64_t resumed_at = 0;   ///< bytes of the output file that an interrupted run had finished
  std::uint64_t chunk_bytes = 0;  ///< at the end
};

/// Rotates tensors of `input` into `output` piece by piece. The bytes are those of rotating every
/// tensor at once, whatever the size of the pieces and however often the work was interrupted.
///
/// Every name, shape and position is checked before anything is written. Without `resume` the
/// output appears whole or not at all. With it, each piece is synchronised and then noted in a
/// journal with its SHA-256; a run that finds a journal checks it, the plan, the options, the input
/// file and every noted piece, and goes on behind them; a journal of another job, or a partial file
/// that differs from what was noted, is Error(io) and stays as it is. `output` must not be `input`.
///
/// Where memory is short (std::bad_alloc) the piece is halved, down to one token.
/// Throws Error(invalid_argument) or Error(bad_position) naming the option; Error(io) whose message
/// begins with "output: " where the output cannot be written, with "resume: " where what an
/// interrupted run has left cannot be used.
[[nodiscard]] ROPEWALK_API StreamResult stream_rotate(const RotaryPlan& plan,
                                                      const std::filesystem::path& input,
                                                      const std::filesystem::path& output,
                                                      const StreamOptions& options = {});

}  // namespace ropewalk
