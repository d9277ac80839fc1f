// cuda_bench --out FILE [--filter TEXT]… [--policies] [--rounds N]
// Rotations beside the floors of the same run, verified before they are timed. One JSON row a case.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/cuda/cases.h"
#include "bench/cuda/chain.h"
#include "bench/cuda/floors.h"
#include "measure/machine.h"
#include "ropewalk/error.h"

namespace ropewalk::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string out;
  std::vector<std::string> filters;
  bool policies = false;  ///< every policy that can take a case
  int rounds = 5;
};

constexpr std::int64_t kPoolBytes = std::int64_t{2700} << 20;

int fill_kind(Dtype dtype) {
  switch (dtype) {
    case Dtype::bfloat16: return 0;
    case Dtype::float16: return 1;
    case Dtype::float32: return 2;
    case Dtype::float64: return 3;
  }
  return 0;
}

/// About two milliseconds a chain, at most 400 launches.
int nodes_of(const Case& c) {
  const double microseconds = 1.0 + static_cast<double>(necessary_bytes(c)) / 4.2e6;
  return std::clamp(static_cast<int>(2000.0 / microseconds), 3, 400);
}

std::string_view name_of_where(Where where) {
  switch (where) {
    case Where::offset: return "offset";
    case Where::tokens64: return "int64 per token";
    case Where::tokens32: return "int32 per token";
    case Where::batch_offsets: return "int64 per batch row";
    case Where::packed: return "cu_seqlens";
    case Where::axes3: return "int64 per token, three axes";
  }
  return "?";
}

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
          {"rounds", arguments.rounds}};
}

/// Policies that can take the case, beside the chosen one.
std::vector<std::string> possible_policies(const Workload& work, const Case& c) {
  std::vector<std::string> possible;
  for (const std::string& name : cuda::policy_names()) {
    try {
      (void)cuda::policy_for(work.plan(), work.rotations(0), work.positions(0),
                             {.direction = c.direction, .policy = name});
      possible.push_back(name);
    } catch (const Error&) {
      continue;
    }
  }
  return possible;
}

std::vector<Candidate> candidates_of(const Workload& work, const Case& c, bool policies) {
  std::vector<Candidate> candidates;
  candidates.push_back({"rotate", [&work](int node, cudaStream_t s) { work.rotate(node, s); }});
  for (const FloorKernel& floor : floor_kernels()) {
    if (floor.in_place != c.in_place) continue;
    candidates.push_back({std::string(floor.name), [&work, &floor, &c](int node, cudaStream_t s) {
                            launch_floor(floor, work.in(node),
                                         c.in_place ? work.in(node) : work.out(node),
                                         work.copy_bytes(), s, c.programmatic);
                          }});
  }
  if (policies) {
    for (const std::string& name : possible_policies(work, c)) {
      candidates.push_back({"policy " + name, [&work, name](int node, cudaStream_t s) {
                              work.rotate(node, s, name);
                            }});
    }
  }
  return candidates;
}

