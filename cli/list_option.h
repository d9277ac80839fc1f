// Options that take lists.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ropewalk::cli {

/// The pieces between commas, empty ones included.
[[nodiscard]] std::vector<std::string> pieces_of(const std::string& text);

/// An option whose value is a list, between commas or as several arguments. Each value must pass
/// `each`; an empty one is refused, where CLI11's own delimiter would skip it in silence.
template <class T>
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<T>& values,
                      const std::string& description, const CLI::Validator& each = {}) {
  const auto parse = [&values, name, each](const std::vector<std::string>& texts) {
    std::vector<T> parsed;
    for (const std::string& text : texts) {
      for (std::string& piece : pieces_of(text)) {
        if (piece.empty()) {
          throw CLI::ValidationError(
              name, "expected a value on each side of a comma, got \"" + text + "\"");
        }
        if (const std::string error = each(piece); !error.empty()) {
          throw CLI::ValidationError(name, error);
        }
        T value{};
        if (!CLI::detail::lexical_cast(piece, value)) throw CLI::ConversionError(piece, name);
        parsed.push_back(std::move(value));
      }
    }
    values = std::move(parsed);
  };
  return command.add_option_function<std::vector<std::string>>(name, parse, description)
      ->type_name(CLI::detail::type_name<T>() + std::string(",..."));
}

}  // namespace ropewalk::cli
