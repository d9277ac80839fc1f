#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include "base/check.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/device.h"
#include "cli/list_option.h"
#include "cli/rotate_tensor.h"
#include "ropewalk/table.h"

namespace ropewalk::cli {
namespace {

constexpr std::size_t kCopyChunk = std::size_t{16} << 20;

struct Arguments {
  std::string config;
  std::string input, output;
  std::vector<std::string> tensors;
  std::string positions = "0";
  std::string layout = "bthd";
  bool inverse = false;
  bool fractional = false;
  bool json = false;
  PlanArguments plan;
  ExecutionArguments execution;
  std::string device = "cpu";
};

/// Why a tensor cannot be rotated; empty where it can.
std::string obstacle(const SafetensorsEntry& tensor, std::int64_t head_dim) {
  if (!rotatable_dtype(tensor.dtype)) {
    return fmt::format("has dtype {}, not F64, F32, F16 or BF16", tensor.dtype);
  }
  if (tensor.shape.size() != 3 && tensor.shape.size() != 4) {
    return fmt::format("has {} dimensions, not 3 or 4", tensor.shape.size());
  }
  if (tensor.shape.back() != head_dim) {
    return fmt::format("has {} channels, but head_dim is {}", tensor.shape.back(), head_dim);
  }
  return {};
}

/// The tensors named, or all that look like q or k.
std::vector<std::string> tensors_to_rotate(const Arguments& arguments,
                                           const SafetensorsReader& file, std::int64_t head_dim) {
  for (const std::string& name : arguments.tensors) {
    const SafetensorsEntry* tensor = file.find(name);
    require(tensor != nullptr, "--tensor: {} has no tensor {}", in_quotes(arguments.input),
            in_quotes(name));
    const std::string reason = obstacle(*tensor, head_dim);
    require(reason.empty(), "--tensor: {} {}", in_quotes(name), reason);
  }
  if (!arguments.tensors.empty()) return arguments.tensors;
  std::vector<std::string> names;
  const bool named_positions = !integer_of(arguments.positions).has_value();
  for (const SafetensorsEntry& tensor : file.tensors()) {
    if (named_positions && tensor.name == arguments.positions) continue;
    if (obstacle(tensor, head_dim).empty()) {
      names.push_back(tensor.name);
    }
  }
  require(!names.empty(),
          "--input: {} has no tensor of 3 or 4 dimensions, a floating dtype and {} channels",
          in_quotes(arguments.input), head_dim);
  return names;
}

class TensorRotator {
 public:
  TensorRotator(const Arguments& arguments, const RotaryPlan& plan, const SafetensorsReader& file)
      : arguments_(arguments),
        plan_(plan),
        positions_(arguments.positions, arguments.fractional, file),
        on_cuda_(is_cuda(arguments.device)) {
    options_.direction = arguments.inverse ? Direction::inverse : Direction::forward;
    options_.threads = arguments.execution.threads;
    options_.kernel = arguments.execution.kernel;
  }

  void rotate_in_place(const SafetensorsEntry& tensor, std::byte* data) const {
    const TensorView view = view_of(tensor, data, arguments_.layout);
    naming({{"positions", "--positions"},
            {"plan", "--arithmetic"},
            {"direction", "--inverse"},
            {"rotations[0].in", "--input"}},
           [&] { rotate_view(view, tensor.name); });
  }

 private:
  void rotate_view(const TensorView& view, const std::string& name) const {
    const std::array rotations{Rotation::in_place(view)};
    if (plan_.arithmetic() == Arithmetic::exact || !plan_.rotates()) {
      rotate_with(plan_, rotations, positions_.for_view(view, name));
    } else if (view.elements() > 0) {
      const TablePositions rows = positions_.for_table(view, name);
      rotate_with(RotaryTable(plan_, rows.positions, view.dtype), rotations, rows.description);
    }
  }

  template <class PlanOrTable>
  void rotate_with(const PlanOrTable& plan, std::span<const Rotation> rotations,
                   const Positions& positions) const {
    if (on_cuda_) {
      rotate_on_cuda(plan, rotations, positions, options_.direction);
    } else {
      rotate(plan, rotations, positions, options_);
    }
  }

