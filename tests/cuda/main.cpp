// cuda_checks [--full | --reduced] [--seed N]: every promise of ropewalk/cuda.h on this machine.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "ropewalk/cuda.h"
#include "tests/cuda/checks.h"
#include "verify/random.h"

int main(int argc, char** argv) {
  using namespace ropewalk;
  testing::CheckOptions options;
  options.seed = verify::fresh_seed();
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--full") {
      options.full = true;
    } else if (argument == "--reduced") {
      options.reduced = true;
    } else if (argument == "--seed" && i + 1 < argc) {
      const std::string_view number = argv[++i];
      std::from_chars(number.data(), number.data() + number.size(), options.seed);
    } else {
      fmt::print(stderr, "usage: cuda_checks [--full | --reduced] [--seed N]\n");
      return 2;
    }
  }
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    fmt::print(stderr, "{}\n", why);
    return 1;
  }
  fmt::print("{}, seed {}\n", cuda::devices().front().name, options.seed);
  testing::Report report;
  testing::check_odd_rows(report, options);
  testing::check_policies(report, options);
  testing::check_tables(report, options);
  testing::check_positions(report, options);
  testing::check_streams_and_graphs(report, options);
  testing::check_matrix(report, options);
  if (!options.reduced) testing::check_large(report, options);
  fmt::print("{} checks: {}\n", report.done(), report.passed() ? "all passed" : "FAILED");
  return report.passed() ? 0 : 1;
}
