#include "config/json_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace ropewalk::config {
namespace {

using nlohmann::json;

constexpr int kDeepest = 64;
constexpr double kLargestInteger = 0x1p53;  // integers beyond it are not exact as JSON numbers

/// A number that is not finite, as Python's json module writes it: not JSON, yet in published
/// configs. The parser is given a string in its place and ParseGuard puts the number back.
struct BareNumber {
  std::string_view word;
  std::string_view stand_in;  // as JSON
  double value;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kBareNumbers = {
    BareNumber{"NaN", R"("\u0000NaN")", std::numeric_limits<double>::quiet_NaN()},
    BareNumber{"Infinity", R"("\u0000Infinity")", kInfinity},
    BareNumber{"-Infinity", R"("\u0000-Infinity")", -kInfinity},
};

std::string with_stand_ins(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    std::string_view piece = text.substr(i, in_string && text[i] == '\\' ? 2 : 1);
    std::string_view written = piece;
    if (piece == "\"") in_string = !in_string;
    if (!in_string) {
      for (const BareNumber& bare : kBareNumbers) {
        if (!text.substr(i).starts_with(bare.word)) continue;
        piece = bare.word;
        written = bare.stand_in;
      }
    }
    result += written;
    i += piece.size();
  }
  return result;
}

/// The number whose stand-in this value is, or null.
const BareNumber* stood_in_for(const json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr || text->empty() || text->front() != '\0') return nullptr;
  const auto found =
      std::ranges::find(kBareNumbers, std::string_view(*text).substr(1), &BareNumber::word);
  return found == kBareNumbers.end() ? nullptr : &*found;
}

/// The value as a message shows it: short, and free of control characters.
std::string shown(const json& value) {
  constexpr std::size_t kLongest = 60;
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return fmt::format("{}", value.get<double>());
  }
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

/// Refuses what nlohmann-json accepts in silence: duplicate keys and any depth. Puts numbers in the
/// place of their stand-ins.
class ParseGuard {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) {
      fail(ErrorCode::invalid_config, "config: expected JSON nested at most {} deep", kDeepest);
    }
    if (event == json::parse_event_t::object_start) {
      open_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      open_.pop_back();
    } else if (event == json::parse_event_t::key) {
      check_key(parsed);
    } else if (event == json::parse_event_t::value) {
      if (const BareNumber* bare = stood_in_for(parsed)) parsed = bare->value;
    }
    return true;
  }

 private:
  void check_key(const json& key) {
    if (const BareNumber* bare = stood_in_for(key)) {
      fail(ErrorCode::invalid_config, "config: expected valid JSON: {} is no key", bare->word);
    }
    if (!open_.back().insert(key.get<std::string>()).second) {
      fail(ErrorCode::invalid_config, "config: expected every key once, got {} twice", shown(key));
    }
  }

  std::vector<std::set<std::string>> open_;
};

}  // namespace

json parse_object(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    fail(ErrorCode::invalid_config, "config: expected JSON text, got a NUL byte");
  }
  json parsed;
  try {
    parsed = json::parse(with_stand_ins(text), ParseGuard{});
  } catch (const json::exception& error) {
    fail(ErrorCode::invalid_config, "config: expected valid JSON: {}", error.what());
  }
  if (!parsed.is_object()) {
    fail(ErrorCode::invalid_config, "config: expected a JSON object, got {}", parsed.type_name());
  }
  return parsed;
}

ObjectReader::ObjectReader(const json& object, std::string path)
    : object_(object), path_(std::move(path)) {}

