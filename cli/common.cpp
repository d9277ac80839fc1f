#include "cli/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "base/check.h"
#include "cli/list_option.h"
#include "config/hf_fields.h"
#include "ropewalk/rotate.h"

namespace ropewalk::cli {

namespace fs = std::filesystem;

void print_json(const Json& json) {
  // File names may hold bytes that are not UTF-8; they are replaced rather than refused.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  // JSON leaves DEL and the C1 controls as they are, which terminals obey. They stand in strings.
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool c1 = text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1 || text[i] == '\x7f') {
      if (c1) ++i;
      safe += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[i]));
    } else {
      safe += text[i];
    }
  }
  fmt::print("{}\n", safe);
}

std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces{""};
  for (const char c : text) {
    if (c == ',') {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void add_plan_options(CLI::App& command, PlanArguments& arguments) {
  command.add_option(
      "--part", arguments.part,
      "Part of the model: text, vision, audio, the path of a nested config, or \".\"");
  command
      .add_option("--channels", arguments.channels,
                  "first or second, for models whose pairs turn by two angles")
      ->check(CLI::IsMember({"both", "first", "second"}))
      ->capture_default_str();
  command.add_option("--layer-type", arguments.layer_type,
                     "Layer type, where the config has several");
  command
      .add_option("--length", arguments.length, "Sequence length, for dynamic and longrope scaling")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 53));
  command
      .add_option("--arithmetic", arguments.arithmetic,
                  "exact; parity: the model's own rounding; or one of parity_p0 … parity_p4")
      ->capture_default_str();
  command
      .add_option("--frequencies", arguments.frequencies,
                  "model: the fp32 values the model holds; formula: the formula's, in double")
      ->check(CLI::IsMember({"model", "formula"}))
      ->capture_default_str();
}

PlanOptions plan_options(const PlanArguments& arguments, const RopeConfig& config, bool one) {
  const std::vector<std::string> types = layer_types_of(config);
  const std::string& type = arguments.layer_type;
  const bool known = std::find(types.begin(), types.end(), type) != types.end();
  require(known || (type.empty() && (!one || types.size() == 1)),
          "--layer-type: expected one of {}, got \"{}\"", fmt::join(types, ", "), type);
  PlanOptions options;
  options.layer_type = type;
  options.length = arguments.length;
  options.frequency_precision =
      arguments.frequencies == "formula" ? FrequencyPrecision::formula : FrequencyPrecision::model;
  options.channels = arguments.channels == "first"    ? PairChannels::first
                     : arguments.channels == "second" ? PairChannels::second
                                                      : PairChannels::both;
  try {
    if (arguments.arithmetic == "parity") {
      options.arithmetic = config.model_arithmetic;
      return options;
    }
    options.arithmetic = arithmetic_from_name(arguments.arithmetic);
  } catch (const Error& error) {
    fail_naming("--arithmetic", error);
  }
  return options;
}

void fail_naming(std::string_view option, const Error& error) {
  const std::string_view message = error.what();
  const std::size_t colon = message.find(": ");
  const bool named = colon != std::string_view::npos && message.find(' ') > colon;
  fail(error.code(), "{}: {}", option, named ? message.substr(colon + 2) : message);
}

void fail_naming(std::initializer_list<SetBy> options, const Error& error) {
  const std::string_view message = error.what();
  for (const auto& [argument, option] : options) {
    const bool about = message.starts_with(argument) && message.size() > argument.size();
    if (!about) continue;
    const std::string_view rest = message.substr(argument.size());
    if (rest.starts_with(':')) fail(error.code(), "{}{}", option, rest);
  }
  throw error;
}

RopeConfig load_model_config(const std::filesystem::path& path, std::string_view part) {
  return reading("CONFIG", [&] { return load_config(path, part); });
}

RotaryPlan plan_from(const RopeConfig& config, const PlanOptions& options) {
  namespace field = config::field;
  return naming({{"length", "--length"},
                 {"layer_type", "--layer-type"},
                 {"base", field::kRopeTheta},
                 {"partial_factor", field::kPartialRotaryFactor},
                 {"max_positions", field::kMaxPositions.front()},
                 {"original_max_positions", field::kOriginalMaxPositions}},
                [&] { return make_plan(config, options); });
}

void add_seconds_option(CLI::App& command, double& seconds) {
  // CLI::Range lets a NaN pass.
  const auto usable = [](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= 0.001 && value <= 3600.0) return {};
    return "expected a number from 0.001 to 3600, got " + text;
  };
  command.add_option("--seconds", seconds, "Time for each measurement, about")
      ->check(usable)
      ->capture_default_str();
}

void add_execution_options(CLI::App& command, ExecutionArguments& arguments) {
  command.add_option("--threads", arguments.threads, "Threads; 0: one per available processor")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command.add_option("--kernel", arguments.kernel,
                     "CPU kernel (see `ropewalk kernels`); default: the best supported one");
}

void check_kernel(const std::string& name) {
  std::string known;
  for (const CpuKernelInfo& kernel : cpu_kernels()) {
    if (kernel.name == name) {
      if (kernel.supported) return;
      fail(ErrorCode::unsupported, "--kernel: \"{}\" is not supported by this processor", name);
    }
    known += known.empty() ? "" : ", ";
    known += kernel.name;
  }
  fail(ErrorCode::unsupported, "--kernel: expected one of {}, got \"{}\"", known, name);
}

std::vector<std::string> layer_types_of(const RopeConfig& config) {
  std::vector<std::string> types;
  types.reserve(config.by_layer_type.size());
  for (const auto& [type, parameters] : config.by_layer_type) types.push_back(type);
  return types;
}

fs::path config_folder(const std::string& given) {
  if (!given.empty()) {
    std::error_code ignored;
    require(fs::is_directory(given, ignored), "--configs: expected a folder, got \"{}\"", given);
    return given;
  }
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path candidates[] = {ROPEWALK_SOURCE_CONFIGS,
                                 program.parent_path() / ".." / "share" / "ropewalk" / "configs"};
  for (const fs::path& folder : candidates) {
    if (fs::is_directory(folder, ignored)) return folder;
  }
  fail(ErrorCode::io, "--configs: the shipped configs were not found at {}; name their folder",
       candidates[0].string());
}

std::vector<fs::path> configs_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file())
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  require(!files.empty(), "--configs: {} holds no .json file", folder.string());
  return files;
}

}  // namespace ropewalk::cli
