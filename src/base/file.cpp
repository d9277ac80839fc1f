#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace ropewalk {
namespace {

[[noreturn]] void fail_errno(std::string_view what, const std::filesystem::path& path, int error) {
  fail(ErrorCode::io, "{} {}: {}", what, in_quotes(path.native(), kPathBytes),
       std::generic_category().message(error));
}

constexpr int kAttempts = 100;

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

/// What a chain of symbolic links names, whether or not that exists.
std::filesystem::path followed(std::filesystem::path path) {
  constexpr int kMostLinks = 40;
  std::error_code ignored;  // whatever is wrong with the path, opening the file reports it
  for (int links = 0; std::filesystem::is_symlink(path, ignored); ++links) {
    if (links == kMostLinks) fail_errno("cannot write", path, ELOOP);
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  }
  return path;
}

/// Gives the new file the mode of the one it replaces and, where this process may, its owner and
/// group. False, with errno, where the mode could not be set.
bool keep_access(int descriptor, const struct ::stat& before) {
  constexpr ::uid_t kSameOwner = static_cast<::uid_t>(-1);
  constexpr ::mode_t kPermissions = 0777;
  struct ::stat now {};
  if (::fstat(descriptor, &now) != 0) return false;
  const bool group_is_kept = (now.st_uid == before.st_uid && now.st_gid == before.st_gid) ||
                             ::fchown(descriptor, before.st_uid, before.st_gid) == 0 ||
                             now.st_gid == before.st_gid ||
                             ::fchown(descriptor, kSameOwner, before.st_gid) == 0;
  const ::mode_t mode = before.st_mode & kPermissions;
  // What a group may do is for that group alone.
  return ::fchmod(descriptor, group_is_kept ? mode : mode & ~::mode_t{S_IRWXG}) == 0;
}

std::string path_of(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

/// A new file in `folder` without a name; none where the system cannot make one, or not name it.
FileDescriptor open_nameless(const std::filesystem::path& folder, ::mode_t mode) {
#ifdef O_TMPFILE
  FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (file.get() >= 0 && ::access(path_of(file.get()).c_str(), F_OK) == 0) return file;
#endif
  return FileDescriptor();
}

/// The temporary name is short, so that any name the file system takes for the file is possible.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<std::uint64_t> counter{0};
  return path.parent_path() / fmt::format(".ropewalk-{}-{}.tmp", ::getpid(), counter++);
}

}  // namespace

void synchronise_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = folder_of(path);
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
    fail(ErrorCode::io, "cannot read {}: not a regular file",
         in_quotes(path_.native(), kPathBytes));
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
           in_quotes(path_.native(), kPathBytes), offset, buffer.size());
    }
    offset += static_cast<std::uint64_t>(got);
    buffer = buffer.subspan(static_cast<std::size_t>(got));
  }
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(followed(std::move(path))) {
  struct ::stat before {};
  const bool exists = ::stat(path_.c_str(), &before) == 0;
  if (path_.filename().empty() || (exists && !S_ISREG(before.st_mode))) {
    fail(ErrorCode::io, "cannot write {}: not a regular file",
         in_quotes(path_.native(), kPathBytes));
  }
  // A file that exists may be private: its successor is so from the first byte on.
  create(exists ? S_IRUSR | S_IWUSR : 0666);
  if (exists && !keep_access(descriptor_.get(), before)) {
    const int error = errno;
    remove_temporary();
    fail_errno("cannot keep the permissions of", path_, error);
  }
}

AtomicFile::~AtomicFile() { remove_temporary(); }

void AtomicFile::create(unsigned mode) {
  // Without a name nothing is left behind even where the process is killed.
  descriptor_ = open_nameless(folder_of(path_), mode);
  if (descriptor_.get() >= 0) return;
  int error = EEXIST;
  for (int attempt = 0; attempt < kAttempts && error == EEXIST; ++attempt) {
    temporary_ = temporary_beside(path_);
    descriptor_ =
        FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (descriptor_.get() >= 0) return;
    error = errno;
  }
  temporary_.clear();
  fail_errno("cannot write", path_, error);
}

/// rename() replaces a file and link() does not, so that a nameless file gets a temporary name.
void AtomicFile::give_name() {
  const std::string nameless = path_of(descriptor_.get());
  int error = EEXIST;
  for (int attempt = 0; attempt < kAttempts && error == EEXIST; ++attempt) {
    temporary_ = temporary_beside(path_);
    if (::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) ==
        0) {
      return;
    }
    error = errno;
  }
  temporary_.clear();
  fail_errno("cannot write", path_, error);
}

void AtomicFile::remove_temporary() noexcept {
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
  if (temporary_.empty()) give_name();
  if (descriptor_.close() != 0) fail_errno("cannot close", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_errno("cannot write", path_, errno);
  }
  temporary_.clear();
  synchronise_folder_of(path_);
}

}  // namespace ropewalk
