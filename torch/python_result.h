// How the C functions for the Python package answer: a status, and a text that is fetched after it.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "ropewalk/error.h"

namespace ropewalk::python {

/// The text of the last call on this thread: the answer, or the message of the failure.
inline std::string& result() {
  thread_local std::string text;
  return text;
}

inline constexpr int kOutOfMemory = 100;  ///< beside the codes of ErrorCode

/// Runs make() and keeps its text; returns 0 or the error's code, the text then being the message.
template <class Make>
int keep(Make&& make) noexcept {
  try {
    result() = make();
    return 0;
  } catch (const Error& error) {
    result() = error.what();
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    result() = "memory: not enough for the sizes asked for";
    return kOutOfMemory;
  } catch (const std::exception& error) {
    result() = error.what();
    return -1;
  }
}

}  // namespace ropewalk::python