Json run_case(const Case& c, const Pools& pools, std::int64_t l2, ChainTimer& timer,
              const Arguments& arguments) {
  const Workload work(c, pools, l2);
  const std::string policy = cuda::policy_for(work.plan(), work.rotations(0), work.positions(0),
                                              {.direction = c.direction});
  if (const std::string wrong = work.verify(timer.stream(), {}); !wrong.empty()) {
    throw std::runtime_error(fmt::format("{}: {}", c.name, wrong));
  }
  const ChainOptions options{.nodes = nodes_of(c), .rounds = arguments.rounds, .cold = !c.warm};
  const auto samples = timer.time(candidates_of(work, c, arguments.policies), options);
  const Sample& rotation = samples.front();
  const Sample* floor = nullptr;
  double memcpy_us = 0;
  Json policies = Json::object();
  for (const Sample& s : samples) {
    if (&s == &rotation) continue;
    if (s.name.starts_with("policy ")) {
      policies[s.name.substr(7)] = s.median;
      continue;
    }
    if (s.name == "memcpy") memcpy_us = s.median;
    if (floor == nullptr || s.median < floor->median) floor = &s;
  }
  const auto bytes = necessary_bytes(c);
  Json row{{"case", c.name},
           {"dtype", name_of(c.dtype)},
           {"pairing", name_of(c.pairing)},
           {"direction", name_of(c.direction)},
           {"in_place", c.in_place},
           {"positions", name_of_where(c.where)},
           {"tokens", c.batch * c.tokens},
           {"warm", c.warm},
           {"programmatic", c.programmatic},
           {"policy", policy},
           {"bytes", bytes},
           {"sets", work.sets()},
           {"nodes", options.nodes},
           {"us", rotation.median},
           {"us_p10", rotation.p10},
           {"us_p90", rotation.p90},
           {"floor", floor->name},
           {"floor_us", floor->median},
           {"memcpy_us", memcpy_us},
           {"time_to_floor", rotation.median / floor->median},
           {"gb_per_s", static_cast<double>(bytes) / rotation.median * 1e-3},
           {"verified", true}};
  std::string best;
  if (!policies.empty()) {
    row["policies"] = policies;
    const auto fastest =
        std::min_element(policies.begin(), policies.end(), [](const auto& a, const auto& b) {
          return a.template get<double>() < b.template get<double>();
        });
    best = fmt::format("  best {} {:.3f}", fastest.key(), fastest->get<double>() / floor->median);
  }
  fmt::print("{:<78} {:<22} {:>9.3f} {:>9.3f} {:.3f}{}\n", c.name, policy, rotation.median,
             floor->median, rotation.median / floor->median, best);
  std::fflush(stdout);
  return row;
}

bool wanted(const Case& c, const std::vector<std::string>& filters) {
  return filters.empty() || std::ranges::any_of(filters, [&](const std::string& f) {
           return c.name.find(f) != std::string::npos;
         });
}

int run(const Arguments& arguments, const std::string& command) {
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    fmt::print(stderr, "{}\n", why);
    return 1;
  }
  std::ofstream file(arguments.out);
  file << Json{{"machine", machine_row(arguments, command)}}.dump() << "\n";
  const Pools pools(kPoolBytes);
  ChainTimer timer;
  const std::int64_t l2 = cuda::devices().at(0).l2_bytes;
  fmt::print("{:<78} {:<22} {:>9} {:>9} time/floor\n", "case", "policy", "us", "floor us");
  std::optional<Dtype> filled;
  bool ok = true;
  for (const Case& c : all_cases()) {
    if (!wanted(c, arguments.filters)) continue;
    if (filled != c.dtype) {
      launch_fill(pools.in.data(), kPoolBytes / static_cast<std::int64_t>(size_of(c.dtype)),
                  fill_kind(c.dtype), 1, timer.stream());
      filled = c.dtype;
    }
    try {
      file << run_case(c, pools, l2, timer, arguments).dump() << "\n";
    } catch (const std::exception& error) {
      fmt::print("FAILED {}: {}\n", c.name, error.what());
      ok = false;
    }
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace ropewalk::bench

int main(int argc, char** argv) {
  ropewalk::bench::Arguments arguments;
  std::string command = "cuda_bench";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--out" && !value.empty()) {
      arguments.out = value;
      ++i;
      continue;  // where the file lies is nobody's business
    }
    command += fmt::format(" {}", argument);
    if (argument == "--policies") {
      arguments.policies = true;
      continue;
    }
    command += fmt::format(" '{}'", value);
    ++i;
    if (argument == "--filter" && !value.empty()) {
      arguments.filters.emplace_back(value);
    } else if (argument == "--rounds" && !value.empty()) {
      std::from_chars(value.data(), value.data() + value.size(), arguments.rounds);
    } else {
      fmt::print(stderr,
                 "usage: cuda_bench --out FILE [--filter TEXT]... [--policies] [--rounds N]\n");
      return 2;
    }
  }
  if (arguments.out.empty()) {
    fmt::print(stderr, "cuda_bench: expected --out FILE\n");
    return 2;
  }
  try {
    return ropewalk::bench::run(arguments, command);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
