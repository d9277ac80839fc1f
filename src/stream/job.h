// What a stream is going to do, checked in full before anything is written.
#pragma once

#include <map>
#include <string>

#include "base/safetensors.h"
#include "ropewalk/stream.h"
#include "stream/position_source.h"

namespace ropewalk::stream {

class Job {
 public:
  /// Throws Error naming the option for anything that stands in the way, bad positions included.
  Job(const RotaryPlan& plan, const std::filesystem::path& input, const StreamOptions& options);

  [[nodiscard]] const SafetensorsReader& file() const noexcept { return file_; }
  [[nodiscard]] const PositionSource& positions() const noexcept { return positions_; }
  [[nodiscard]] bool rotates(const SafetensorsEntry& tensor) const;
  /// The table for data of a dtype; null where the angles need none.
  [[nodiscard]] const RotaryTable* table(Dtype dtype) const;
  /// Everything the output's bytes depend on: plan, options, and the input by its size, its time
  /// of change and its header.
  [[nodiscard]] std::string identity() const;

 private:
  void choose_tensors();
  void check_tensor(const SafetensorsEntry& tensor);
  void make_tables();

  const RotaryPlan& plan_;
  const StreamOptions& options_;
  SafetensorsReader file_;
  PositionSource positions_;
  std::vector<std::string> names_;
  std::map<Dtype, std::int64_t> table_rows_;  ///< by dtype of the data
  std::map<Dtype, RotaryTable> tables_;
};

}  // namespace ropewalk::stream
