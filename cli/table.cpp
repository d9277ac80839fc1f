#include "cli/table.h"

#include <algorithm>
#include <cstdint>

namespace ropewalk::cli {
namespace {

/// Columns on a terminal: code points, of which none here is wide or combining.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return align == Align::left ? text + space : space + text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string markdown_cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

}  // namespace

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const Column& column : columns_) widths.push_back(width_of(column.name));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

std::string Table::text() const {
  const std::vector<std::size_t> width = widths();
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string row;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      row += (i == 0 ? "" : "  ") + padded(cell(i), width[i], columns_[i].align);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + '\n';
  };
  line([&](std::size_t i) { return columns_[i].name; });
  line([&](std::size_t i) { return std::string(width[i], '-'); });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
  return out;
}

std::string Table::markdown() const {
  std::string out = "|";
  for (const Column& column : columns_) out += ' ' + markdown_cell(column.name) + " |";
  out += "\n|";
  for (const Column& column : columns_) out += column.align == Align::right ? "---:|" : "---|";
  out += '\n';
  for (const auto& row : rows_) {
    out += '|';
    for (const std::string& cell : row) out += ' ' + markdown_cell(cell) + " |";
    out += '\n';
  }
  return out;
}

std::string Table::csv() const {
  std::string out;
  const auto line = [&](const auto& cell) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i != 0) out += ',';
      out += csv_cell(cell(i));
    }
    out += '\n';
  };
  line([&](std::size_t i) { return columns_[i].name; });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
  return out;
}

}  // namespace ropewalk::cli
