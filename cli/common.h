// What several subcommands share: exit codes, common options, shipped configs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/config.h"
#include "ropewalk/error.h"

namespace ropewalk::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

/// The input was fine but the work could not be done: exit status 1.
class WorkFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Objects keep the order in which keys were added.
using Json = nlohmann::ordered_json;
void print_json(const Json& json);
/// null for infinities and NaN, which JSON does not have.
[[nodiscard]] Json finite_or_null(double value);

/// --part, --layer-type, --length, --arithmetic, --frequencies and --channels, as text.
struct PlanArguments {
  std::string layer_type;
  std::optional<std::int64_t> length;
  std::string arithmetic = "exact";
  std::string frequencies = "model";
  std::string part;  ///< of a config with several towers
  std::string channels = "both";
};
void add_plan_options(CLI::App& command, PlanArguments& arguments);
/// Throws Error(invalid_argument) naming the option, also for a layer type that the config lacks.
/// `one` layer type must be chosen where the config has several and one plan is wanted.
[[nodiscard]] PlanOptions plan_options(const PlanArguments& arguments, const RopeConfig& config,
                                       bool one);

/// Library errors begin with the name of an argument; here the same sentence about an option.
[[noreturn]] void fail_naming(std::string_view option, const Error& error);

/// An argument of the library and what sets it here: an option, or a key of the config.
struct SetBy {
  std::string_view argument;
  std::string_view option;
};
/// Throws `error`, about the option where it begins with one of these arguments.
[[noreturn]] void fail_naming(std::initializer_list<SetBy> options, const Error& error);
/// What `body` returns; its errors name options.
template <class Body>
auto naming(std::initializer_list<SetBy> options, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    fail_naming(options, error);
  }
}
/// What `body` returns; an Error(io) of it begins with `option`.
template <class Body>
auto reading(std::string_view option, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) fail_naming(option, error);
    throw;
  }
}

/// load_config and make_plan; errors name CONFIG and the keys of the config.
[[nodiscard]] RopeConfig load_model_config(const std::filesystem::path& path,
                                           std::string_view part = {});
[[nodiscard]] RotaryPlan plan_from(const RopeConfig& config, const PlanOptions& options);

/// --seconds, for one measurement.
void add_seconds_option(CLI::App& command, double& seconds);

/// --threads and --kernel.
struct ExecutionArguments {
  int threads = 0;
  std::string kernel;
};
void add_execution_options(CLI::App& command, ExecutionArguments& arguments);
/// Throws Error(unsupported) for a kernel that is unknown or not supported here.
void check_kernel(const std::string& name);

/// Layer types of a config, in order; {"all"} where layers do not differ.
[[nodiscard]] std::vector<std::string> layer_types_of(const RopeConfig& config);

/// The folder of shipped configs: `given` where not empty (Error(invalid_argument) unless it is a
/// folder), else the one beside the sources or the installed program (Error(io) where neither is).
[[nodiscard]] std::filesystem::path config_folder(const std::string& given);
/// Its *.json files, sorted by name.
[[nodiscard]] std::vector<std::filesystem::path> configs_in(const std::filesystem::path& folder);

}  // namespace ropewalk::cli
