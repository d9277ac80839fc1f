// JSON objects that remember which of their keys were read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ropewalk::config {

/// Parses a JSON text whose top level is an object. Error(invalid_config) for anything else, for a
/// duplicate key, and for nesting deeper than 64. The words NaN, Infinity and -Infinity, which are
/// not JSON but written by Python, are read as numbers that are not finite.
[[nodiscard]] nlohmann::json parse_object(std::string_view text);

/// Typed access to one object. Every accessor marks its key as read; a key that is absent or null
/// gives an empty optional, a value of another type is Error(invalid_config) that names the key.
class ObjectReader {
 public:
  /// `object` must be a JSON object that outlives the reader. `path` prefixes keys in messages.
  explicit ObjectReader(const nlohmann::json& object, std::string path = {});

  /// Present and not null; does not count as reading.
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] bool is_null(std::string_view key) const;
  [[nodiscard]] bool is_array(std::string_view key) const;
  [[nodiscard]] bool is_boolean(std::string_view key) const;

  std::optional<double> number(std::string_view key);
  std::optional<double> positive_number(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key);
  std::optional<std::int64_t> positive_integer(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::vector<double>> numbers(std::string_view key);
  std::optional<std::vector<std::int64_t>> integers(std::string_view key);
  std::optional<std::vector<std::string>> texts(std::string_view key);
  /// The value under `key`, which is there.
  const nlohmann::json& value(std::string_view key);
  /// The object under `key`, or null.
  const nlohmann::json* object(std::string_view key);

  /// The value of several spellings of one key; all of them count as read. Error(invalid_config)
  /// where two are present with different values.
  std::optional<double> positive_number(std::span<const std::string_view> spellings);
  /// The first spelling that is present; all of them count as read.
  std::optional<std::int64_t> positive_integer(std::span<const std::string_view> spellings);

  /// Marks a key as understood although its value plays no part.
  void accept(std::string_view key) { read_.emplace(key); }
  void accept(std::initializer_list<std::string_view> keys);

  /// Keys that nothing has read, without those that are null.
  [[nodiscard]] std::vector<std::string> unread() const;
  /// Every key whose value is not null.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// The key as messages name it: with the path of the object.
  [[nodiscard]] std::string named(std::string_view key) const;

 private:
  const nlohmann::json* find(std::string_view key);
  [[noreturn]] void wrong_type(std::string_view key, const nlohmann::json& value,
                               std::string_view expected) const;
  double number_in(std::string_view key, const nlohmann::json& value) const;
  std::int64_t integer_in(std::string_view key, const nlohmann::json& value) const;

  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace ropewalk::config
