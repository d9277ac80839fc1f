// The safetensors file format: an 8-byte little-endian header length, a JSON header, the data.
// Knows nothing about what the tensors mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace ropewalk {

using SafetensorsMetadata = std::map<std::string, std::string>;

/// What a header says about a tensor.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;                ///< as the format spells it: "F32", "BF16", "I64" …
  std::vector<std::int64_t> shape;  ///< empty: a scalar
  [[nodiscard]] bool operator==(const SafetensorsTensor&) const = default;
};

/// A tensor of an opened file.
struct SafetensorsEntry : SafetensorsTensor {
  std::uint64_t offset = 0;  ///< of the first byte, from the beginning of the file
  std::uint64_t bytes = 0;
};

/// Bits of one element of a dtype of the format, 0 where it is unknown.
[[nodiscard]] int safetensors_bits(std::string_view dtype) noexcept;

/// Bytes of a tensor. Throws Error(invalid_argument) for an unknown dtype, a negative size, more
/// than 2^63 − 1 bytes, or a number of bits that is not a whole number of bytes.
[[nodiscard]] std::uint64_t safetensors_bytes(const SafetensorsTensor& tensor);

/// Reads a file by ranges; only the header is held in memory. The whole header is checked when the
/// file is opened: a file that is not exactly of the format is Error(io), one sentence naming the
/// file and the reason, whatever it holds. The work for a hostile header is bounded by the limits
/// in safetensors_header.h.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return file_.path(); }
  /// In the order of their data.
  [[nodiscard]] const std::vector<SafetensorsEntry>& tensors() const noexcept { return tensors_; }
  [[nodiscard]] const SafetensorsMetadata& metadata() const noexcept { return metadata_; }
  /// nullptr where the file has no such tensor.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const noexcept;
  /// Error(io) naming the tensor where the file has none.
  [[nodiscard]] const SafetensorsEntry& at(std::string_view name) const;

  /// Fills `buffer` with the bytes of `tensor` from `begin` on. Throws Error(invalid_argument) for
  /// a range outside the tensor, Error(io) where the file was cut after it was opened.
  void read(const SafetensorsEntry& tensor, std::uint64_t begin, std::span<std::byte> buffer) const;

 private:
  InputFile file_;
  std::vector<SafetensorsEntry> tensors_;
  SafetensorsMetadata metadata_;
};

/// Writes a file as a stream: declare every tensor, give their bytes in the same order, commit.
/// Until commit() returns there is no file of that name (or the old one still is); a writer that
/// is destroyed without it leaves nothing behind.
class SafetensorsWriter {
 public:
  /// Throws Error(invalid_argument) for a repeated or reserved name or a tensor without a size,
  /// Error(io) where the file cannot be created.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const SafetensorsTensor> tensors,
                    const SafetensorsMetadata& metadata = {});

  /// The next bytes, in pieces of any size. Throws Error(io), or Error(invalid_argument) for more
  /// bytes than were declared.
  void write(std::span<const std::byte> bytes);
  /// Throws Error(invalid_argument) where bytes are missing, Error(io) where the file cannot be
  /// synchronised or renamed.
  void commit();

 private:
  AtomicFile file_;
  std::uint64_t bytes_left_ = 0;
};

}  // namespace ropewalk
