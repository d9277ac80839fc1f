#include "stream/job.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/check.h"
#include "base/safetensors_header.h"
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
    require(tensor != nullptr, "tensors: {} has no tensor {}", in_quotes(file_.path().native()),
            in_quotes(name));
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
          in_quotes(file_.path().native()), plan_.head_dim());
}

void Job::check_tensor(const SafetensorsEntry& tensor) {
  const TensorView view = view_of(tensor, nullptr, options_.layout);
  const Positions positions = positions_.for_view(view, tensor.name);
  if (view.elements() == 0) return;
  const bool needs_table = plan_.arithmetic() != Arithmetic::exact && plan_.rotates();
  std::int64_t rows = 0;
  if (needs_table) {
    rows = std::max<std::int64_t>(1, positions_.table_rows(view));
    std::int64_t& most = table_rows_[view.dtype];
    most = std::max(most, rows);
  }
  const PositionReader checked(positions, {.batch = view.size[kBatch],
                                           .tokens = view.size[kToken],
                                           .axes = plan_.axes(),
                                           .rows = rows,
                                           .float64_data = view.dtype == Dtype::float64});
  (void)checked;
}

void Job::make_tables() {
  const std::filesystem::path& path = options_.table_file;
  require(path.empty() || table_rows_.size() == 1,
          "table_file: one file is for a parity arithmetic and tensors of one dtype, got {}",
          table_rows_.empty() ? "the exact arithmetic" : "several dtypes");
  for (const auto& [dtype, rows] : table_rows_) {
    if (!path.empty() && std::filesystem::exists(path)) {
      const auto& table =
          tables_.emplace(dtype, RotaryTable::load(path, plan_, dtype)).first->second;
      require(table.rows() >= rows, "table_file: {} has {} rows, but positions need {}",
              in_quotes(path.native()), table.rows(), rows);
      continue;
    }
    const auto& table = tables_.emplace(dtype, RotaryTable(plan_, rows, dtype)).first->second;
    if (!path.empty()) table.save(path);
  }
}

bool Job::rotates(const SafetensorsEntry& tensor) const {
  return std::ranges::find(names_, tensor.name) != names_.end();
}

const RotaryTable* Job::table(Dtype dtype) const {
  const auto found = tables_.find(dtype);
  return found == tables_.end() ? nullptr : &found->second;
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
