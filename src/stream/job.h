// What a stream is going to do, checked in full before anything is written.
#pragma once

#include <map>
#include <optional>
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
  /// Where the tokens of a tensor stand; rows of table(), where there is one.
  [[nodiscard]] Positions positions(const TensorView& view, const std::string& name) const;
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
  /// A table, and how its rows are named where they do not begin at position 0.
  struct Lookup {
    RotaryTable table;
    std::optional<TablePositions> chosen;
  };
  std::map<Dtype, const SafetensorsEntry*> longest_;  ///< of the tensors that need a table
  std::map<Dtype, Lookup> lookups_;                   ///< by dtype of the data
};

}  // namespace ropewalk::stream
