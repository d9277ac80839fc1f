#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/safetensors.h"
#include "cli/command.h"
#include "cli/common.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/weight_permutation.h"

namespace ropewalk::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "ropewalk.pairing";
constexpr std::string_view kIndexSuffix = ".index.json";
constexpr std::uint64_t kChunk = 8u << 20;

struct Arguments {
  std::string input, output, config, to, from, part;
  bool dry_run = false;
  bool json = false;
};

/// One file of the checkpoint and what changes in it.
struct File {
  fs::path input, output;
  std::vector<PermutedTensor> permuted;
  std::uint64_t bytes = 0;
};

struct Checkpoint {
  std::vector<File> files;
  fs::path index_in, index_out;  ///< empty: a single file
};

std::string text_of_file(const fs::path& path) {
  constexpr std::uint64_t kLargest = 256u << 20;
  const InputFile file(path);
  require(file.size() <= kLargest, "INPUT: an index of {} bytes is larger than {}", file.size(),
          kLargest);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// File names of an index, each a plain name beside it.
std::set<std::string> shards_of(const fs::path& index) {
  const Json json = Json::parse(text_of_file(index), nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  require(json.is_object() && map != json.end() && map->is_object() && !map->empty(),
          "INPUT: {} is no index of a sharded checkpoint: expected an object \"weight_map\"",
          in_quotes(index.string()));
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    require(!name.empty() && name.find('/') == std::string::npos && name != "." && name != "..",
            "INPUT: {} places tensor {} in a file whose name is no plain name",
            in_quotes(index.string()), in_quotes(tensor));
    names.insert(name);
  }
  return names;
}

Checkpoint checkpoint_of(const Arguments& arguments) {
  fs::path input = arguments.input;
  const fs::path output = arguments.output;
  if (fs::is_directory(input)) {
    const fs::path index = input / "model.safetensors.index.json";
    input = fs::exists(index) ? index : input / "model.safetensors";
  }
  Checkpoint checkpoint;
  if (!input.string().ends_with(kIndexSuffix)) {
    checkpoint.files.push_back({input, output, {}, 0});
  } else {
    checkpoint.index_in = input;
    checkpoint.index_out = output / input.filename();
    for (const std::string& name : shards_of(input)) {
      checkpoint.files.push_back({input.parent_path() / name, output / name, {}, 0});
    }
  }
  std::error_code ignored;
  for (const File& file : checkpoint.files) {
    require(arguments.dry_run || !fs::equivalent(file.input, file.output, ignored),
            "OUTPUT: expected another place than the input's, {}", in_quotes(file.input.string()));
  }
  return checkpoint;
}

/// The pairing the weights have now: as a mark says, as --from says, or the model's own.
Pairing current_pairing(const SafetensorsMetadata& metadata, const Arguments& arguments,
                        const RopeConfig& config, const fs::path& path) {
  const auto mark = metadata.find(kMark);
  const Pairing given =
      arguments.from.empty() ? own_weight_pairing(config) : pairing_from_name(arguments.from);
  if (mark == metadata.end()) return given;
  const Pairing marked = pairing_from_name(mark->second);
  require(arguments.from.empty() || marked == given,
          "--from: {} is marked as {} by an earlier conversion, got {}", in_quotes(path.string()),
          mark->second, arguments.from);
  return marked;
}

void plan_file(File& file, const Arguments& arguments, const RopeConfig& config,
               const WeightFinder& finder) {
  const SafetensorsReader reader(file.input);
  const Pairing now = current_pairing(reader.metadata(), arguments, config, file.input);
  require(name_of(now) != arguments.to,
          "--to: the weights in {} are {} already; converting them again would destroy them",
          in_quotes(file.input.string()), arguments.to);
  for (const SafetensorsEntry& tensor : reader.tensors()) {
    file.bytes += tensor.bytes;
    if (auto permuted = finder.find(tensor)) {
      (void)row_bytes(tensor);
      file.permuted.push_back(std::move(*permuted));
    }
  }
}

void copy_tensor(const SafetensorsReader& reader, const SafetensorsEntry& tensor,
                 SafetensorsWriter& writer) {
  std::vector<std::byte> buffer;
  for (std::uint64_t begin = 0; begin < tensor.bytes; begin += buffer.size()) {
    buffer.resize(static_cast<std::size_t>(std::min(kChunk, tensor.bytes - begin)));
    reader.read(tensor, begin, buffer);
    writer.write(buffer);
  }
}

/// One head at a time: its rows are read in their old order and written in their new one.
void permute_tensor(const SafetensorsReader& reader, const SafetensorsEntry& tensor,
                    const PermutedTensor& permuted, Pairing to, SafetensorsWriter& writer) {
  const std::vector<std::int64_t> source = source_rows(permuted, to);
  const std::uint64_t row = row_bytes(tensor);
  std::vector<std::byte> group(static_cast<std::size_t>(row) * source.size());
  for (std::int64_t g = 0; g < permuted.groups; ++g) {
    reader.read(tensor, static_cast<std::uint64_t>(g) * group.size(), group);
    for (const std::int64_t from : source) {
      writer.write(
          std::span(group).subspan(static_cast<std::size_t>(from) * static_cast<std::size_t>(row),
                                   static_cast<std::size_t>(row)));
    }
  }
}

SafetensorsMetadata marked(SafetensorsMetadata metadata, Pairing to, const RopeConfig& config) {
  // Back in the model's own pairing the file is again as it was before it was first converted.
  if (metadata.erase(kMark) > 0 && to == own_weight_pairing(config)) return metadata;
  metadata.emplace(kMark, name_of(to));
  return metadata;
}

std::uint64_t convert_file(const File& file, Pairing to, const RopeConfig& config,
                           Progress& progress, std::uint64_t done) {
  const SafetensorsReader reader(file.input);
  const std::vector<SafetensorsTensor> tensors(reader.tensors().begin(), reader.tensors().end());
  SafetensorsWriter writer(file.output, tensors, marked(reader.metadata(), to, config));
  for (const SafetensorsEntry& tensor : reader.tensors()) {
    progress.show(static_cast<std::int64_t>(done >> 20), tensor.name);
    const auto permuted =
        std::find_if(file.permuted.begin(), file.permuted.end(),
                     [&](const PermutedTensor& p) { return p.name == tensor.name; });
    if (permuted == file.permuted.end()) {
      copy_tensor(reader, tensor, writer);
    } else {
      permute_tensor(reader, tensor, *permuted, to, writer);
    }
    done += tensor.bytes;
  }
  writer.commit();
  return done;
}

void report(const Checkpoint& checkpoint, const Arguments& arguments) {
  if (arguments.json) {
    Json tensors = Json::array();
    for (const File& file : checkpoint.files) {
      for (const PermutedTensor& p : file.permuted) {
        tensors.push_back({{"name", p.name},
                           {"file", file.input.string()},
                           {"heads", p.groups},
                           {"rows_per_head", p.group_rows},
                           {"first_row", p.window.offset},
                           {"rotary_rows", p.window.width}});
      }
    }
    print_json({{"to", arguments.to}, {"written", !arguments.dry_run}, {"tensors", tensors}});
    return;
  }
  Table table({{"tensor"}, {"heads", Align::right}, {"rows", Align::right}, {"rotated"}});
  for (const File& file : checkpoint.files) {
    for (const PermutedTensor& p : file.permuted) {
      table.add({p.name, fmt::format("{}", p.groups), fmt::format("{}", p.group_rows),
                 fmt::format("{} to {}", p.window.offset, p.window.offset + p.window.width - 1)});
    }
  }
  if (arguments.dry_run) fmt::print("{}", table.text());
}

int convert(const Arguments& arguments) {
  const RopeConfig config = load_model_config(arguments.config, arguments.part);
  require(config.rotates, "CONFIG: expected a model with rotary embeddings");
  const Pairing to = pairing_from_name(arguments.to);
  const WeightFinder finder(config, slice_leads(arguments.config));
  Checkpoint checkpoint = checkpoint_of(arguments);
  std::size_t permuted = 0;
  std::uint64_t bytes = 0;
  for (File& file : checkpoint.files) {
    plan_file(file, arguments, config, finder);
    permuted += file.permuted.size();
    bytes += file.bytes;
  }
  require(permuted > 0, "INPUT: no tensor of {} is a rotated projection that is known",
          in_quotes(arguments.input));
  if (!arguments.dry_run) {
    if (!checkpoint.index_out.empty()) fs::create_directories(checkpoint.index_out.parent_path());
    Progress progress(static_cast<std::int64_t>(bytes >> 20));
    std::uint64_t done = 0;
    for (const File& file : checkpoint.files) {
      done = convert_file(file, to, config, progress, done);
    }
    if (!checkpoint.index_out.empty()) {
      const std::string index = text_of_file(checkpoint.index_in);
      AtomicFile file(checkpoint.index_out);
      file.write(std::as_bytes(std::span(index)));
      file.commit();
    }
  }
  report(checkpoint, arguments);
  if (!arguments.json) {
    fmt::print("{} tensors {} to the {} pairing.\n", permuted,
               arguments.dry_run ? "would be permuted" : "permuted", arguments.to);
  }
  return kOk;
}

}  // namespace

