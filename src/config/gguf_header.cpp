#include "config/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace ropewalk::config {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kF32 = 0;  // ggml's number of the tensor type
constexpr std::uint64_t kMaxFactors = 4'096;
constexpr std::uint64_t kMaxDimensions = 4;

enum class Type : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

/// Reads forwards through a buffer; every length is checked against what is left of the file.
class Cursor {
 public:
  explicit Cursor(const InputFile& file) : file_(file) {}

  [[noreturn]] void refuse(std::string_view reason) const {
    fail(ErrorCode::io, "{}: not a GGUF file that can be read: {}",
         in_quotes(file_.path().string()), reason);
  }

  void need(std::uint64_t bytes) const {
    if (bytes > file_.size() - at_) refuse("it ends within its header");
  }

  void skip(std::uint64_t bytes) {
    need(bytes);
    at_ += bytes;
  }

  void skip_elements(std::uint64_t count, std::uint64_t each) {
    if (count > file_.size() / each) refuse("an array is longer than the file");
    skip(count * each);
  }

  void bytes(std::span<std::byte> out) {
    need(out.size());
    if (at_ < start_ || at_ + out.size() > start_ + filled_) fill(out.size());
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(at_ - start_), out.size(),
                out.begin());
    at_ += out.size();
  }

  template <class T>
  T number() {
    std::array<std::byte, sizeof(T)> raw{};
    bytes(raw);
    return std::bit_cast<T>(raw);
  }

  std::string text(std::uint64_t longest) {
    const auto length = number<std::uint64_t>();
    need(length);
    if (length > longest) {
      refuse(fmt::format("a name of {} bytes is longer than {}", length, longest));
    }
    std::string result(static_cast<std::size_t>(length), '\0');
    bytes(std::as_writable_bytes(std::span(result)));
    return result;
  }

  [[nodiscard]] std::uint64_t at() const { return at_; }
  void move_to(std::uint64_t offset) { at_ = std::min(offset, file_.size()); }

 private:
  void fill(std::uint64_t least) {
    constexpr std::uint64_t kWindow = 1u << 18;
    start_ = at_;
    filled_ = std::min(std::max(least, kWindow), file_.size() - at_);
    buffer_.resize(static_cast<std::size_t>(filled_));
    file_.read(start_, buffer_);
  }

  const InputFile& file_;
  std::vector<std::byte> buffer_;
  std::uint64_t at_ = 0, start_ = 0, filled_ = 0;
};

std::uint64_t size_of(Type type, const Cursor& cursor) {
  switch (type) {
    case Type::u8:
    case Type::i8:
    case Type::boolean: return 1;
    case Type::u16:
    case Type::i16: return 2;
    case Type::u32:
    case Type::i32:
    case Type::f32: return 4;
    case Type::u64:
    case Type::i64:
    case Type::f64: return 8;
    case Type::string:
    case Type::array: break;
  }
  cursor.refuse(fmt::format("a value has the unknown type {}", static_cast<std::uint32_t>(type)));
}

json scalar(Cursor& cursor, Type type) {
  switch (type) {
    case Type::u8: return cursor.number<std::uint8_t>();
    case Type::i8: return cursor.number<std::int8_t>();
    case Type::u16: return cursor.number<std::uint16_t>();
    case Type::i16: return cursor.number<std::int16_t>();
    case Type::u32: return cursor.number<std::uint32_t>();
    case Type::i32: return cursor.number<std::int32_t>();
    case Type::f32: return static_cast<double>(cursor.number<float>());
    case Type::boolean: return cursor.number<std::uint8_t>() != 0;
    case Type::u64: return cursor.number<std::uint64_t>();
    case Type::i64: return cursor.number<std::int64_t>();
    case Type::f64: return cursor.number<double>();
    case Type::string:
    case Type::array: break;
  }
  cursor.refuse(fmt::format("a value has the unknown type {}", static_cast<std::uint32_t>(type)));
}

/// A short string, or null for one that is walked over.
json string_value(Cursor& cursor) {
  const std::uint64_t start = cursor.at();
  const auto length = cursor.number<std::uint64_t>();
  if (length > kMaxGgufKeptText) {
    cursor.skip(length);
    return nullptr;
  }
  cursor.move_to(start);
  return cursor.text(kMaxGgufKeptText);
}

