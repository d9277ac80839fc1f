// Files opened for reading by range, and files that appear whole or not at all. POSIX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/text.h"

namespace ropewalk {

/// A rename in the folder survives a power failure only once the folder is synchronised. Some file
/// systems refuse that for folders; the file is whole either way. Throws Error(io).
void synchronise_folder_of(const std::filesystem::path& path);

/// An owned file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  /// Closes and returns what close() returned.
  int close() noexcept;

 private:
  int descriptor_;
};

/// A regular file open for reading. Error(io) for anything else (a folder, a pipe, a device).
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Size when it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Fills `buffer` from byte `offset` on; Error(io) where the file ends before. Thread safe.
  void read(std::uint64_t offset, std::span<std::byte> buffer) const;

 private:
  std::filesystem::path path_;
  FileDescriptor descriptor_;
  std::uint64_t size_ = 0;
};

/// A file written without a name, or under a temporary one where the file system has no nameless
/// files, in the same folder. commit() synchronises it and renames it over `path`; without commit()
/// nothing is left behind and `path` keeps what it had. A nameless file leaves nothing behind even
/// where the process is killed. A file that replaces another keeps its permissions (mode, and owner
/// and group where the process may set them; not access control lists); a new one follows the
/// umask.
class AtomicFile {
 public:
  /// Error(io) where the temporary file cannot be created or `path` names something that is not a
  /// regular file. A symbolic link is followed: its target is replaced.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  void create(unsigned mode);
  void give_name();
  void remove_temporary() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  ///< empty while the file has no name
  FileDescriptor descriptor_;
};

}  // namespace ropewalk
