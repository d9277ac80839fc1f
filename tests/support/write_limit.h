// Makes writes fail as on a full disk, for as long as it lives.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <stdexcept>

namespace ropewalk::testing {

/// No file of this process can grow beyond `bytes`: write() then fails with EFBIG.
class WriteLimit {
 public:
  explicit WriteLimit(rlim_t bytes) : old_handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit lowered{bytes, old_.rlim_max};
    if (::setrlimit(RLIMIT_FSIZE, &lowered) != 0) throw std::runtime_error("setrlimit failed");
  }
  WriteLimit(const WriteLimit&) = delete;
  WriteLimit& operator=(const WriteLimit&) = delete;
  ~WriteLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

}  // namespace ropewalk::testing