json array_value(Cursor& cursor) {
  const auto type = static_cast<Type>(cursor.number<std::uint32_t>());
  const auto count = cursor.number<std::uint64_t>();
  if (type == Type::array) cursor.refuse("an array of arrays");
  if (type == Type::string) {
    cursor.need(count);  // every string has a length of eight bytes, so this bounds the loop
    for (std::uint64_t i = 0; i < count; ++i) cursor.skip(cursor.number<std::uint64_t>());
    return nullptr;
  }
  if (count > kMaxGgufKeptArray) {
    cursor.skip_elements(count, size_of(type, cursor));
    return nullptr;
  }
  json values = json::array();
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(scalar(cursor, type));
  return values;
}

void read_values(Cursor& cursor, std::uint64_t count, json& header) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = cursor.text(kMaxGgufName);
    const auto type = static_cast<Type>(cursor.number<std::uint32_t>());
    json value = type == Type::string  ? string_value(cursor)
                 : type == Type::array ? array_value(cursor)
                                       : scalar(cursor, type);
    if (header.contains(key)) cursor.refuse(fmt::format("key {} stands twice", in_quotes(key)));
    if (!value.is_null()) header.emplace(std::move(key), std::move(value));
  }
}

struct Factors {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  ///< within the data
};

bool is_rope_tensor(std::string_view name) {
  return name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
         name == "rope_factors_short.weight";
}

std::vector<Factors> find_factors(Cursor& cursor, std::uint64_t tensors) {
  std::vector<Factors> found;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const std::string name = cursor.text(kMaxGgufName);
    const auto dimensions = cursor.number<std::uint32_t>();
    if (dimensions > kMaxDimensions) cursor.refuse("a tensor has more than four dimensions");
    std::uint64_t count = 1;
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      const auto size = cursor.number<std::uint64_t>();
      count = size > kMaxFactors || count > kMaxFactors ? kMaxFactors + 1 : count * size;
    }
    const auto type = cursor.number<std::uint32_t>();
    const auto offset = cursor.number<std::uint64_t>();
    if (!is_rope_tensor(name)) continue;
    if (type != kF32 || count > kMaxFactors || dimensions != 1) {
      cursor.refuse(fmt::format("tensor {}: expected a row of at most {} F32 numbers",
                                in_quotes(name), kMaxFactors));
    }
    found.push_back({name, count, offset});
  }
  return found;
}

void read_factors(Cursor& cursor, const std::vector<Factors>& found, json& header) {
  constexpr std::uint64_t kAlignment = 32;
  const auto given = header.find("general.alignment");
  std::uint64_t alignment = kAlignment;
  if (given != header.end() && given->is_number_unsigned()) alignment = given->get<std::uint64_t>();
  if (alignment == 0 || alignment > 1u << 20) cursor.refuse("an alignment that cannot be");
  const std::uint64_t data = (cursor.at() + alignment - 1) / alignment * alignment;
  for (const Factors& factors : found) {
    cursor.move_to(data);
    cursor.skip(factors.offset);
    json values = json::array();
    for (std::uint64_t i = 0; i < factors.count; ++i) {
      values.push_back(static_cast<double>(cursor.number<float>()));
    }
    header[factors.name] = std::move(values);
  }
}

}  // namespace

bool is_gguf(const InputFile& file) {
  std::array<char, 4> start{};
  if (file.size() < start.size()) return false;
  file.read(0, std::as_writable_bytes(std::span(start)));
  return std::string_view(start.data(), start.size()) == kMagic;
}

json read_gguf_header(const InputFile& file) {
  Cursor cursor(file);
  cursor.skip(kMagic.size());
  const auto version = cursor.number<std::uint32_t>();
  if (version != 2 && version != 3) {
    cursor.refuse(fmt::format("expected little-endian version 2 or 3, got {}", version));
  }
  const auto tensors = cursor.number<std::uint64_t>();
  const auto keys = cursor.number<std::uint64_t>();
  if (keys > kMaxGgufKeys || tensors > kMaxGgufTensors) {
    cursor.refuse(fmt::format("{} keys and {} tensors are more than {} and {}", keys, tensors,
                              kMaxGgufKeys, kMaxGgufTensors));
  }
  json header = json::object();
  read_values(cursor, keys, header);
  read_factors(cursor, find_factors(cursor, tensors), header);
  return header;
}

}  // namespace ropewalk::config
