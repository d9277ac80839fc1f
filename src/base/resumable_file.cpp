#include "base/resumable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/sha256.h"
#include "base/text.h"

namespace ropewalk {
namespace {

constexpr std::size_t kCheckBuffer = std::size_t{1} << 20;
constexpr std::size_t kLineCheckDigits = 16;

[[noreturn]] void fail_errno(std::string_view what, const std::filesystem::path& path, int error) {
  fail(ErrorCode::io, "cannot {} {}: {}", what, in_quotes(path.native(), kPathBytes),
       std::generic_category().message(error));
}

FileDescriptor open_or_create(const std::filesystem::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0) fail_errno("write", path, errno);
  struct ::stat status {};
  if (::fstat(file.get(), &status) != 0) fail_errno("examine", path, errno);
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorCode::io, "cannot write {}: not a regular file",
         in_quotes(path.native(), kPathBytes));
  }
  return file;
}

void write_all(const FileDescriptor& file, std::uint64_t offset, std::span<const std::byte> bytes,
               const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ::ssize_t written =
        ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_errno("write", path, errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void synchronise(const FileDescriptor& file, const std::filesystem::path& path) {
  if (::fdatasync(file.get()) != 0) fail_errno("synchronise", path, errno);
}

std::uint64_t size_of_file(const FileDescriptor& file, const std::filesystem::path& path) {
  const ::off_t end = ::lseek(file.get(), 0, SEEK_END);
  if (end < 0) fail_errno("examine", path, errno);
  return static_cast<std::uint64_t>(end);
}

std::string digest_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

std::string with_check(const std::string& line) {
  return line + ' ' + digest_of(line).substr(0, kLineCheckDigits) + '\n';
}

struct Note {
  std::uint64_t end = 0;
  std::string digest;
};

/// Whether a line, without its newline, is what with_check makes of a note.
bool parse_note(std::string_view line, Note& note) {
  const char* last = line.data() + line.size();
  const auto [stopped, error] = std::from_chars(line.data(), last, note.end);
  if (error != std::errc() || stopped == last || *stopped != ' ') return false;
  const std::size_t after = static_cast<std::size_t>(stopped - line.data()) + 1;
  if (line.size() != after + 64 + 1 + kLineCheckDigits) return false;
  note.digest = std::string(line.substr(after, 64));
  const std::string whole = std::string(line) + '\n';
  return with_check(fmt::format("{} {}", note.end, note.digest)) == whole;
}

}  // namespace

ResumableFile::ResumableFile(std::filesystem::path path, const std::string& job)
    : path_(std::move(path)) {
  partial_path_ = path_.native() + ".partial";
  journal_path_ = path_.native() + ".journal";
  open_files();
  read_journal(with_check(fmt::format("ropewalk journal 1 {}", digest_of(job))));
}

void ResumableFile::open_files() {
  std::error_code ignored;  // whatever is wrong with the path, the open below reports it
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    fail(ErrorCode::io, "cannot write {}: not a regular file",
         in_quotes(path_.native(), kPathBytes));
  }
  partial_ = open_or_create(partial_path_);
  if (::flock(partial_.get(), LOCK_EX | LOCK_NB) != 0) {
    fail(ErrorCode::io, "{} is being written by another process",
         in_quotes(partial_path_.native(), kPathBytes));
  }
  journal_ = open_or_create(journal_path_);
}

void ResumableFile::read_journal(const std::string& header) {
  std::string text(size_of_file(journal_, journal_path_), '\0');
  InputFile(journal_path_).read(0, std::as_writable_bytes(std::span(text)));
  // Killed while the first line was written, or before: a beginning of it, and no piece.
  if (text.size() < header.size() && header.starts_with(text)) {
    if (::ftruncate(partial_.get(), 0) != 0) fail_errno("write", partial_path_, errno);
    write_all(journal_, 0, std::as_bytes(std::span(header)), journal_path_);
    synchronise(journal_, journal_path_);
    return;
  }
  if (!text.starts_with(header)) {
    fail(ErrorCode::io,
         "{} belongs to another job (other input, plan or options) or is damaged; remove it and {} "
         "to begin anew",
         in_quotes(journal_path_.native(), kPathBytes),
         in_quotes(partial_path_.native(), kPathBytes));
  }
  std::size_t at = header.size();
  while (at < text.size()) {
    const std::size_t newline = text.find('\n', at);
    Note note;
    const bool whole = newline != std::string::npos &&
                       parse_note(std::string_view(text).substr(at, newline - at), note);
    if (!whole) {
      if (newline == std::string::npos || newline + 1 == text.size()) break;  // torn: the last one
      fail(ErrorCode::io, "{} is damaged at byte {}; remove it and {} to begin anew",
           in_quotes(journal_path_.native(), kPathBytes), at,
           in_quotes(partial_path_.native(), kPathBytes));
    }
    check_piece(size_, note.end, note.digest);
    size_ = note.end;
    at = newline + 1;
  }
  if (::ftruncate(journal_.get(), static_cast<::off_t>(at)) != 0) {
    fail_errno("write", journal_path_, errno);
  }
  if (::ftruncate(partial_.get(), static_cast<::off_t>(size_)) != 0) {
    fail_errno("write", partial_path_, errno);
  }
}

void ResumableFile::check_piece(std::uint64_t begin, std::uint64_t end, const std::string& digest) {
  const InputFile file(partial_path_);
  Sha256 sum;
  std::vector<std::byte> buffer(kCheckBuffer);
  bool matches = begin < end && end <= file.size();
  for (std::uint64_t at = begin; matches && at < end; at += buffer.size()) {
    const auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
    file.read(at, piece);
    sum.update(piece);
  }
  if (!matches || sum.hex() != digest) {
    fail(ErrorCode::io,
         "{} differs from its journal between bytes {} and {}; remove both to begin "
         "anew",
         in_quotes(partial_path_.native(), kPathBytes), begin, end);
  }
}

void ResumableFile::append(std::span<const std::byte> piece) {
  if (piece.empty()) return;
  write_all(partial_, size_, piece, partial_path_);
  synchronise(partial_, partial_path_);
  const std::uint64_t end = size_ + piece.size();
  const std::string line = with_check(fmt::format("{} {}", end, sha256_hex(piece)));
  write_all(journal_, size_of_file(journal_, journal_path_), std::as_bytes(std::span(line)),
            journal_path_);
  synchronise(journal_, journal_path_);
  size_ = end;
}

void ResumableFile::commit() {
  // In this order: a journal without its partial file would stand in the way of the next run.
  if (::unlink(journal_path_.c_str()) != 0) fail_errno("remove", journal_path_, errno);
  if (::rename(partial_path_.c_str(), path_.c_str()) != 0) fail_errno("write", path_, errno);
  synchronise_folder_of(path_);
}

}  // namespace ropewalk
