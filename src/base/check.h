// Checks of user input. They stay on in release builds.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "ropewalk/error.h"

namespace ropewalk {

/// Throws Error with the formatted sentence, made printable: what it quotes may come from a file.
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, printable(fmt::format(format, std::forward<Args>(args)...)));
}

/// Throws Error(invalid_argument) with the formatted sentence unless `condition` holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(ErrorCode::invalid_argument, format, std::forward<Args>(args)...);
}

}  // namespace ropewalk
