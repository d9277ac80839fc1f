#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/device.h"
#include "cli/model_shape.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/table.h"
#include "verify/random.h"

namespace ropewalk::cli {
namespace {

struct Arguments {
  std::string configs;
  std::int64_t tokens = 2048;
  std::string dtype = "bfloat16";
  bool in_place = false;
  double seconds = 0.1;
  ExecutionArguments execution;
  std::string device = "all";
  bool json = false;
};

/// A layer type of a shipped config on one device, before and after the work.
struct Row {
  bool on_cuda = false;
  std::string model;
  std::string layer_type;
  RopeConfig config;
  SliceLeads leads;
  std::optional<RotaryPlan> plan;  ///< empty where the config was refused
  std::optional<measure::Measurement> measurement;
  std::string error;  ///< why there is no right result
  [[nodiscard]] bool ok() const { return error.empty(); }
};

std::vector<Row> rows_of(const std::filesystem::path& path, bool on_cuda) {
  const std::string model = path.stem().string();
  std::vector<Row> rows;
  try {
    const RopeConfig config = load_config(path);
    for (const std::string& type : layer_types_of(config)) {
      PlanOptions options;
      options.layer_type = type;
      rows.push_back({on_cuda,
                      model,
                      type,
                      config,
                      slice_leads(path),
                      plan_from(config, options),
                      std::nullopt,
                      {}});
    }
  } catch (const Error& error) {
    rows.push_back({on_cuda, model, "", {}, {}, std::nullopt, std::nullopt, error.what()});
  }
  return rows;
}

measure::Case case_of(const Row& row, const RotaryPlan& plan, const Arguments& arguments) {
  measure::Case c{plan};
  c.tokens = arguments.tokens;
  c.query_heads = std::max<std::int64_t>(1, row.config.query_heads);
  c.key_heads = row.config.key_heads;
  c.query_lead = row.leads.query;
  c.key_lead = row.leads.key;
  c.dtype = dtype_from_name(arguments.dtype);
  c.in_place = arguments.in_place;
  // The far end of the context: where a wrong angle shows.
  c.start = std::max<std::int64_t>(0, row.config.max_positions.value_or(0) - arguments.tokens);
  c.threads = arguments.execution.threads;
  if (!row.on_cuda) c.kernel = arguments.execution.kernel;
  return c;
}

void work_on(Row& row, const Arguments& arguments, std::uint64_t seed) {
  if (!row.plan || !row.plan->rotates()) return;
  measure::TimingOptions timing;
  timing.seconds = arguments.seconds;
  try {
    const measure::Case c = case_of(row, *row.plan, arguments);
    row.measurement =
        row.on_cuda ? measure_on_cuda(c, seed, timing, false) : measure::measure(c, seed, timing);
    if (!row.measurement->comparison.pass()) row.error = row.measurement->comparison.detail;
  } catch (const Error& error) {
    row.error = error.what();
  }
}

std::string label(const Row& row) {
  const bool one = row.layer_type.empty() || row.config.by_layer_type.size() <= 1;
  return printable(one ? row.model : fmt::format("{} {}", row.model, row.layer_type));
}

Json json_of(const Row& row, const Arguments& arguments) {
  Json json{{"device", row.on_cuda ? "cuda" : "cpu"},
            {"model", row.model},
            {"layer_type", row.layer_type}};
  if (row.plan) {
    json["rotates"] = row.plan->rotates();
    json["scaling"] = row.plan->spec().scaling;
    json["pairing"] = name_of(row.plan->pairing());
    json["query_heads"] = row.config.query_heads;
    json["key_heads"] = row.config.key_heads;
    json["head_dim"] = row.plan->head_dim();
    json["rotary_dim"] = row.plan->rotary_dim();
    json["axes"] = row.plan->axes();
    json["fingerprint"] = row.plan->fingerprint();
  }
  if (row.plan && row.measurement) {
    const measure::Case c = case_of(row, *row.plan, arguments);
    json["tokens"] = c.tokens;
    json["start"] = c.start;
    json["dtype"] = name_of(c.dtype);
    json["in_place"] = c.in_place;
    json["kernel"] = row.measurement->kernel;
    json.update(measurement_json(*row.measurement));
  }
  json["ok"] = row.ok();
  if (!row.ok()) json["error"] = row.error;
  return json;
}

std::vector<std::string> cells_of(const Row& row, const Arguments& arguments) {
  if (!row.plan) return {label(row), "refused", "", "", "", "", "", "", "", "", ""};
  const std::string heads = fmt::format("{}+{}", row.config.query_heads, row.config.key_heads);
  const std::string dims = row.plan->rotary_dim() == row.plan->head_dim()
                               ? fmt::format("{}", row.plan->head_dim())
                               : fmt::format("{}/{}", row.plan->rotary_dim(), row.plan->head_dim());
  if (!row.plan->rotates()) return {label(row), "no rope", "", heads, "", "", "", "", "", "", ""};
  std::vector<std::string> cells{label(row),
                                 row.plan->spec().scaling,
                                 std::string(name_of(row.plan->pairing())),
                                 heads,
                                 dims,
                                 fmt::format("{}", arguments.tokens)};
  if (!row.measurement || !row.measurement->timed) {
    cells.insert(cells.end(), {"", "WRONG", "", "", ""});
  } else {
    const measure::Measurement& m = *row.measurement;
    cells.insert(
        cells.end(),
        {std::string(name_of(dtype_from_name(arguments.dtype))), microseconds(m.rotation.median),
         fmt::format("{:.1f}", m.gigabytes_per_second()), fmt::format("{:.2f}", m.ratio_to_floor()),
         fmt::format("{:.3f}", m.comparison.worst_ratio)});
  }
  return cells;
}

Table table_of(const std::vector<Row>& rows, const Arguments& arguments, bool on_cuda) {
  Table table({{"model"},
               {"scaling"},
               {"pairing"},
               {"heads", Align::right},
               {"head_dim", Align::right},
               {"tokens", Align::right},
               {"dtype"},
               {"µs", Align::right},
               {"GB/s", Align::right},
               {"of copy", Align::right},
               {"error/bound", Align::right}});
  for (const Row& row : rows) {
    if (row.on_cuda == on_cuda) table.add(cells_of(row, arguments));
  }
  return table;
}

void print_text(const std::vector<Row>& rows, const Arguments& arguments) {
  const char* placement = arguments.in_place
                              ? "in place, beside a read-modify-write pass over the same bytes"
                              : "out of place, beside the fastest copy of the same bytes";
  if (arguments.device != "cuda") {
    fmt::print(
        "{}\nkernel {}, {}\n\n{}\n", measure::to_string(measure::machine()),
        arguments.execution.kernel.empty() ? active_cpu_kernel() : arguments.execution.kernel,
        placement, table_of(rows, arguments, false).text());
  }
  if (arguments.device == "cuda" || (arguments.device == "all" && why_no_cuda().empty())) {
    fmt::print("{}\n{}; device time of cold data\n\n{}\n", cuda_device_text(), placement,
               table_of(rows, arguments, true).text());
  } else if (arguments.device == "all") {
    fmt::print("No GPU rows: {}.\n", why_no_cuda());
  }
  for (const Row& row : rows) {
    if (!row.ok()) fmt::print("FAILED {}: {}\n", label(row), row.error);
  }
}

/// The rows to work on: every config on the CPU, then on the GPU, as asked and possible.
std::vector<Row> rows_to_do(const Arguments& arguments) {
  std::vector<Row> rows;
  const auto add = [&](bool on_cuda) {
    for (const auto& path : configs_in(config_folder(arguments.configs))) {
      for (Row& row : rows_of(path, on_cuda)) rows.push_back(std::move(row));
    }
  };
  const bool cuda_asked = is_cuda(arguments.device);
  if (!cuda_asked) add(false);
  if (cuda_asked || (arguments.device == "all" && why_no_cuda().empty())) add(true);
  return rows;
}

Json machine_of(const std::vector<Row>& rows, const Arguments& arguments) {
  Json machine = machine_json(measure::machine());
  if (std::any_of(rows.begin(), rows.end(), [](const Row& r) { return r.on_cuda; })) {
    machine["gpu"] = cuda_device_json();
  } else if (arguments.device == "all") {
    machine["no_gpu"] = why_no_cuda();
  }
  return machine;
}

int run_all(const Arguments& arguments) {
  if (!arguments.execution.kernel.empty()) check_kernel(arguments.execution.kernel);
  try {
    (void)dtype_from_name(arguments.dtype);
  } catch (const Error& error) {
    fail_naming("--dtype", error);
  }
  std::vector<Row> rows = rows_to_do(arguments);
  const std::uint64_t seed = verify::fresh_seed();
  {
    Progress progress(static_cast<std::int64_t>(rows.size()));
    std::int64_t done = 0;
    for (Row& row : rows) {
      progress.show(done, label(row));
      work_on(row, arguments, seed);
      progress.show(++done, label(row));
    }
  }
  const auto failed = std::count_if(rows.begin(), rows.end(), [](const Row& r) { return !r.ok(); });
  if (arguments.json) {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(json_of(row, arguments));
    print_json({{"machine", machine_of(rows, arguments)},
                {"kernel", arguments.execution.kernel.empty() ? std::string(active_cpu_kernel())
                                                              : arguments.execution.kernel},
                {"seed", seed},
                {"failed", failed},
                {"rows", list}});
  } else {
    print_text(rows, arguments);
    fmt::print("{} of {} verified against the exact rotation.\n",
               rows.size() - static_cast<std::size_t>(failed), rows.size());
  }
  return failed == 0 ? kOk : kFailed;
}

}  // namespace

void add_run(CLI::App& app, Work& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Rotate q and k of every shipped model: verified, timed, one table");
  command->add_option("--configs", arguments->configs,
                      "Folder of config files; default: the shipped ones");
  command->add_option("--tokens", arguments->tokens, "Tokens of each sequence")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->capture_default_str();
  command->add_option("--dtype", arguments->dtype, "Data type of q and k")->capture_default_str();
  command->add_flag("--in-place,!--out-of-place", arguments->in_place,
                    "Overwrite q and k instead of writing new ones");
  add_seconds_option(*command, arguments->seconds);
  add_execution_options(*command, arguments->execution);
  add_device_option(*command, arguments->device, "the CPU, and the GPU where there is one");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Tokens stand at the far end of the model's context. \"of copy\" is the time of copying the\n"
      "same bytes with the same threads divided by the time of the rotation: 1 is as fast as\n"
      "copying. Error/bound above 1 is a failure. --threads and --kernel concern the CPU's rows.\n"
      "Examples:\n"
      "  ropewalk run\n"
      "  ropewalk run --tokens 1 --in-place\n"
      "  ropewalk run --device cuda\n"
      "  ropewalk run --configs my_models --json");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run_all(*arguments); }; });
}

}  // namespace ropewalk::cli
