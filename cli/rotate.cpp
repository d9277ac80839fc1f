#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/check.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/device.h"
#include "cli/list_option.h"
#include "cli/progress.h"
#include "ropewalk/stream.h"

namespace ropewalk::cli {
namespace {

struct Arguments {
  std::string config;
  std::string input, output;
  StreamOptions stream;
  std::string table;
  bool inverse = false;
  bool json = false;
  PlanArguments plan;
  ExecutionArguments execution;
  std::string device = "cpu";
};

PieceRotator rotator_on_cuda(Direction direction) {
  return [direction](const RotaryPlan& plan, const RotaryTable* table, const TensorView& piece,
                     const Positions& positions) {
    const std::array rotations{Rotation::in_place(piece)};
    if (table == nullptr) {
      rotate_on_cuda(plan, rotations, positions, direction);
    } else {
      rotate_on_cuda(*table, rotations, positions, direction);
    }
  };
}

/// Progress on a terminal or in dots, and a line wherever memory was short.
std::function<void(const StreamProgress&)> progress_of(std::optional<Progress>& bar) {
  constexpr std::uint64_t kUnit = std::uint64_t{1} << 20;
  return [&bar](const StreamProgress& progress) {
    if (progress.halved_to > 0) {
      bar.reset();
      fmt::print(stderr, "ropewalk: memory is short; going on with pieces of {} bytes\n",
                 progress.halved_to);
      return;
    }
    if (progress.total < 64 * kUnit) return;
    if (!bar) bar.emplace(static_cast<std::int64_t>(progress.total / kUnit));
    bar->show(static_cast<std::int64_t>(progress.done / kUnit),
              fmt::format("MiB, {}", progress.tensor));
  };
}

/// The library names its options; here they have names of the command line. An output that cannot
/// be written is failed work, not bad input.
[[noreturn]] void fail_as_option(const Error& error) {
  const std::string_view message = error.what();
  if (error.code() == ErrorCode::io && message.starts_with("output: ")) {
    throw WorkFailed(fmt::format("--{}", message));
  }
  fail_naming({{"tensors", "--tensor"},
               {"positions", "--positions"},
               {"layout", "--layout"},
               {"input", "--input"},
               {"output", "--output"},
               {"resume", "--resume"},
               {"chunk_bytes", "--chunk"},
               {"table_file", "--table"},
               {"plan", "--arithmetic"}},
              error);
}

/// A place where no file can be is wrong usage.
void check_output(const std::filesystem::path& output) {
  std::error_code ignored;
  const std::filesystem::path folder = output.has_parent_path() ? output.parent_path() : ".";
  require(std::filesystem::is_directory(folder, ignored),
          "--output: expected a file in a folder that exists, got {}",
          in_quotes(output.native(), kPathBytes));
  const auto there = std::filesystem::status(output, ignored);
  require(output.has_filename() &&
              (!std::filesystem::exists(there) || std::filesystem::is_regular_file(there)),
          "--output: expected the name of a regular file, got {}",
          in_quotes(output.native(), kPathBytes));
}

void print_result(const Arguments& arguments, const RotaryPlan& plan, const StreamResult& result,
                  const Json& rotated) {
  if (arguments.json) {
    print_json({{"input", arguments.input},
                {"output", arguments.output},
                {"direction", arguments.inverse ? "inverse" : "forward"},
                {"plan", to_string(plan)},
                {"fingerprint", plan.fingerprint()},
                {"rotated", rotated},
                {"copied", result.copied},
                {"bytes", result.bytes},
                {"resumed_at", result.resumed_at},
                {"chunk_bytes", result.chunk_bytes}});
    return;
  }
  const std::string resumed =
      result.resumed_at > 0 ? fmt::format(", resumed at byte {}", result.resumed_at) : "";
  fmt::print("{}: {} tensors rotated, {} copied ({}){}\n", printable(arguments.output),
             result.rotated.size(), result.copied.size(), to_string(plan), resumed);
}

int rotate_file(const Arguments& arguments) {
  if (!arguments.execution.kernel.empty()) check_kernel(arguments.execution.kernel);
  check_output(arguments.output);
  const RopeConfig config = load_model_config(arguments.config, arguments.plan.part);
  const RotaryPlan plan = plan_from(config, plan_options(arguments.plan, config, true));
  StreamOptions options = arguments.stream;
  options.direction = arguments.inverse ? Direction::inverse : Direction::forward;
  options.threads = arguments.execution.threads;
  options.kernel = arguments.execution.kernel;
  options.table_file = arguments.table;
  if (is_cuda(arguments.device)) options.rotator = rotator_on_cuda(options.direction);
  std::optional<Progress> bar;
  options.progress = progress_of(bar);

  Json rotated = Json::array();
  StreamResult result;
  try {
    const SafetensorsReader file =
        reading("--input", [&] { return SafetensorsReader(arguments.input); });
    result = stream_rotate(plan, arguments.input, arguments.output, options);
    for (const std::string& name : result.rotated) {
      const SafetensorsEntry& tensor = file.at(name);
      rotated.push_back({{"name", name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
    }
  } catch (const Error& error) {
    bar.reset();
    fail_as_option(error);
  }
  bar.reset();
  print_result(arguments, plan, result, rotated);
  return kOk;
}

}  // namespace

void add_rotate(CLI::App& app, Work& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("rotate", "Rotate the tensors of a safetensors file");
  command->add_option("CONFIG", arguments->config, "A Hugging Face config.json or a GGUF file")
      ->required();
  command->add_option("--input", arguments->input, "Safetensors file to read")->required();
  command
      ->add_option("--output", arguments->output,
                   "File to write, whole or not at all; tensors not rotated are copied")
      ->required();
  add_list(*command, "--tensor", arguments->stream.tensors,
           "Tensors to rotate; default: all of 3 or 4 dimensions, a floating dtype and head_dim "
           "channels");
  command
      ->add_option("--positions", arguments->stream.positions,
                   "Position of the first token, or the name of a tensor of positions in the file: "
                   "(token), (batch, token) or (axes, batch, token)")
      ->capture_default_str();
  command->add_option("--layout", arguments->stream.layout, "Order of the dimensions")
      ->check(CLI::IsMember({"bthd", "bhtd", "thd"}))
      ->capture_default_str();
  command->add_flag("--fractional", arguments->stream.fractional,
                    "Allow a tensor of float positions (F32 or F64), as vision models have");
  command->add_flag("--inverse", arguments->inverse, "Rotate back");
  command
      ->add_option("--chunk", arguments->stream.chunk_bytes,
                   "Bytes in memory at a time; halved, with a message, where memory is short")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("64MiB");
  command->add_flag("--resume", arguments->stream.resume,
                    "Keep OUTPUT.partial and OUTPUT.journal when interrupted, and go on from them");
  command->add_option("--table", arguments->table,
                      "For a parity arithmetic: read the table from this file, or make it and save "
                      "it there");
  add_plan_options(*command, arguments->plan);
  add_execution_options(*command, arguments->execution);
  add_device_option(*command, arguments->device);
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  ropewalk rotate config.json --input qk.safetensors --output rotated.safetensors\n"
      "  ropewalk rotate config.json --input qk.safetensors --output out.safetensors \\\n"
      "      --tensor q --positions position_ids --layout bhtd --inverse\n"
      "  ropewalk rotate config.json --input large.safetensors --output out.safetensors --resume\n"
      "Tensors are rotated in chunks, so that files may be larger than memory.");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return rotate_file(*arguments); }; });
}

}  // namespace ropewalk::cli