std::string ObjectReader::named(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void ObjectReader::wrong_type(std::string_view key, const json& value,
                              std::string_view expected) const {
  fail(ErrorCode::invalid_config, "{}: expected {}, got {}", named(key), expected, shown(value));
}

bool ObjectReader::has(std::string_view key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

bool ObjectReader::is_null(std::string_view key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

bool ObjectReader::is_array(std::string_view key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_array();
}

bool ObjectReader::is_boolean(std::string_view key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_boolean();
}

const json* ObjectReader::find(std::string_view key) {
  accept(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

double ObjectReader::number_in(std::string_view key, const json& value) const {
  if (!value.is_number()) wrong_type(key, value, "a number");
  const double number = value.get<double>();
  if (!std::isfinite(number)) wrong_type(key, value, "a finite number");
  return number;
}

std::int64_t ObjectReader::integer_in(std::string_view key, const json& value) const {
  const double number = number_in(key, value);
  if (number != std::trunc(number) || std::fabs(number) > kLargestInteger) {
    wrong_type(key, value, "a whole number of at most 2^53");
  }
  return static_cast<std::int64_t>(number);
}

std::optional<double> ObjectReader::number(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return number_in(key, *value);
}

std::optional<double> ObjectReader::positive_number(std::string_view key) {
  const auto value = number(key);
  if (value && !(*value > 0.0)) wrong_type(key, object_.at(std::string(key)), "a number above 0");
  return value;
}

std::optional<std::int64_t> ObjectReader::integer(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return integer_in(key, *value);
}

std::optional<std::int64_t> ObjectReader::positive_integer(std::string_view key) {
  const auto value = integer(key);
  if (value && *value <= 0) {
    wrong_type(key, object_.at(std::string(key)), "a whole number above 0");
  }
  return value;
}

std::optional<bool> ObjectReader::boolean(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong_type(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> ObjectReader::text(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong_type(key, *value, "a string");
  return value->get<std::string>();
}

std::optional<std::vector<double>> ObjectReader::numbers(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) wrong_type(key, *value, "a list of numbers");
  std::vector<double> result;
  for (const json& element : *value) result.push_back(number_in(key, element));
  return result;
}

std::optional<std::vector<std::int64_t>> ObjectReader::integers(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) wrong_type(key, *value, "a list of whole numbers");
  std::vector<std::int64_t> result;
  for (const json& element : *value) result.push_back(integer_in(key, element));
  return result;
}

std::optional<std::vector<std::string>> ObjectReader::texts(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) wrong_type(key, *value, "a list of strings");
  std::vector<std::string> result;
  for (const json& element : *value) {
    if (!element.is_string()) wrong_type(key, element, "a list of strings");
    result.push_back(element.get<std::string>());
  }
  return result;
}

const json& ObjectReader::value(std::string_view key) {
  accept(key);
  return object_.at(std::string(key));
}

const json* ObjectReader::object(std::string_view key) {
  const json* value = find(key);
  if (value != nullptr && !value->is_object()) wrong_type(key, *value, "an object");
  return value;
}

std::optional<double> ObjectReader::positive_number(std::span<const std::string_view> spellings) {
  std::optional<double> value;
  std::string_view said_by;
  for (const std::string_view spelling : spellings) {
    const auto here = positive_number(spelling);
    if (value && here && *here != *value) {
      fail(ErrorCode::invalid_config, "{}: expected the same value as {}, got {} and {}",
           named(spelling), named(said_by), *here, *value);
    }
    if (here && !value) {
      value = here;
      said_by = spelling;
    }
  }
  return value;
}

std::optional<std::int64_t> ObjectReader::positive_integer(
    std::span<const std::string_view> spellings) {
  std::optional<std::int64_t> value;
  for (const std::string_view spelling : spellings) {
    if (value) {
      accept(spelling);
    } else {
      value = positive_integer(spelling);
    }
  }
  return value;
}

void ObjectReader::accept(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) accept(key);
}

std::vector<std::string> ObjectReader::keys() const {
  std::vector<std::string> result;
  for (const auto& [key, value] : object_.items()) {
    if (!value.is_null()) result.push_back(key);
  }
  return result;
}

std::vector<std::string> ObjectReader::unread() const {
  std::vector<std::string> result;
  for (const auto& [key, value] : object_.items()) {
    if (!value.is_null() && !read_.contains(key)) result.push_back(key);
  }
  return result;
}

}  // namespace ropewalk::config