  const Arguments& arguments_;
  const RotaryPlan& plan_;
  PositionSource positions_;
  bool on_cuda_;
  RotateOptions options_;
};

/// A file that cannot be written is failed work, not bad input.
template <class Body>
void writing(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw WorkFailed(fmt::format("--output: {}", error.what()));
    throw;
  }
}

void copy_tensor(const SafetensorsReader& file, const SafetensorsEntry& tensor,
                 SafetensorsWriter& writer) {
  std::vector<std::byte> chunk(std::min<std::uint64_t>(kCopyChunk, tensor.bytes));
  for (std::uint64_t at = 0; at < tensor.bytes; at += chunk.size()) {
    const auto length = std::min<std::uint64_t>(chunk.size(), tensor.bytes - at);
    const std::span part = std::span(chunk).first(length);
    reading("--input", [&] { file.read(tensor, at, part); });
    writing([&] { writer.write(part); });
  }
}

/// A place where no file can be is wrong usage.
void check_output(const std::filesystem::path& output) {
  std::error_code ignored;
  const std::filesystem::path folder = output.has_parent_path() ? output.parent_path() : ".";
  require(std::filesystem::is_directory(folder, ignored),
          "--output: expected a file in a folder that exists, got {}", in_quotes(output.native()));
  const auto there = std::filesystem::status(output, ignored);
  require(output.has_filename() &&
              (!std::filesystem::exists(there) || std::filesystem::is_regular_file(there)),
          "--output: expected the name of a regular file, got {}", in_quotes(output.native()));
}

int rotate_file(const Arguments& arguments) {
  if (!arguments.execution.kernel.empty()) check_kernel(arguments.execution.kernel);
  check_output(arguments.output);
  const RopeConfig config = load_model_config(arguments.config);
  const RotaryPlan plan = plan_from(config, plan_options(arguments.plan, config, true));
  const SafetensorsReader file =
      reading("--input", [&] { return SafetensorsReader(arguments.input); });
  const auto names = tensors_to_rotate(arguments, file, plan.head_dim());
  const TensorRotator rotator(arguments, plan, file);

  Json rotated = Json::array();
  Json copied = Json::array();
  std::vector<SafetensorsTensor> declared(file.tensors().begin(), file.tensors().end());
  std::optional<SafetensorsWriter> writer;
  writing([&] { writer.emplace(arguments.output, declared, file.metadata()); });
  for (const SafetensorsEntry& tensor : file.tensors()) {
    if (std::find(names.begin(), names.end(), tensor.name) == names.end()) {
      copied.push_back(tensor.name);
      copy_tensor(file, tensor, *writer);
      continue;
    }
    std::vector<std::byte> data(tensor.bytes);
    reading("--input", [&] { file.read(tensor, 0, data); });
    rotator.rotate_in_place(tensor, data.data());
    writing([&] { writer->write(data); });
    rotated.push_back({{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
  }
  writing([&] { writer->commit(); });

  if (arguments.json) {
    print_json({{"input", arguments.input},
                {"output", arguments.output},
                {"direction", arguments.inverse ? "inverse" : "forward"},
                {"plan", to_string(plan)},
                {"fingerprint", plan.fingerprint()},
                {"rotated", rotated},
                {"copied", copied}});
  } else {
    fmt::print("{}: {} tensors rotated, {} copied ({})\n", printable(arguments.output),
               rotated.size(), copied.size(), to_string(plan));
  }
  return kOk;
}

}  // namespace

void add_rotate(CLI::App& app, Work& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("rotate", "Rotate the tensors of a safetensors file");
  command->add_option("CONFIG", arguments->config, "A Hugging Face config.json")->required();
  command->add_option("--input", arguments->input, "Safetensors file to read")->required();
  command
      ->add_option("--output", arguments->output,
                   "File to write, whole or not at all; tensors not rotated are copied")
      ->required();
  add_list(*command, "--tensor", arguments->tensors,
           "Tensors to rotate; default: all of 3 or 4 dimensions, a floating dtype and head_dim "
           "channels");
  command
      ->add_option("--positions", arguments->positions,
                   "Position of the first token, or the name of a tensor of positions in the file: "
                   "(token), (batch, token) or (axes, batch, token)")
      ->capture_default_str();
  command->add_option("--layout", arguments->layout, "Order of the dimensions")
      ->check(CLI::IsMember({"bthd", "bhtd", "thd"}))
      ->capture_default_str();
  command->add_flag("--fractional", arguments->fractional,
                    "Allow a tensor of float positions (F32 or F64), as vision models have");
  command->add_flag("--inverse", arguments->inverse, "Rotate back");
  add_plan_options(*command, arguments->plan);
  add_execution_options(*command, arguments->execution);
  add_device_option(*command, arguments->device);
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  ropewalk rotate config.json --input qk.safetensors --output rotated.safetensors\n"
      "  ropewalk rotate config.json --input qk.safetensors --output out.safetensors \\\n"
      "      --tensor q --positions position_ids --layout bhtd --inverse");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return rotate_file(*arguments); }; });
}

}  // namespace ropewalk::cli
