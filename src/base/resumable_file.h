// A file that is written in pieces over several runs. POSIX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/file.h"

namespace ropewalk {

/// `<path>.partial` holds the pieces, `<path>.journal` a line for each that has been synchronised:
/// where it ends, its SHA-256, and a check of the line itself. After a crash, a full disk or a
/// power failure the noted pieces are there; whatever lies behind them is cut off.
class ResumableFile {
 public:
  /// `job` says what the pieces come from; only a run with the same job goes on. Error(io) where
  /// another process is at it, the journal is another job's or damaged, or a noted piece differs;
  /// what the files hold is not changed then.
  ResumableFile(std::filesystem::path path, const std::string& job);
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;

  /// Bytes that are noted.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Adds a piece: on disk, and noted, when this returns. Error(io) otherwise; size() is then as
  /// before, and a later run goes on from there.
  void append(std::span<const std::byte> piece);
  /// Removes the journal and renames the partial file to `path`.
  void commit();

 private:
  void open_files();
  void read_journal(const std::string& header);
  void check_piece(std::uint64_t begin, std::uint64_t end, const std::string& digest);

  std::filesystem::path path_, partial_path_, journal_path_;
  FileDescriptor partial_, journal_;
  std::uint64_t size_ = 0;
};

}  // namespace ropewalk
