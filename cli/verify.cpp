#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/check.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/device.h"
#include "cli/list_option.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "measure/machine.h"
#include "verify/matrix.h"
#include "verify/tolerance.h"

namespace ropewalk::cli {
namespace {

constexpr std::size_t kFailuresShown = 5;

struct Arguments {
  bool quick = false;
  bool full = false;
  std::vector<std::string> kernels;
  std::vector<std::string> dtypes;
  std::optional<std::uint64_t> seed;
  std::string shard;  ///< "N/M"; empty: all
  std::string device = "cpu";
  int threads = 0;
  bool json = false;
};

/// What all cases of one (kernel, dtype, pairing) found together.
struct Summary {
  std::int64_t cases = 0;
  std::int64_t failed = 0;
  std::int64_t elements = 0;
  double worst_ratio = 0;
  double worst_abs_error = 0;  ///< over normal data
  std::int64_t normal_computed = 0;
  std::int64_t normal_rounded = 0;

  void add(const verify::CaseRecord& record) {
    ++cases;
    failed += record.pass ? 0 : 1;
    elements += record.elements;
    worst_ratio = std::max(worst_ratio, record.worst_ratio);
    if (record.test_case.values != verify::Values::normal) return;
    worst_abs_error = std::max(worst_abs_error, record.worst_abs_error);
    normal_computed += record.computed;
    normal_rounded += record.correctly_rounded;
  }
  [[nodiscard]] double share() const {
    return normal_computed == 0
               ? 1.0
               : static_cast<double>(normal_rounded) / static_cast<double>(normal_computed);
  }
};

using Key = std::tuple<std::string, Dtype, Pairing>;

/// The scalar kernel is the reference for bits, so it always runs first.
std::vector<std::string> kernels_to_run(const std::vector<std::string>& chosen) {
  std::vector<std::string> kernels = verify::supported_cpu_kernels();
  if (chosen.empty()) return kernels;
  for (const std::string& name : chosen) check_kernel(name);
  std::erase_if(kernels, [&](const std::string& name) {
    return name != "scalar" && std::find(chosen.begin(), chosen.end(), name) == chosen.end();
  });
  return kernels;
}

/// Part `number` of `parts`, counted from 1.
struct Shard {
  std::int64_t number = 1;
  std::int64_t parts = 1;
};

Shard shard_of(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t slash = text.find('/');
  const auto integer_or_zero = [](const std::string& part) { return integer_of(part).value_or(0); };
  const std::int64_t number = integer_or_zero(text.substr(0, slash));
  const std::int64_t parts =
      slash == std::string::npos ? 0 : integer_or_zero(text.substr(slash + 1));
  require(number >= 1 && number <= parts, "--shard: expected N/M with N from 1 to M, got {}",
          in_quotes(text));
  return {number, parts};
}

/// Every parts-th case, so that each part has cases of every kind.
void keep_shard(std::vector<verify::MatrixCase>& cases, const Shard& shard) {
  std::int64_t index = 0;
  std::erase_if(
      cases, [&](const verify::MatrixCase&) { return index++ % shard.parts != shard.number - 1; });
  require(!cases.empty(), "--shard: part {} of {} has no case", shard.number, shard.parts);
}

std::vector<verify::MatrixCase> cases_of(const Arguments& arguments, std::uint64_t seed) {
  std::vector<Dtype> dtypes;
  for (const std::string& name : arguments.dtypes) {
    try {
      dtypes.push_back(dtype_from_name(name));
    } catch (const Error& error) {
      fail_naming("--dtype", error);
    }
  }
  auto cases = verify::matrix_cases(
      arguments.full ? verify::MatrixSize::full : verify::MatrixSize::quick, seed);
  std::erase_if(cases, [&](const verify::MatrixCase& c) {
    return !dtypes.empty() && std::find(dtypes.begin(), dtypes.end(), c.dtype) == dtypes.end();
  });
  return cases;
}

Json json_of(const std::map<Key, Summary>& summaries) {
  Json rows = Json::array();
  for (const auto& [key, summary] : summaries) {
    rows.push_back({{"kernel", std::get<0>(key)},
                    {"dtype", name_of(std::get<1>(key))},
                    {"pairing", name_of(std::get<2>(key))},
                    {"cases", summary.cases},
                    {"failed", summary.failed},
                    {"elements", summary.elements},
                    {"worst_error_to_bound", summary.worst_ratio},
                    {"worst_abs_error", summary.worst_abs_error},
                    {"correctly_rounded_share", summary.share()}});
  }
  return rows;
}

std::string text_of(const std::map<Key, Summary>& summaries) {
  Table table({{"kernel"},
               {"dtype"},
               {"pairing"},
               {"cases", Align::right},
               {"failed", Align::right},
               {"error/bound", Align::right},
               {"|error|", Align::right},
               {"correctly rounded", Align::right}});
  for (const auto& [key, summary] : summaries) {
    table.add({std::get<0>(key), std::string(name_of(std::get<1>(key))),
               std::string(name_of(std::get<2>(key))), fmt::format("{}", summary.cases),
               fmt::format("{}", summary.failed), fmt::format("{:.3f}", summary.worst_ratio),
               fmt::format("{:.2e}", summary.worst_abs_error),
               fmt::format("{:.3f} %", 100 * summary.share())});
  }
  return table.text();
}

int verify_kernels(const Arguments& arguments) {
  const std::uint64_t seed = arguments.seed.value_or(verify::fresh_seed());
  const bool on_cuda = is_cuda(arguments.device);
  const std::vector<std::string> kernels =
      on_cuda ? cuda_verify_kernels() : kernels_to_run(arguments.kernels);
  auto cases = cases_of(arguments, seed);
  const Shard shard = shard_of(arguments.shard);
  keep_shard(cases, shard);
  const verify::Backend backend = on_cuda ? cuda_verify_backend() : verify::cpu_backend();
  std::map<Key, Summary> summaries;
  std::vector<std::string> failures;
  {
    Progress progress(static_cast<std::int64_t>(cases.size()));
    const auto add = [&](std::span<const verify::CaseRecord> records, std::int64_t done,
                         std::int64_t) {
      for (const auto& record : records) {
        if (!record.pass) failures.push_back(record.detail);
        const bool asked = arguments.kernels.empty() ||
                           std::find(arguments.kernels.begin(), arguments.kernels.end(),
                                     record.kernel) != arguments.kernels.end();
        if (!asked) continue;
        summaries[{record.kernel, record.test_case.dtype, record.test_case.pairing}].add(record);
      }
      progress.show(done, verify::to_string(records.front().test_case));
    };
    (void)verify::run_cases(cases, backend, kernels, arguments.threads, add);
  }
  for (const auto& [key, summary] : summaries) {
    const Dtype dtype = std::get<1>(key);
    if (size_of(dtype) == 2 && summary.share() < verify::kCorrectlyRoundedShare) {
      failures.push_back(fmt::format("{} {}: only {:.4f} % are correctly rounded", std::get<0>(key),
                                     name_of(dtype), 100 * summary.share()));
    }
  }
  if (arguments.json) {
    print_json({{"pass", failures.empty()},
                {"size", arguments.full ? "full" : "quick"},
                {"seed", seed},
                {"shard", {{"number", shard.number}, {"parts", shard.parts}}},
                {"machine", measure::to_string(measure::machine())},
                {"rows", json_of(summaries)},
                {"failures", failures}});
  } else {
    fmt::print("{}\n", text_of(summaries));
    for (std::size_t i = 0; i < std::min(failures.size(), kFailuresShown); ++i) {
      fmt::print("FAILED {}\n", failures[i]);
    }
    if (shard.parts > 1) fmt::print("Part {} of {}: ", shard.number, shard.parts);
    fmt::print("{} cases, {} failures, seed {}: {}\n", cases.size(), failures.size(), seed,
               failures.empty()
                   ? "every result is within its bound, the same bits from every kernel"
                   : "NOT VERIFIED");
  }
  return failures.empty() ? kOk : kFailed;
}

}  // namespace

void add_verify(CLI::App& app, Work& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("verify", "Check this machine's kernels against the exact rotation");
  CLI::Option* quick = command->add_flag(
      "--quick", arguments->quick, "Every dtype, pairing and layout, the rest drawn (default)");
  command->add_flag("--full", arguments->full, "The whole product of cases; tens of minutes")
      ->excludes(quick);
  add_list(*command, "--kernel", arguments->kernels, "Kernels to verify; default: all supported");
  add_list(*command, "--dtype", arguments->dtypes, "Data types to verify; default: all");
  command->add_option("--seed", arguments->seed, "Seed of the drawn cases; default: a fresh one");
  command->add_option("--shard", arguments->shard,
                      "N/M: part N of M of the cases; with one --seed the M parts are the whole");
  add_device_option(*command, arguments->device);
  command
      ->add_option("--threads", arguments->threads,
                   "Cases at a time; 0: one for each available processor")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Error/bound is the largest error divided by the bound derived for that element; above 1 is\n"
      "a failure. Correctly rounded is the share of outputs nearest to the truth.\n"
      "Examples:\n"
      "  ropewalk verify\n"
      "  ropewalk verify --full --dtype bfloat16 --kernel avx2\n"
      "  ropewalk verify --full --seed 7 --shard 1/20");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return verify_kernels(*arguments); }; });
}

}  // namespace ropewalk::cli
