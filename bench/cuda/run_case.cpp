#include "bench/cuda/run_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <stdexcept>

#include "measure/cuda/sets.h"
#include "ropewalk/error.h"

namespace ropewalk::bench {
namespace {

using Json = nlohmann::ordered_json;
using measure::Candidate;
using measure::Sample;

constexpr std::string_view kPolicyPrefix = "policy ";

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

/// Policies that can take the case, beside the chosen one.
std::vector<std::string> possible_policies(const Workload& work, const Case& c,
                                           std::span<const std::string> parts) {
  std::vector<std::string> possible;
  for (const std::string& name : cuda::policy_names()) {
    if (std::ranges::none_of(
            parts, [&](const std::string& part) { return name.find(part) != std::string::npos; })) {
      continue;
    }
    try {
      (void)cuda::policy_for(
          work.plan(), work.rotations(0), work.positions(0),
          {.direction = c.direction, .programmatic = c.programmatic, .policy = name});
      possible.push_back(name);
    } catch (const Error&) {
      continue;
    }
  }
  return possible;
}

void require_right(const Workload& work, const Case& c, cudaStream_t stream,
                   std::string_view policy) {
  const std::string wrong = work.verify(stream, policy);
  if (wrong.empty()) return;
  throw std::runtime_error(fmt::format("{} {}: {}", c.name, policy, wrong));
}

Json policies_of(const std::vector<Sample>& samples) {
  Json policies = Json::object();
  for (const Sample& s : samples) {
    if (s.name.starts_with(kPolicyPrefix)) {
      policies[s.name.substr(kPolicyPrefix.size())] = s.median();
    }
  }
  return policies;
}

}  // namespace

std::string policy_of(const Workload& work, const Case& c) {
  return cuda::policy_for(work.plan(), work.rotations(0), work.positions(0),
                          {.direction = c.direction, .programmatic = c.programmatic});
}

Json run_case(const Case& c, const Pools& pools, std::int64_t l2_bytes, measure::ChainTimer& timer,
              const RunOptions& options) {
  const Workload work(c, pools, l2_bytes);
  const std::string policy = policy_of(work, c);
  require_right(work, c, timer.stream(), {});
  std::vector<Candidate> candidates{
      {"rotate", [&work](int node, cudaStream_t s) { work.rotate(node, s); }}};
  for (Candidate& floor :
       measure::floor_candidates(work.memory(), work.copy_bytes(), c.in_place, c.programmatic)) {
    candidates.push_back(std::move(floor));
  }
  if (!options.policies.empty()) {
    for (const std::string& name : possible_policies(work, c, options.policies)) {
      require_right(work, c, timer.stream(), name);
      candidates.push_back(
          {std::string(kPolicyPrefix) + name,
           [&work, name](int node, cudaStream_t s) { work.rotate(node, s, name); }});
    }
  }
  const std::int64_t bytes = necessary_bytes(c);
  const measure::ChainOptions chain{
      .nodes = measure::nodes_of_chain(bytes), .rounds = options.rounds, .cold = !c.warm};
  const std::vector<Sample> samples = timer.time(candidates, chain);
  const Sample& rotation = samples.front();
  const Sample& floor = *measure::fastest_floor(samples);
  const Sample* memcpy = measure::sample_named(samples, "memcpy");
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
           {"sets", work.memory().count},
           {"nodes", chain.nodes},
           {"us", rotation.median()},
           {"us_p10", rotation.quantile(0.1)},
           {"us_p90", rotation.quantile(0.9)},
           {"floor", floor.name},
           {"floor_us", floor.median()},
           {"memcpy_us", memcpy == nullptr ? 0.0 : memcpy->median()},
           {"empty_us", measure::sample_named(samples, measure::kEmpty)->median()},
           {"time_to_floor", rotation.median() / floor.median()},
           {"gb_per_s", static_cast<double>(bytes) / rotation.median() * 1e-3},
           {"verified", true}};
  std::string best;
  if (const Json policies = policies_of(samples); !policies.empty()) {
    row["policies"] = policies;
    const auto fastest =
        std::min_element(policies.begin(), policies.end(), [](const auto& a, const auto& b) {
          return a.template get<double>() < b.template get<double>();
        });
    best = fmt::format("  best {} {:.3f}", fastest.key(), fastest->get<double>() / floor.median());
  }
  fmt::print("{:<78} {:<22} {:>9.3f} {:>9.3f} {:.3f}{}\n", c.name, policy, rotation.median(),
             floor.median(), rotation.median() / floor.median(), best);
  std::fflush(stdout);
  return row;
}

}  // namespace ropewalk::bench
