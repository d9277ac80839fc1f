// How the C functions for the Python package answer: a status, and a text that is fetched after it.
#pragma once

#include <exception>
#include <string>

#include "ropewalk/error.h"

namespace ropewalk::python {

/// The text of the last call on this thread: the answer, or the message of the failure.
inline std::string& result() {
  thread_local std::string text;
  return text;
}

/// Runs make() and keeps its text; returns 0 or the error's code, the text then being the message.
template <class Make>
int keep(Make&& make) noexcept {
  try {
    result() = make();
    return 0;
  } catch (const Error& error) {
    result() = error.what();
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    result() = error.what();
    return -1;
  }
}

}  // namespace ropewalk::python
