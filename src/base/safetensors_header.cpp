#include "base/safetensors_header.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/check.h"

namespace ropewalk {
namespace {

/// The bytes of the header as an input iterator: a block at a time, so that a header of any length
/// costs one block of memory.
class HeaderBytes {
 public:
  HeaderBytes(const InputFile& file, std::uint64_t begin, std::uint64_t end)
      : file_(file), next_(begin), end_(end) {}

  [[nodiscard]] bool at_end() const noexcept { return used_ == filled_ && next_ == end_; }
  [[nodiscard]] char current() {
    if (used_ == filled_) fill();
    return block_[used_];
  }
  void advance() {
    // The parser would take a zero byte for the end of its input.
    if (current() == '\0') {
      fail(ErrorCode::io, "cannot read {}: its header has a zero byte",
           in_quotes(file_.path().native(), kPathBytes));
    }
    ++used_;
    if (++since_value_ > kMaxSafetensorsToken) {
      fail(ErrorCode::io, "cannot read {}: its header has a text or a gap of more than {} bytes",
           in_quotes(file_.path().native(), kPathBytes), kMaxSafetensorsToken);
    }
  }
  void value_seen() noexcept { since_value_ = 0; }

 private:
  void fill() {
    filled_ = static_cast<std::size_t>(std::min<std::uint64_t>(block_.size(), end_ - next_));
    file_.read(next_, std::as_writable_bytes(std::span(block_.data(), filled_)));
    next_ += filled_;
    used_ = 0;
  }

  const InputFile& file_;
  std::uint64_t next_;
  std::uint64_t end_;
  std::array<char, 65536> block_;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  std::size_t since_value_ = 0;
};

/// What the parser wants: a copyable input iterator over the one HeaderBytes; the default one is
/// the end.
class HeaderIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit HeaderIterator(HeaderBytes* bytes = nullptr) noexcept : bytes_(bytes) {}
  char operator*() const { return bytes_->current(); }
  HeaderIterator& operator++() {
    bytes_->advance();
    return *this;
  }
  bool operator==(const HeaderIterator& other) const noexcept { return at_end() == other.at_end(); }

 private:
  [[nodiscard]] bool at_end() const noexcept { return bytes_ == nullptr || bytes_->at_end(); }
  HeaderBytes* bytes_;
};

/// Follows the parser's events. Only what the format allows at each place is accepted, so neither
/// depth nor memory depends on the file; no document is built.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderHandler(const InputFile& file, HeaderBytes& bytes) : file_(file), bytes_(bytes) {}

  bool start_object(std::size_t) override {
    bytes_.value_seen();
    switch (place_) {
      case Place::document: place_ = Place::top; return true;
      case Place::tensor_value:
        current_ = {};
        current_.name = key_;
        has_offsets_ = has_shape_ = false;
        place_ = Place::tensor;
        return true;
      case Place::metadata_value: place_ = Place::metadata; return true;
      default: unexpected("an object");
    }
  }

  bool key(std::string& text) override {
    bytes_.value_seen();
    count_text(text.size());
    key_ = text;
    if (place_ == Place::top) {
      if (!names_.insert(text).second) refuse("{} appears twice in its header", in_quotes(text));
      place_ = text == "__metadata__" ? Place::metadata_value : Place::tensor_value;
    } else if (place_ == Place::metadata) {
      if (header_.metadata.contains(text)) refuse("metadata {} appears twice", in_quotes(text));
      place_ = Place::metadata_text;
    } else {
      start_field(text);
    }
    return true;
  }

