#include "base/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <system_error>

namespace ropewalk {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;  ///< UTF-8 in its shortest form, not a surrogate
};

Character first_of(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) : 0u;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  std::uint32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1, false};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const std::uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  const bool valid = lead >= 0xc2 && lead <= 0xf4 && code >= least && code <= 0x10ffff &&
                     !(code >= 0xd800 && code <= 0xdfff);
  return valid ? Character{code, bytes, true} : Character{lead, 1, false};
}

/// Obeyed rather than shown: controls, line and paragraph separators, direction marks.
bool is_command(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string shown(const Character& c, std::string_view raw) {
  if (c.valid && !is_command(c.code)) return std::string(raw.substr(0, c.bytes));
  if (c.code == '\n') return "\\n";
  if (c.code == '\r') return "\\r";
  if (c.code == '\t') return "\\t";
  return c.valid && c.bytes > 1 ? fmt::format("\\u{:04x}", c.code)
                                : fmt::format("\\x{:02x}", c.code);
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const Character c = first_of(text.substr(i));
    if (i + c.bytes > max_bytes) return result + "...";
    result += shown(c, text.substr(i));
    i += c.bytes;
  }
  return result;
}

std::string in_quotes(std::string_view text, std::size_t limit) {
  return fmt::format("'{}'", printable(text, limit));
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace ropewalk
