// Tables for people: aligned text, Markdown, CSV.
#pragma once

#include <string>
#include <vector>

namespace ropewalk::cli {

enum class Align { left, right };

struct Column {
  std::string name;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// One cell per column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string markdown() const;
  /// RFC 4180 with plain newlines.
  [[nodiscard]] std::string csv() const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ropewalk::cli
