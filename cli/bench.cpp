#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "cli/bench_axes.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/device.h"
#include "cli/list_option.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/table.h"
#include "measure/floor.h"
#include "verify/random.h"

namespace ropewalk::cli {
namespace {

enum class Format { text, json, csv, markdown };

struct Arguments {
  BenchAxes axes;
  int repetitions = 0;  ///< 0: as many as fit the time
  double seconds = 0.25;
  bool floors = false;
  bool explain = false;
  bool json = false, csv = false, markdown = false;

  [[nodiscard]] bool on_cuda() const { return axes.device == "cuda"; }
  [[nodiscard]] Format format() const {
    return json ? Format::json : csv ? Format::csv : markdown ? Format::markdown : Format::text;
  }
};

/// The machine, and the GPU where one is asked.
Json machine_of(const Arguments& arguments) {
  Json machine = machine_json(measure::machine());
  if (arguments.on_cuda()) machine["gpu"] = cuda_device_json();
  return machine;
}

measure::TimingOptions timing_of(const Arguments& arguments) {
  measure::TimingOptions options;
  options.seconds = arguments.seconds;
  if (arguments.repetitions > 0) {
    options.min_samples = arguments.repetitions;
    options.max_samples = arguments.repetitions;
  }
  return options;
}

void print_table(const Table& table, Format format) {
  switch (format) {
    case Format::markdown: fmt::print("{}", table.markdown()); break;
    case Format::csv: fmt::print("{}", table.csv()); break;
    default: fmt::print("{}", table.text());
  }
}

/// Copies alone: what this machine gives, in the second-level cache and out of every cache.
int print_floors(const Arguments& arguments) {
  Json rows = Json::array();
  Table table({{"working set"},
               {"pass"},
               {"threads", Align::right},
               {"bytes", Align::right},
               {"µs", Align::right},
               {"GB/s", Align::right},
               {"spread", Align::right}});
  const auto add = [&](const char* set, int threads, const std::vector<measure::Floor>& floors) {
    for (const measure::Floor& floor : floors) {
      rows.push_back({{"device", arguments.axes.device},
                      {"working_set", set},
                      {"pass", floor.name},
                      {"threads", arguments.on_cuda() ? Json(nullptr) : Json(threads)},
                      {"bytes", floor.bytes},
                      {"us", floor.timing.median * 1e6},
                      {"gb_per_s", floor.gigabytes_per_second()},
                      {"spread", floor.timing.spread}});
      table.add({set, floor.name, arguments.on_cuda() ? "" : fmt::format("{}", threads),
                 fmt::format("{}", floor.bytes), microseconds(floor.timing.median),
                 fmt::format("{:.1f}", floor.gigabytes_per_second()),
                 fmt::format("{:.1f} %", 100 * floor.timing.spread)});
    }
  };
  const measure::TimingOptions timing = timing_of(arguments);
  for (const int threads : arguments.axes.threads) {
    if (arguments.on_cuda()) {
      add("L2", threads, measure_floors_on_cuda(timing, true));
      add("memory", threads, measure_floors_on_cuda(timing, false));
      continue;
    }
    add("L2", threads,
        measure::measure_floors(measure::level2_resident_bytes(threads), threads, timing));
    add("memory", threads, measure::measure_floors(measure::out_of_cache_bytes(), threads, timing));
  }
  if (arguments.json) {
    print_json({{"machine", machine_of(arguments)}, {"floors", rows}});
  } else {
    print_table(table, arguments.format());
  }
  return kOk;
}

int threads_used(const measure::Case& c) {
  return c.threads == 0 ? measure::machine().processors : c.threads;
}

struct Row {
  measure::Case c;
  measure::Measurement m;
  std::string command;
  bool on_cuda = false;
};

Json json_of(const Row& row) {
  const measure::Case& c = row.c;
  Json json{{"device", row.on_cuda ? "cuda" : "cpu"},
            {"tokens", c.tokens},
            {"batch", c.batch},
            {"query_heads", c.query_heads},
            {"key_heads", c.key_heads},
            {"head_dim", c.plan.head_dim()},
            {"rotary_dim", c.plan.rotary_dim()},
            {"dtype", name_of(c.dtype)},
            {"layout", name_of(c.layout)},
            {"pairing", name_of(c.plan.pairing())},
            {"direction", name_of(c.direction)},
            {"in_place", c.in_place},
            {"threads", row.on_cuda ? Json(nullptr) : Json(threads_used(c))},
            {"kernel", row.m.kernel}};
  json.update(measurement_json(row.m));
  if (row.m.timed) {
    const auto counted = measure::three_times_counted_bytes(measure::shape_of(c), c.in_place);
    json["gb_per_s_counting_three"] = static_cast<double>(counted) / row.m.rotation.median * 1e-9;
  }
  json["command"] = row.command;
  return json;
}

Table table_of(const std::vector<Row>& rows, bool explain, bool with_command) {
  std::vector<Column> columns{{"tokens", Align::right},
                              {"heads", Align::right},
                              {"head_dim", Align::right},
                              {"dtype"},
                              {"layout"},
                              {"pairing"},
                              {"direction"},
                              {"placement"},
                              {"kernel"},
                              {"threads", Align::right},
                              {"in"},
                              {"µs", Align::right},
                              {"spread", Align::right},
                              {"GB/s", Align::right},
                              {"floor"},
                              {"of floor", Align::right},
                              {"error/bound", Align::right}};
  if (explain) columns.push_back({"GB/s counting 3", Align::right});
  if (with_command) columns.push_back({"command"});
  Table table(columns);
  for (const auto& [c, m, command, on_cuda] : rows) {
    std::vector<std::string> cells{
        c.batch == 1 ? fmt::format("{}", c.tokens) : fmt::format("{}×{}", c.batch, c.tokens),
        fmt::format("{}+{}", c.query_heads, c.key_heads),
        c.plan.rotary_dim() == c.plan.head_dim()
            ? fmt::format("{}", c.plan.head_dim())
            : fmt::format("{}/{}", c.plan.rotary_dim(), c.plan.head_dim()),
        std::string(name_of(c.dtype)),
        std::string(name_of(c.layout)),
        std::string(name_of(c.plan.pairing())),
        std::string(name_of(c.direction)),
        c.in_place ? "in place" : "out of place",
        m.kernel,
        on_cuda ? "" : fmt::format("{}", threads_used(c)),
        m.residence,
        m.timed ? microseconds(m.rotation.median) : "WRONG",
        m.timed ? fmt::format("{:.1f} %", 100 * m.rotation.spread) : "",
        m.timed ? fmt::format("{:.1f}", m.gigabytes_per_second()) : "",
        m.floor_name,
        m.timed ? fmt::format("{:.3f}", m.ratio_to_floor()) : "",
        fmt::format("{:.3f}", m.comparison.worst_ratio)};
    if (explain) {
      cells.push_back(m.timed ? fmt::format("{:.1f}", 1.5 * m.gigabytes_per_second()) : "");
    }
    if (with_command) cells.push_back(command);
    table.add(std::move(cells));
  }
  return table;
}

void print_explanation() {
  fmt::print(
      "\nGB/s counts each byte of q and k once read and once written. \"Counting 3\" is what "
      "comes\n"
      "out when the cosines and sines are counted as a third tensor: they are shared by heads and\n"
      "batch rows (here they are computed, not read), so that figure is half as large again as "
      "the\n"
      "memory traffic. Rows whose working set is in L2 or cache say how fast the cache is, not "
      "the\n"
      "memory: compare each row with its own floor.\n");
}

int print_rows(const std::vector<Row>& rows, const Arguments& arguments) {
  const auto wrong = std::count_if(rows.begin(), rows.end(),
                                   [](const Row& row) { return !row.m.comparison.pass(); });
  if (arguments.format() == Format::json) {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(json_of(row));
    print_json({{"machine", machine_of(arguments)}, {"rows", list}});
  } else if (arguments.format() == Format::text) {
    fmt::print("{}\n\n",
               arguments.on_cuda() ? cuda_device_text() : measure::to_string(measure::machine()));
    print_table(table_of(rows, arguments.explain, false), Format::text);
    fmt::print("\nEach row again:\n");
    for (const Row& row : rows) fmt::print("  {}\n", row.command);
    if (arguments.explain) print_explanation();
  } else {
    print_table(table_of(rows, arguments.explain, true), arguments.format());
  }
  for (const Row& row : rows) {
    if (row.m.comparison.pass()) continue;
    fmt::print(stderr, "ropewalk: bench: wrong result, not timed: {} ({})\n",
               row.m.comparison.detail, row.command);
  }
  return wrong == 0 ? kOk : kFailed;
}

/// Axes that only one kind of device has.
void check_device_axes(const Arguments& arguments) {
  const BenchAxes& axes = arguments.axes;
  const bool on_cuda = is_cuda(axes.device);
  require(!axes.warm || on_cuda, "--warm: expected --device cuda with it");
  require(!on_cuda || axes.threads == std::vector<int>{0},
          "--threads: expected none with --device cuda, which has no threads to choose");
  for (const std::string& kernel : axes.kernels) {
    if (kernel.empty()) continue;
    if (on_cuda) {
      check_cuda_kernel(kernel);
    } else {
      check_kernel(kernel);
    }
  }
}

int bench(const Arguments& arguments) {
  check_device_axes(arguments);
  if (arguments.floors) return print_floors(arguments);
  const std::vector<measure::Case> cases = cases_of(arguments.axes);
  const std::uint64_t seed = verify::fresh_seed();
  const measure::TimingOptions timing = timing_of(arguments);
  std::vector<Row> rows;
  {
    Progress progress(static_cast<std::int64_t>(cases.size()));
    for (const measure::Case& c : cases) {
      const std::string command = command_of(c, arguments.axes);
      progress.show(static_cast<std::int64_t>(rows.size()), command.substr(15));
      const auto measured = [&] {
        return arguments.on_cuda() ? measure_on_cuda(c, seed, timing, arguments.axes.warm)
                                   : measure::measure(c, seed, timing);
      };
      rows.push_back(
          {c, naming({{"positions", "--start"}}, measured), command, arguments.on_cuda()});
    }
    progress.show(static_cast<std::int64_t>(rows.size()), "");
  }
  return print_rows(rows, arguments);
}

void add_axes(CLI::App& command, BenchAxes& axes) {
  const auto count = CLI::Range(std::int64_t{1}, std::int64_t{1} << 31);
  add_list(command, "--tokens", axes.tokens, "Tokens; 1 is decoding", count);
  add_list(command, "--heads", axes.heads, "Query heads", count);
  add_list(command, "--kv-heads", axes.key_heads, "Key heads; 0: queries alone",
           CLI::Range(std::int64_t{0}, std::int64_t{1} << 31));
  add_list(command, "--head-dim", axes.head_dim, "Channels of a head", count);
  command.add_option("--rotary-dim", axes.rotary_dim, "Rotated channels; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31));
  command.add_option("--batch", axes.batch, "Batch rows")->check(count);
  add_list(command, "--dtype", axes.dtypes, "float64, float32, float16, bfloat16");
  add_list(command, "--layout", axes.layouts, "bthd, bhtd, thd");
  add_list(command, "--pairing", axes.pairings, "half, interleaved, interleaved_to_half");
  add_list(command, "--direction", axes.directions, "forward, inverse");
  command.add_flag("--in-place", axes.in_place, "In place (default: both placements)");
  command.add_flag("--out-of-place", axes.out_of_place, "Out of place (default: both placements)");
  add_list(command, "--threads", axes.threads, "Threads; 0: one per available processor",
           CLI::Range(0, 4096));
  add_list(command, "--kernel", axes.kernels,
           "CPU kernels (see `ropewalk kernels`), or launch policies of the GPU");
  command.add_option("--start", axes.start, "Position of the first token")->capture_default_str();
  add_device_option(command, axes.device);
  command.add_flag("--warm", axes.warm,
                   "On a GPU: leave the data in its L2 cache (default: rotating buffers, cold)");
}

}  // namespace

void add_bench(CLI::App& app, Work& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("bench", "Time rotations, verified first, beside copying");
  add_axes(*command, arguments->axes);
  command->add_option("--reps", arguments->repetitions, "Samples of each; default: by time")
      ->check(CLI::Range(1, 1000000));
  add_seconds_option(*command, arguments->seconds);
  command->add_flag("--floors", arguments->floors, "Time copies alone, in L2 and out of cache");
  command->add_flag(
      "--explain", arguments->explain,
      "Add the figure that counts cosines and sines as traffic, and say why it misleads");
  CLI::Option* json = command->add_flag("--json", arguments->json, "Print JSON");
  CLI::Option* csv = command->add_flag("--csv", arguments->csv, "Print CSV")->excludes(json);
  command->add_flag("--markdown", arguments->markdown, "Print Markdown")
      ->excludes(json)
      ->excludes(csv);
  command->footer(
      "Options that take lists (a,b,c) are axes; every combination is a row. \"of floor\" is the "
      "time\n"
      "of the fastest copy of the same bytes in the same run (in place: of a read-modify-write "
      "pass)\n"
      "divided by the time of the rotation: 1 is as fast as copying. On a GPU times are device "
      "time,\n"
      "of launches in a CUDA graph.\n"
      "Examples:\n"
      "  ropewalk bench\n"
      "  ropewalk bench --tokens 1,16,256 --dtype bfloat16,float32 --pairing half,interleaved\n"
      "  ropewalk bench --tokens 32768 --threads 1,0 --out-of-place --json\n"
      "  ropewalk bench --floors\n"
      "  ropewalk bench --device cuda --tokens 1,256,32768\n"
      "Beside other implementations (in the Python package; --against all --help for its "
      "options):\n"
      "  ropewalk bench --against all --verify-only\n"
      "  ropewalk bench --against eager,torch-compile,liger --tokens 1,4096 --report mine.csv");
  command->callback([arguments, &chosen] { chosen = [arguments] { return bench(*arguments); }; });
}

}  // namespace ropewalk::cli