  bool end_object() override {
    bytes_.value_seen();
    if (place_ == Place::tensor) {
      end_tensor();
      place_ = Place::top;
    } else {
      place_ = place_ == Place::metadata ? Place::top : Place::done;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    bytes_.value_seen();
    if (place_ == Place::shape) {
      place_ = Place::shape_items;
    } else if (place_ == Place::offsets) {
      place_ = Place::offset_items;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    bytes_.value_seen();
    place_ = Place::tensor;
    return true;
  }

  bool string(std::string& text) override {
    bytes_.value_seen();
    count_text(text.size());
    if (place_ == Place::dtype) {
      current_.dtype = text;
      place_ = Place::tensor;
    } else if (place_ == Place::metadata_text) {
      header_.metadata.emplace(key_, text);
      place_ = Place::metadata;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    bytes_.value_seen();
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value > kLargest) refuse("tensor {} has a number above 2^63 - 1", in_quotes(current_.name));
    if (place_ == Place::shape_items && current_.shape.size() < kMaxSafetensorsRank) {
      text_ += sizeof(value);
      current_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::offset_items && offsets_given_ < 2) {
      offsets_[offsets_given_++] = value;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(std::int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a number with a fraction"); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    refuse("its header is not valid JSON at byte {} of it", position);
  }

  [[nodiscard]] SafetensorsHeader take() { return std::move(header_); }

 private:
  enum class Place {
    document,
    top,
    metadata_value,
    metadata,
    metadata_text,
    tensor_value,
    tensor,
    dtype,
    shape,
    shape_items,
    offsets,
    offset_items,
    done
  };

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> reason, Args&&... args) const {
    fail(ErrorCode::io, "cannot read {}: {}", in_quotes(file_.path().native(), kPathBytes),
         fmt::format(reason, std::forward<Args>(args)...));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    refuse("its header has {} where the safetensors format has none, after {}", what,
           in_quotes(key_));
  }

  void count_text(std::size_t bytes) {
    text_ += bytes;
    entries_ += 1;
    // A tensor is a name, three fields and a dtype; metadata a key and a value.
    if (text_ > kMaxSafetensorsText || entries_ > 5 * kMaxSafetensorsTensors) {
      refuse("its header has more than {} bytes of text or {} tensors", kMaxSafetensorsText,
             kMaxSafetensorsTensors);
    }
  }

  void start_field(const std::string& field) {
    if (field == "dtype" && current_.dtype.empty()) {
      place_ = Place::dtype;
    } else if (field == "shape" && !has_shape_) {
      has_shape_ = true;
      place_ = Place::shape;
    } else if (field == "data_offsets" && !has_offsets_) {
      has_offsets_ = true;
      offsets_given_ = 0;
      place_ = Place::offsets;
    } else {
      refuse("tensor {} has an unknown or repeated key {}", in_quotes(current_.name),
             in_quotes(field));
    }
  }

  void end_tensor() {
    if (current_.dtype.empty() || !has_shape_ || !has_offsets_ || offsets_given_ != 2) {
      refuse("tensor {} lacks a dtype, a shape or two data_offsets", in_quotes(current_.name));
    }
    std::uint64_t bytes = 0;
    try {
      bytes = safetensors_bytes(current_);
    } catch (const Error& error) {
      refuse("{}", error.what());
    }
    if (offsets_[1] < offsets_[0] || offsets_[1] - offsets_[0] != bytes) {
      refuse("tensor {} has data_offsets [{}, {}] but its shape needs {} bytes",
             in_quotes(current_.name), offsets_[0], offsets_[1], bytes);
    }
    current_.offset = offsets_[0];
    current_.bytes = bytes;
    header_.tensors.push_back(std::move(current_));
  }

  const InputFile& file_;
  HeaderBytes& bytes_;
  SafetensorsHeader header_;
  std::set<std::string> names_;
  Place place_ = Place::document;
  std::string key_;
  SafetensorsEntry current_;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offsets_given_ = 0;
  std::size_t text_ = 0;
  std::size_t entries_ = 0;
};

/// Makes offsets absolute and checks that the tensors fill the data exactly, in some order.
void place_tensors(const InputFile& file, std::uint64_t data_begin, SafetensorsHeader& header) {
  std::ranges::sort(header.tensors, {}, [](const SafetensorsEntry& tensor) {
    return std::pair(tensor.offset, tensor.bytes);
  });
  std::uint64_t end = 0;
  for (SafetensorsEntry& tensor : header.tensors) {
    if (tensor.offset != end) {
      fail(ErrorCode::io,
           "cannot read {}: tensor {} begins at byte {} of the data, {} was expected",
           in_quotes(file.path().native(), kPathBytes), in_quotes(tensor.name), tensor.offset, end);
    }
    end += tensor.bytes;
    tensor.offset += data_begin;
  }
  if (end != file.size() - data_begin) {
    fail(ErrorCode::io, "cannot read {}: its tensors need {} bytes of data but it has {}",
         in_quotes(file.path().native(), kPathBytes), end, file.size() - data_begin);
  }
}

}  // namespace

SafetensorsHeader read_safetensors_header(const InputFile& file) {
  std::array<std::byte, 9> start{};
  if (file.size() < 10) {
    fail(ErrorCode::io, "cannot read {}: {} bytes are too few for a safetensors file",
         in_quotes(file.path().native(), kPathBytes), file.size());
  }
  file.read(0, start);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(start[i]) << 8 * i;
  if (length > kMaxSafetensorsHeader || length > file.size() - 8 || start[8] != std::byte{'{'}) {
    fail(ErrorCode::io,
         "cannot read {}: it is not a safetensors file, or was cut within its header",
         in_quotes(file.path().native(), kPathBytes));
  }
  HeaderBytes bytes(file, 8, 8 + length);
  HeaderHandler handler(file, bytes);
  nlohmann::json::sax_parse(HeaderIterator(&bytes), HeaderIterator(), &handler);
  SafetensorsHeader header = handler.take();
  place_tensors(file, 8 + length, header);
  return header;
}

}  // namespace ropewalk
