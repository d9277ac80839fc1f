#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ropewalk::cli {
namespace {

constexpr std::int64_t kDots = 60;

}  // namespace

Progress::Progress(std::int64_t total)
    : total_(std::max<std::int64_t>(1, total)), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (terminal_) {
    std::fputs("\r\033[K", stderr);
  } else if (dots_ > 0) {
    std::fputc('\n', stderr);
  }
  std::fflush(stderr);
}

void Progress::show(std::int64_t done, std::string_view what) {
  if (terminal_) {
    fmt::print(stderr, "\r[{}/{}] {:.60}\033[K", done, total_, what);
  } else {
    const std::int64_t wanted = std::min(kDots, total_) * done / total_;
    for (; dots_ < wanted; ++dots_) std::fputc('.', stderr);
  }
  std::fflush(stderr);
}

}  // namespace ropewalk::cli
