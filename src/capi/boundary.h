// The boundary of the C ABI: exceptions become status codes here and nowhere else.
#pragma once

#include <exception>
#include <new>
#include <string_view>

#include "ropewalk/capi.h"
#include "ropewalk/error.h"

namespace ropewalk::capi {

/// Keeps the message for ropewalk_last_error of this thread. Allocates nothing.
void set_last_error(std::string_view message) noexcept;
[[nodiscard]] const char* last_error() noexcept;

/// Runs `body` and turns whatever it throws into a status.
template <class Body>
[[nodiscard]] ropewalk_status guarded(Body&& body) noexcept {
  try {
    body();
    return ROPEWALK_OK;
  } catch (const Error& error) {
    set_last_error(error.what());
    return static_cast<ropewalk_status>(error.code());
  } catch (const std::bad_alloc&) {
    set_last_error("there is not enough memory");
    return ROPEWALK_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return ROPEWALK_INTERNAL;
  } catch (...) {
    set_last_error("an unknown exception was thrown");
    return ROPEWALK_INTERNAL;
  }
}

}  // namespace ropewalk::capi
