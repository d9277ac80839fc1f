// A line on standard error while work goes on.
#pragma once

#include <cstdint>
#include <string_view>

namespace ropewalk::cli {

/// On a terminal one line that is rewritten and vanishes at the end; elsewhere plain dots, at most
/// sixty, and a newline.
class Progress {
 public:
  explicit Progress(std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `done` units are finished; `what` is being worked on.
  void show(std::int64_t done, std::string_view what);

 private:
  std::int64_t total_;
  std::int64_t dots_ = 0;
  bool terminal_;
};

}  // namespace ropewalk::cli
