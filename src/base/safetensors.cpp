#include "base/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/safetensors_header.h"

namespace ropewalk {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 20> kBits = {{
    {"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},    {"BF16", 16},
    {"I32", 32},    {"U32", 32}, {"F32", 32}, {"C64", 64},    {"F64", 64},
    {"I64", 64},    {"U64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
}};

}  // namespace

int safetensors_bits(std::string_view dtype) noexcept {
  const auto* const found =
      std::ranges::find(kBits, dtype, &std::pair<std::string_view, int>::first);
  return found == kBits.end() ? 0 : found->second;
}

std::uint64_t safetensors_bytes(const SafetensorsTensor& tensor) {
  const int bits = safetensors_bits(tensor.dtype);
  require(bits != 0, "tensor {} has the unknown dtype {}", in_quotes(tensor.name),
          in_quotes(tensor.dtype));
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool empty = std::ranges::find(tensor.shape, 0) != tensor.shape.end();
  std::uint64_t total = static_cast<std::uint64_t>(bits);
  for (const std::int64_t size : tensor.shape) {
    require(size >= 0, "tensor {} has the negative size {}", in_quotes(tensor.name), size);
    if (empty) continue;
    require(total <= kLargest / static_cast<std::uint64_t>(size),
            "tensor {} has a shape of more than 2^63 - 1 bits", in_quotes(tensor.name));
    total *= static_cast<std::uint64_t>(size);
  }
  if (empty) return 0;
  require(total % 8 == 0, "tensor {} does not fill whole bytes", in_quotes(tensor.name));
  return total / 8;
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(path) {
  SafetensorsHeader header = read_safetensors_header(file_);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(tensors_, name, &SafetensorsEntry::name);
  return found == tensors_.end() ? nullptr : &*found;
}

const SafetensorsEntry& SafetensorsReader::at(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    fail(ErrorCode::io, "{} has no tensor named {}", in_quotes(path().native(), kPathBytes),
         in_quotes(name));
  }
  return *entry;
}

void SafetensorsReader::read(const SafetensorsEntry& tensor, std::uint64_t begin,
                             std::span<std::byte> buffer) const {
  require(begin <= tensor.bytes && buffer.size() <= tensor.bytes - begin,
          "bytes {} to {} of tensor {} were asked for, which has {}", begin, begin + buffer.size(),
          in_quotes(tensor.name), tensor.bytes);
  file_.read(tensor.offset + begin, buffer);
}

std::string format_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                      const SafetensorsMetadata& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::set<std::string_view> names;
  std::uint64_t begin = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    require(tensor.name != "__metadata__", "a tensor must not be named '__metadata__'");
    require(names.insert(tensor.name).second, "two tensors are named {}", in_quotes(tensor.name));
    const std::uint64_t end = begin + safetensors_bytes(tensor);
    require(end <= std::numeric_limits<std::int64_t>::max(), "the tensors exceed 2^63 - 1 bytes");
    json.push_back(
        {tensor.name,
         {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}}});
    begin = end;
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::invalid_argument, "tensor names and metadata must be valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  require(text.size() <= kMaxSafetensorsHeader, "a safetensors header of {} bytes is too long",
          text.size());
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> 8 * i & 0xff);
  return bytes + text;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::span<const SafetensorsTensor> tensors,
                                     const SafetensorsMetadata& metadata)
    : file_(path) {
  const std::string header = format_safetensors_header(tensors, metadata);
  for (const SafetensorsTensor& tensor : tensors) bytes_left_ += safetensors_bytes(tensor);
  file_.write(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  require(bytes.size() <= bytes_left_, "{} bytes were given but only {} are declared", bytes.size(),
          bytes_left_);
  file_.write(bytes);
  bytes_left_ -= bytes.size();
}

void SafetensorsWriter::commit() {
  require(bytes_left_ == 0, "{} of the declared bytes have not been written", bytes_left_);
  file_.commit();
}

}  // namespace ropewalk
