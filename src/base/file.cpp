#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace ropewalk {
namespace {

[[noreturn]] void fail_errno(std::string_view what, const std::filesystem::path& path, int error) {
  fail(ErrorCode::io, "{} {}: {}", what, in_quotes(path.native()),
       std::generic_category().message(error));
}

/// The temporary name is short, so that any name the file system takes for the file is possible.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<std::uint64_t> counter{0};
  return path.parent_path() / fmt::format(".ropewalk-{}-{}.tmp", ::getpid(), counter++);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::size_t kept = std::min<std::size_t>(text.size(), 80);
  // Never cut inside a UTF-8 sequence.
  while (kept > 0 && kept < text.size() && (text[kept] & 0xc0) == 0x80) --kept;
  std::string result = "'";
  for (const char c : text.substr(0, kept)) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    result += control ? '?' : c;
  }
  return result + (kept < text.size() ? "...'" : "'");
}

void synchronise_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0 && ::fsync(descriptor.get()) != 0 && errno != EINVAL) {
    fail_errno("cannot synchronise the folder of", path, errno);
  }
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileDescriptor::~FileDescriptor() { close(); }

int FileDescriptor::close() noexcept {
  const int descriptor = std::exchange(descriptor_, -1);
  return descriptor < 0 ? 0 : ::close(descriptor);
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  descriptor_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor_.get() < 0) fail_errno("cannot open", path_, errno);
  struct ::stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) fail_errno("cannot examine", path_, errno);
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorCode::io, "cannot read {}: not a regular file", in_quotes(path_.native()));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> buffer) const {
  while (!buffer.empty()) {
    const ::ssize_t got =
        ::pread(descriptor_.get(), buffer.data(), buffer.size(), static_cast<::off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("cannot read", path_, errno);
    if (got == 0) {
      fail(ErrorCode::io, "cannot read {}: the file ends at byte {}, {} more were expected",
           in_quotes(path_.native()), offset, buffer.size());
    }
    offset += static_cast<std::uint64_t>(got);
    buffer = buffer.subspan(static_cast<std::size_t>(got));
  }
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;  // whatever is wrong with the path, the open below reports it
  if (std::filesystem::is_symlink(path_, ignored)) {
    path_ = std::filesystem::weakly_canonical(path_, ignored);
  }
  const auto status = std::filesystem::status(path_, ignored);
  if (path_.filename().empty() ||
      (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))) {
    fail(ErrorCode::io, "cannot write {}: not a regular file", in_quotes(path_.native()));
  }
  int error = EEXIST;
  for (int attempt = 0; attempt < 100 && error == EEXIST; ++attempt) {
    temporary_ = temporary_beside(path_);
    descriptor_ =
        FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (descriptor_.get() >= 0) return;
    error = errno;
  }
  temporary_.clear();
  fail_errno("cannot write", path_, error);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(descriptor_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_errno("cannot write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_.get()) != 0) fail_errno("cannot synchronise", path_, errno);
  if (descriptor_.close() != 0) fail_errno("cannot close", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_errno("cannot write", path_, errno);
  }
  temporary_.clear();
  synchronise_folder_of(path_);
}

}  // namespace ropewalk
