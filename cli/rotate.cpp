#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/device.h"
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
    require(tensor != nullptr, "--tensor: {} has no tensor {}", arguments.input, in_quotes(name));
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
          arguments.input, head_dim);
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
    const Positions positions = positions_.for_view(view, tensor.name);
    const std::array rotations{Rotation::in_place(view)};
    if (plan_.arithmetic() == Arithmetic::exact || !plan_.rotates() || view.elements() == 0) {
      if (on_cuda_) {
        rotate_on_cuda(plan_, rotations, positions, options_.direction);
      } else {
        rotate(plan_, rotations, positions, options_);
      }
      return;
    }
    const std::int64_t rows = std::max<std::int64_t>(1, positions_.table_rows(view));
    const RotaryTable table(plan_, rows, view.dtype);
    if (on_cuda_) {
      rotate_on_cuda(table, rotations, positions, options_.direction);
    } else {
      rotate(table, rotations, positions, options_);
    }
  }

 private:
  const Arguments& arguments_;
  const RotaryPlan& plan_;
  PositionSource positions_;
  bool on_cuda_;
  RotateOptions options_;
};

void copy_tensor(const SafetensorsReader& file, const SafetensorsEntry& tensor,
                 SafetensorsWriter& writer) {
  std::vector<std::byte> chunk(std::min<std::uint64_t>(kCopyChunk, tensor.bytes));
  for (std::uint64_t at = 0; at < tensor.bytes; at += chunk.size()) {
    const auto length = std::min<std::uint64_t>(chunk.size(), tensor.bytes - at);
    file.read(tensor, at, std::span(chunk).first(length));
    writer.write(std::span(chunk).first(length));
  }
}

/// A file that cannot be written is failed work, not bad input.
template <class Body>
void writing(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw WorkFailed(error.what());
    throw;
  }
}

int rotate_file(const Arguments& arguments) {
  if (!arguments.execution.kernel.empty()) check_kernel(arguments.execution.kernel);
  const RopeConfig config = load_config(arguments.config, arguments.plan.part);
  const RotaryPlan plan = make_plan(config, plan_options(arguments.plan, config, true));
  const SafetensorsReader file(arguments.input);
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
    file.read(tensor, 0, data);
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
    fmt::print("{}: {} tensors rotated, {} copied ({})\n", arguments.output, rotated.size(),
               copied.size(), to_string(plan));
  }
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
  command
      ->add_option("--tensor", arguments->tensors,
                   "Tensors to rotate; default: all of 3 or 4 dimensions, a floating dtype and "
                   "head_dim channels")
      ->delimiter(',');
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
