// The checks of the GPU program. Run by hand on a machine with a GPU: CI has none.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ropewalk::testing {

/// Collects failures; prints one line a check.
class Report {
 public:
  void check(bool ok, const std::string& what) {
    ++done_;
    if (ok) return;
    ++failed_;
    if (failed_ <= 40) fmt::print("FAILED {}\n", what);
  }
  template <class Body>
  void section(const std::string& name, Body&& body) {
    const std::int64_t done = done_;
    const std::int64_t failed = failed_;
    try {
      body();
    } catch (const std::exception& error) {
      check(false, fmt::format("{}: threw {}", name, error.what()));
    }
    fmt::print("{:<44} {:>7} checks, {} failures\n", name, done_ - done, failed_ - failed);
    std::fflush(stdout);
  }
  [[nodiscard]] bool passed() const noexcept { return failed_ == 0; }
  [[nodiscard]] std::int64_t done() const noexcept { return done_; }

 private:
  std::int64_t done_ = 0;
  std::int64_t failed_ = 0;
};

struct CheckOptions {
  std::uint64_t seed = 0;
  bool full = false;     ///< the full matrix
  bool reduced = false;  ///< few cases: for compute-sanitizer, which slows everything a hundredfold
};

void check_matrix(Report& report, const CheckOptions& options);
void check_odd_rows(Report& report, const CheckOptions& options);
void check_policies(Report& report, const CheckOptions& options);
void check_tables(Report& report, const CheckOptions& options);
void check_positions(Report& report, const CheckOptions& options);
void check_streams_and_graphs(Report& report, const CheckOptions& options);
void check_large(Report& report, const CheckOptions& options);

}  // namespace ropewalk::testing
