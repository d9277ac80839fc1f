#include "stream/job.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/safetensors_header.h"
#include "base/text.h"
#include "rotate/cpu/kernels.h"
#include "rotate/positions.h"

namespace ropewalk::stream {
namespace {

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

}  // namespace

Job::Job(const RotaryPlan& plan, const std::filesystem::path& input, const StreamOptions& options)
    : plan_(plan),
      options_(options),
      file_(input),
      positions_(options.positions, options.fractional, file_) {
  require(options.chunk_bytes > 0, "chunk_bytes: expected at least 1, got 0");
  (void)cpu::kernel_named(options.kernel);  // refuses a wrong name
  const std::string& layout = options.layout;
  require(layout == "bthd" || layout == "bhtd" || layout == "thd",
          "layout: expected bthd, bhtd or thd, got {}", in_quotes(layout));
  choose_tensors();
  for (const SafetensorsEntry& tensor : file_.tensors()) {
    if (rotates(tensor)) check_tensor(tensor);
  }
  make_tables();
}

void Job::choose_tensors() {
  names_ = options_.tensors;
  for (const std::string& name : names_) {
    const SafetensorsEntry* tensor = file_.find(name);
    require(tensor != nullptr, "tensors: {} has no tensor {}",
            in_quotes(file_.path().native(), kPathBytes), in_quotes(name));
    const std::string reason = obstacle(*tensor, plan_.head_dim());
    require(reason.empty(), "tensors: {} {}", in_quotes(name), reason);
  }
  if (!names_.empty()) return;
  const bool named_positions = !integer_of(options_.positions).has_value();
  for (const SafetensorsEntry& tensor : file_.tensors()) {
    if (named_positions && tensor.name == options_.positions) continue;
    if (obstacle(tensor, plan_.head_dim()).empty()) names_.push_back(tensor.name);
  }
  require(!names_.empty(),
          "input: {} has no tensor of 3 or 4 dimensions, a floating dtype and {} channels",
          in_quotes(file_.path().native(), kPathBytes), plan_.head_dim());
}

void Job::check_tensor(const SafetensorsEntry& tensor) {
  const TensorView view = view_of(tensor, nullptr, options_.layout);
  const Positions positions = positions_.for_view(view, tensor.name);
  if (view.elements() == 0) return;
  if (plan_.arithmetic() != Arithmetic::exact && plan_.rotates()) {
    const SafetensorsEntry*& longest = longest_[view.dtype];
    const auto tokens_of = [this](const SafetensorsEntry& entry) {
      return view_of(entry, nullptr, options_.layout).size[kToken];
    };
    if (longest == nullptr || tokens_of(*longest) < view.size[kToken]) longest = &tensor;
    (void)positions_.for_table(view, tensor.name);  // refuses floats and bad positions
    return;
  }
  const PositionReader checked(positions, {.batch = view.size[kBatch],
                                           .tokens = view.size[kToken],
                                           .axes = plan_.axes(),
                                           .rows = 0,
                                           .float64_data = view.dtype == Dtype::float64});
  (void)checked;
}

void Job::make_tables() {
  const std::filesystem::path& path = options_.table_file;
  require(path.empty() || longest_.size() == 1,
          "table_file: one file is for a parity arithmetic and tensors of one dtype, got {}",
          longest_.empty() ? "the exact arithmetic" : "several dtypes");
  for (const auto& [dtype, tensor] : longest_) {
    const TensorView view = view_of(*tensor, nullptr, options_.layout);
    if (path.empty()) {
      TablePositions chosen = positions_.for_table(view, tensor->name);
      RotaryTable table(plan_, chosen.positions, dtype);
      lookups_.emplace(dtype, Lookup{std::move(table), std::move(chosen)});
      continue;
    }
    // A file has every position from 0 on, so that it serves other positions another time.
    const std::int64_t rows = std::max<std::int64_t>(1, positions_.table_rows(view));
    const bool exists = std::filesystem::exists(path);
    RotaryTable table =
        exists ? RotaryTable::load(path, plan_, dtype) : RotaryTable(plan_, rows, dtype);
    require(table.rows() >= rows, "table_file: {} has {} rows, but positions need {}",
            in_quotes(path.native(), kPathBytes), table.rows(), rows);
    const PositionReader checked(positions_.for_view(view, tensor->name),
                                 {.batch = view.size[kBatch],
                                  .tokens = view.size[kToken],
                                  .axes = plan_.axes(),
                                  .rows = table.rows(),
                                  .float64_data = dtype == Dtype::float64});
    (void)checked;
    if (!exists) table.save(path);
    lookups_.emplace(dtype, Lookup{std::move(table), std::nullopt});
  }
}

bool Job::rotates(const SafetensorsEntry& tensor) const {
  return std::ranges::find(names_, tensor.name) != names_.end();
}

const RotaryTable* Job::table(Dtype dtype) const {
  const auto found = lookups_.find(dtype);
  return found == lookups_.end() ? nullptr : &found->second.table;
}

Positions Job::positions(const TensorView& view, const std::string& name) const {
  const auto found = lookups_.find(view.dtype);
  const bool chosen = found != lookups_.end() && found->second.chosen.has_value();
  return chosen ? found->second.chosen->description : positions_.for_view(view, name);
}

std::string Job::identity() const {
  std::error_code ignored;  // a time that cannot be told is the same in every run
  const auto changed = std::filesystem::last_write_time(file_.path(), ignored).time_since_epoch();
  const std::vector<SafetensorsTensor> tensors(file_.tensors().begin(), file_.tensors().end());
  return fmt::format(
      "plan {}\npositions {}\nlayout {}\ninverse {}\nfractional {}\ntensors {}\ninput {} bytes\n"
      "changed {}\n{}",
      plan_.fingerprint(), options_.positions, options_.layout,
      options_.direction == Direction::inverse, options_.fractional, fmt::join(names_, "\n"),
      std::filesystem::file_size(file_.path()),
      std::chrono::duration_cast<std::chrono::nanoseconds>(changed).count(),
      format_safetensors_header(tensors, file_.metadata()));
}

}  // namespace ropewalk::stream
