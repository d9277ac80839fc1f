
// The one exception type of Ropewalk.
#pragma once

#include <stdexcept>
#include <string>

#include "ropewalk/export.h"

namespace ropewalk {

/// What kind of thing went wrong; the C ABI returns it as a status code.
enum class ErrorCode : int {
  invalid_argument = 1,  ///< an argument, a shape, a dtype, a stride or an option
  invalid_config = 2,    ///< a model configuration: unknown, missing, unread or impossible key
  bad_position = 3,      ///< a position outside the valid range or outside a table
  io = 4,                ///< a file that cannot be read, written or trusted
  unsupported = 5,       ///< valid, but not available in this build or on this machine
  cuda = 6,              ///< a CUDA call or a launch failed
};

/// Thrown by every function of the C++ API that refuses its input. `what()` is one sentence that
/// names the argument (or the config key), what was expected, and what came. Nothing has been
/// written when it is thrown.
class ROPEWALK_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace ropewalk
