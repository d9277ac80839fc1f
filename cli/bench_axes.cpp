#include "cli/bench_axes.h"

#include <fmt/format.h>

#include "base/check.h"
#include "cli/common.h"

namespace ropewalk::cli {
namespace {

/// Errors of the library name its own argument; here they name the option.
template <class Make>
auto named(const char* option, Make&& make) {
  try {
    return make();
  } catch (const Error& error) {
    fail_naming(option, error);
  }
}

measure::Layout layout_from_name(const std::string& name) {
  require(name == "bthd" || name == "bhtd" || name == "thd",
          "--layout: expected bthd, bhtd or thd, got \"{}\"", name);
  return name == "bhtd" ? measure::Layout::bhtd : measure::Layout::bthd;
}

Direction direction_from_name(const std::string& name) {
  require(name == "forward" || name == "inverse",
          "--direction: expected forward or inverse, got \"{}\"", name);
  return name == "inverse" ? Direction::inverse : Direction::forward;
}

/// Replaces each case by one for each value of an axis.
template <class Values, class Set>
void multiply(std::vector<measure::Case>& cases, const Values& values, const Set& set) {
  std::vector<measure::Case> product;
  product.reserve(cases.size() * values.size());
  for (const measure::Case& c : cases) {
    for (const auto& value : values) {
      product.push_back(c);
      set(product.back(), value);
    }
  }
  cases = std::move(product);
}

std::vector<measure::Case> plans_of(const BenchAxes& axes) {
  std::vector<measure::Case> cases;
  for (const std::int64_t head_dim : axes.head_dim) {
    for (const std::string& name : axes.pairings) {
      const Pairing pairing = named("--pairing", [&] { return pairing_from_name(name); });
      cases.push_back({named("--head-dim, --rotary-dim", [&] {
        return make_plan(head_dim, 10000.0, axes.rotary_dim, pairing);
      })});
    }
  }
  return cases;
}

/// The product of the sizes must be one that addresses can count.
void check_sizes(const measure::Case& c) {
  constexpr __int128 kMost = __int128{1} << 47;
  const __int128 heads = static_cast<__int128>(c.query_heads) + c.key_heads;
  const __int128 rows = static_cast<__int128>(c.batch) * c.tokens;
  require(rows * heads <= kMost && rows * heads * c.plan.head_dim() <= kMost,
          "--batch, --tokens, --heads, --kv-heads, --head-dim: expected at most 2^47 channels in "
          "all, got {} × {} × ({} + {}) × {}",
          c.batch, c.tokens, c.query_heads, c.key_heads, c.plan.head_dim());
}

}  // namespace

std::vector<measure::Case> cases_of(const BenchAxes& axes) {
  using measure::Case;
  std::vector<Case> cases = plans_of(axes);
  std::vector<bool> placements;
  if (axes.out_of_place || !axes.in_place) placements.push_back(false);
  if (axes.in_place || !axes.out_of_place) placements.push_back(true);
  for (Case& c : cases) {
    c.batch = axes.batch;
    c.start = axes.start;
  }
  multiply(cases, axes.dtypes, [](Case& c, const std::string& name) {
    c.dtype = named("--dtype", [&] { return dtype_from_name(name); });
  });
  multiply(cases, axes.layouts, [](Case& c, const std::string& name) {
    c.layout = layout_from_name(name);
    require(name != "thd" || c.batch == 1, "--batch: layout thd has none, got {}", c.batch);
  });
  multiply(cases, axes.directions,
           [](Case& c, const std::string& name) { c.direction = direction_from_name(name); });
  multiply(cases, placements, [](Case& c, bool in_place) { c.in_place = in_place; });
  multiply(cases, axes.kernels, [](Case& c, const std::string& name) { c.kernel = name; });
  multiply(cases, axes.threads, [](Case& c, int threads) { c.threads = threads; });
  multiply(cases, axes.heads, [](Case& c, std::int64_t heads) { c.query_heads = heads; });
  multiply(cases, axes.key_heads, [](Case& c, std::int64_t heads) { c.key_heads = heads; });
  multiply(cases, axes.tokens, [](Case& c, std::int64_t tokens) { c.tokens = tokens; });
  for (const Case& c : cases) check_sizes(c);
  return cases;
}

std::string command_of(const measure::Case& c, const BenchAxes& axes) {
  std::string command = fmt::format(
      "ropewalk bench --batch {} --tokens {} --heads {} --kv-heads {} --head-dim {} --rotary-dim "
      "{} "
      "--dtype {} --layout {} --pairing {} --direction {} {} --start {}",
      c.batch, c.tokens, c.query_heads, c.key_heads, c.plan.head_dim(), c.plan.rotary_dim(),
      name_of(c.dtype), name_of(c.layout), name_of(c.plan.pairing()), name_of(c.direction),
      c.in_place ? "--in-place" : "--out-of-place", c.start);
  command += axes.device == "cpu" ? fmt::format(" --threads {}", c.threads)
                                  : fmt::format(" --device {}", axes.device);
  if (axes.warm) command += " --warm";
  if (!c.kernel.empty()) command += " --kernel " + c.kernel;
  return command;
}

}  // namespace ropewalk::cli
