// Text from outside, made fit to be shown: in messages and on terminals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ropewalk {

/// `text` without anything that a terminal obeys instead of showing it. Control characters (C0,
/// DEL, C1), line separators, marks that change the direction of writing and bytes that are not
/// UTF-8 become escapes such as \n, \x1b or \u202e; everything else stays, backslashes too. At most
/// `max_bytes` of it are kept, whole characters; "..." stands for the rest.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_bytes = 1000);

/// Bytes of a path that a message shows: its end says which file it was.
inline constexpr std::size_t kPathBytes = 512;

/// printable() of at most `limit` bytes in single quotes: a name from a file, for a message.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t limit = 80);

/// The integer that the whole text spells; empty where it is none.
[[nodiscard]] std::optional<std::int64_t> integer_of(std::string_view text);

}  // namespace ropewalk