void add_convert_pairing(CLI::App& app, Work& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "convert-pairing", "Permute a checkpoint's q and k weights between the pairings");
  command
      ->add_option("INPUT", arguments->input,
                   "A safetensors file, a model.safetensors.index.json, or the folder of either")
      ->required();
  command->add_option("OUTPUT", arguments->output, "The file to write; a folder for a sharded one")
      ->required();
  command->add_option("--config", arguments->config, "The model's config.json")->required();
  command->add_option("--to", arguments->to, "The pairing of the weights afterwards")
      ->required()
      ->check(CLI::IsMember({"half", "interleaved"}));
  command
      ->add_option("--from", arguments->from,
                   "Their pairing now; default: as marked by an earlier conversion, else as the "
                   "model's code in transformers expects")
      ->check(CLI::IsMember({"half", "interleaved"}));
  command->add_option("--part", arguments->part, "Part of the model, where it has several");
  command->add_flag("--dry-run", arguments->dry_run, "List what would be permuted; write nothing");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Rotated rows of q and k (weights, biases, norms by channel; the rotary rows of latent\n"
      "attention) change places, so that attention scores are the same under the other pairing.\n"
      "The result is marked in its metadata; a second conversion is refused.\n"
      "Examples:\n"
      "  ropewalk convert-pairing model.safetensors half.safetensors --config config.json \\\n"
      "      --from interleaved --to half\n"
      "  ropewalk convert-pairing folder out --config folder/config.json --to interleaved "
      "--dry-run");
  command->callback([arguments, &chosen] { chosen = [arguments] { return convert(*arguments); }; });
}

}  // namespace ropewalk::cli
