// The axes of `ropewalk bench` and the cases they span.
#pragma once

#include <string>
#include <vector>

#include "measure/workload.h"

namespace ropewalk::cli {

/// Every list is one axis; the cases are their product.
struct BenchAxes {
  std::vector<std::int64_t> tokens{1, 256, 4096};
  std::vector<std::int64_t> heads{32};
  std::vector<std::int64_t> key_heads{8};
  std::vector<std::int64_t> head_dim{128};
  std::int64_t rotary_dim = 0;  ///< 0: head_dim
  std::int64_t batch = 1;
  std::vector<std::string> dtypes{"bfloat16"};
  std::vector<std::string> layouts{"bthd"};
  std::vector<std::string> pairings{"half"};
  std::vector<std::string> directions{"forward"};
  bool in_place = false;
  bool out_of_place = false;  ///< neither: both
  std::vector<int> threads{0};
  std::vector<std::string> kernels{""};  ///< "": the best
  std::string device = "cpu";
  bool warm = false;          ///< on a GPU: data in its L2 cache
  std::int64_t start = 4096;  ///< position 0 would be the identity, which proves nothing
};

/// Throws Error(invalid_argument) naming the option of a value that is none.
[[nodiscard]] std::vector<measure::Case> cases_of(const BenchAxes& axes);

/// The command line that measures this one case again.
[[nodiscard]] std::string command_of(const measure::Case& c, const BenchAxes& axes);

}  // namespace ropewalk::cli
