#include "capi/boundary.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace ropewalk::capi {
namespace {

// A fixed array: keeping a message must not fail when memory has run out.
thread_local std::array<char, 1024> message_of_thread{};

}  // namespace

void set_last_error(std::string_view message) noexcept {
  std::size_t length = std::min(message.size(), message_of_thread.size() - 1);
  // Never cut inside a UTF-8 sequence.
  while (length > 0 && length < message.size() && (message[length] & 0xc0) == 0x80) --length;
  std::copy_n(message.data(), length, message_of_thread.data());
  message_of_thread[length] = '\0';
}

const char* last_error() noexcept { return message_of_thread.data(); }

}  // namespace ropewalk::capi
