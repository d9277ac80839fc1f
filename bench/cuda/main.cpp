// cuda_bench --out FILE [--filter TEXT]… [--policies | --policy TEXT] [--rounds N] [--profile]
// Rotations beside the floors of the same run, verified before they are timed. One JSON row a case.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <optional>

#include "bench/cuda/cases.h"
#include "bench/cuda/profile.h"
#include "bench/cuda/run_case.h"
#include "bench/cuda/triple.h"
#include "measure/machine.h"
#include "verify/cuda/device_values.h"

namespace ropewalk::bench {
namespace {

using Json = nlohmann::ordered_json;
using verify::must;

constexpr const char* kUsage =
    "usage: cuda_bench --out FILE [--filter TEXT]... [--policies | --policy TEXT...] [--rounds N]\n"
    "       cuda_bench --out FILE [--filter TEXT]... --profile\n"
    "\n"
    "Rotates on the first GPU beside copies of the same bytes; every case is verified first.\n"
    "  --out FILE     the rows, one JSON object a line; with --profile the launches, a line each\n"
    "  --filter TEXT  only cases whose name contains TEXT, or ends in it where TEXT ends in $\n"
    "                 (several: any of them)\n"
    "  --policies     time every launch policy that can take a case\n"
    "  --policy TEXT  the same, only policies whose name contains TEXT (several: any)\n"
    "  --rounds N     rounds of measurement (default 5)\n"
    "  --profile      one launch a case between cudaProfilerStart and cudaProfilerStop, for\n"
    "                 ncu --profile-from-start off; nothing is timed\n";

struct Arguments {
  std::string out;
  std::vector<std::string> filters;
  RunOptions run;
  bool profile = false;
};

constexpr std::int64_t kPoolBytes = std::int64_t{2700} << 20;
// Two sets of the largest case that a profile is worth: a profiler saves and restores memory.
constexpr std::int64_t kProfilePoolBytes = std::int64_t{1400} << 20;

Json machine_row(const Arguments& arguments, const std::string& command) {
  int driver = 0;
  int runtime = 0;
  must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  must(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const cuda::DeviceInfo device = cuda::devices().at(0);
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {{"gpu", device.name},
          {"compute_capability", device.compute_capability},
          {"multiprocessors", device.multiprocessors},
          {"l2_bytes", device.l2_bytes},
          {"cuda_driver", driver},
          {"cuda_runtime", runtime},
          {"date", date},
          {"ropewalk", measure::machine().version},
          {"commit", measure::machine().commit},
          {"command", command},
          {"rounds", arguments.run.rounds}};
}

/// A filter that ends in $ must be the end of the name.
bool wanted(const Case& c, const std::vector<std::string>& filters) {
  return filters.empty() || std::ranges::any_of(filters, [&](const std::string& f) {
           return f.ends_with('$') ? c.name.ends_with(f.substr(0, f.size() - 1))
                                   : c.name.find(f) != std::string::npos;
         });
}

int run(const Arguments& arguments, const std::string& command) {
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    fmt::print(stderr, "cuda_bench: {}\n", why);
    return 1;
  }
  std::ofstream file(arguments.out);
  if (!file) {
    fmt::print(stderr, "cuda_bench: --out: {} cannot be written\n", arguments.out);
    return 1;
  }
  const Pools pools(arguments.profile ? kProfilePoolBytes : kPoolBytes);
  measure::ChainTimer timer;
  const std::int64_t l2 = cuda::devices().at(0).l2_bytes;
  if (!arguments.profile) {
    file << Json{{"machine", machine_row(arguments, command)}}.dump() << "\n";
    fmt::print("{:<78} {:<22} {:>9} {:>9} time/floor\n", "case", "policy", "us", "floor us");
  }
  std::optional<Dtype> filled;
  bool ok = true;
  for (const Case& c : all_cases()) {
    if (!wanted(c, arguments.filters)) continue;
    if (filled != c.dtype) {
      const auto elements = static_cast<std::int64_t>(pools.in.size() / size_of(c.dtype));
      verify::fill_normal(pools.in.data(), elements, c.dtype, 1, timer.stream());
      must(cudaStreamSynchronize(timer.stream()), "filling device memory");
      filled = c.dtype;
    }
    try {
      if (arguments.profile) {
        for (const std::string& line : profile_case(c, pools, l2)) file << line << "\n";
      } else if (c.triple) {
        file << run_triple(c, pools, l2, timer, arguments.run.rounds).dump() << "\n";
      } else {
        file << run_case(c, pools, l2, timer, arguments.run).dump() << "\n";
      }
    } catch (const std::exception& error) {
      fmt::print("FAILED {}: {}\n", c.name, error.what());
      ok = false;
    }
  }
  return ok ? 0 : 1;
}

/// Empty where the command line is none. `command` becomes what reproduces the run.
std::optional<Arguments> parse(int argc, char** argv, std::string& command) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--policies" || argument == "--profile") {
      if (argument == "--profile") arguments.profile = true;
      if (argument == "--policies") arguments.run.policies.emplace_back();
      command += fmt::format(" {}", argument);
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const std::string_view value = argv[++i];
    if (argument == "--out") {
      arguments.out = value;  // where the file lies is nobody's business
      continue;
    }
    command += fmt::format(" {} '{}'", argument, value);
    if (argument == "--filter") {
      arguments.filters.emplace_back(value);
    } else if (argument == "--policy") {
      arguments.run.policies.emplace_back(value);
    } else if (argument == "--rounds") {
      const char* end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, arguments.run.rounds);
      if (read.ptr != end || arguments.run.rounds < 1) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    fmt::print("{}", ropewalk::bench::kUsage);
    return 0;
  }
  std::string command = "cuda_bench";
  const auto arguments = ropewalk::bench::parse(argc, argv, command);
  if (!arguments || arguments->out.empty()) {
    fmt::print(stderr, "{}", ropewalk::bench::kUsage);
    return 2;
  }
  try {
    return ropewalk::bench::run(*arguments, command);
  } catch (const std::exception& error) {
    fmt::print(stderr, "cuda_bench: {}\n", error.what());
    return 1;
  }
}
