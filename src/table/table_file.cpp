// Saving and loading of RotaryTable: a safetensors file whose metadata ties it to its plan.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/safetensors.h"
#include "base/sha256.h"
#include "ropewalk/table.h"

namespace ropewalk {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::string_view kFormat = "ropewalk.table";
constexpr std::string_view kVersion = "1";

template <class... Args>
[[noreturn]] void refuse(const std::filesystem::path& path, fmt::format_string<Args...> reason,
                         Args&&... args) {
  fail(ErrorCode::io, "cannot load the table {}: {}", in_quotes(path.native(), kPathBytes),
       fmt::format(reason, std::forward<Args>(args)...));
}

/// The metadata of a table; `digest` covers the cosines, then the sines.
SafetensorsMetadata describe(const RotaryPlan& plan, Dtype dtype, std::int64_t rows,
                             const std::string& digest) {
  return {{"format", std::string(kFormat)},  {"version", std::string(kVersion)},
          {"plan", plan.fingerprint()},      {"dtype", std::string(name_of(dtype))},
          {"rows", fmt::format("{}", rows)}, {"sha256", digest}};
}

std::string digest_of(std::span<const std::byte> cos, std::span<const std::byte> sin) {
  Sha256 digest;
  digest.update(cos);
  digest.update(sin);
  return digest.hex();
}

/// Refuses metadata that differs in anything but the digest, which only the data can confirm.
void check_metadata(const SafetensorsReader& file, const RotaryPlan& plan, Dtype dtype,
                    std::int64_t rows) {
  const auto value = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (value("format") != kFormat) refuse(file.path(), "it is not a table of ropewalk");
  if (value("version") != kVersion) {
    refuse(file.path(), "version {} of the format was expected, the file has {}", kVersion,
           in_quotes(value("version")));
  }
  const SafetensorsMetadata expected = describe(plan, dtype, rows, value("sha256"));
  for (const auto& [key, text] : expected) {
    if (!file.metadata().contains(key)) refuse(file.path(), "its metadata has no {}", key);
    if (value(key) != text) {
      refuse(file.path(), "{} {} was expected, the file has {}", key, in_quotes(text),
             in_quotes(value(key)));
    }
  }
  if (file.metadata().size() != expected.size()) {
    refuse(file.path(), "its metadata has unknown keys");
  }
}

}  // namespace

void RotaryTable::save(const std::filesystem::path& path) const {
  const auto bytes_of = [&](std::span<const float> narrow, std::span<const double> wide) {
    return is_double() ? std::as_bytes(wide) : std::as_bytes(narrow);
  };
  const std::span<const std::byte> cos_bytes = bytes_of(cos_, cos64_);
  const std::span<const std::byte> sin_bytes = bytes_of(sin_, sin64_);
  const std::string element = is_double() ? "F64" : "F32";
  const std::array<SafetensorsTensor, 2> tensors = {{
      {"cos", element, {rows_, pairs()}},
      {"sin", element, {rows_, pairs()}},
  }};
  SafetensorsWriter writer(path, tensors,
                           describe(plan_, dtype_, rows_, digest_of(cos_bytes, sin_bytes)));
  writer.write(cos_bytes);
  writer.write(sin_bytes);
  writer.commit();
}

RotaryTable RotaryTable::load(const std::filesystem::path& path, RotaryPlan plan, Dtype dtype) {
  const SafetensorsReader file(path);
  // Before the shapes, so that a foreign file is called foreign.
  if (file.tensors().size() != 2 || file.find("cos") == nullptr || file.find("sin") == nullptr) {
    refuse(path, "it is not a table of ropewalk");
  }
  const SafetensorsEntry& cos_entry = file.at("cos");
  const SafetensorsEntry& sin_entry = file.at("sin");
  const std::int64_t rows = cos_entry.shape.empty() ? 0 : cos_entry.shape[0];
  check_metadata(file, plan, dtype, rows);

  const bool wide =
      plan.pairs() > 0 && (plan.arithmetic() == Arithmetic::parity_p4 || dtype == Dtype::float64);
  const std::string_view element = wide ? "F64" : "F32";
  const std::vector<std::int64_t> shape = {rows, plan.pairs()};
  for (const SafetensorsEntry* entry : {&cos_entry, &sin_entry}) {
    if (entry->dtype != element || entry->shape != shape || rows < 1) {
      refuse(path, "tensor {} must be {} of {} rows and {} pairs", in_quotes(entry->name), element,
             rows, plan.pairs());
    }
  }
  if (cos_entry.offset > sin_entry.offset) refuse(path, "its tensors are in the wrong order");

  RotaryTable table(std::move(plan), dtype, rows);
  const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(table.pairs());
  const auto fill = [&](const SafetensorsEntry& entry, auto& values) {
    values.resize(count);
    file.read(entry, 0, std::as_writable_bytes(std::span(values)));
    return std::as_bytes(std::span(values));
  };
  const std::span<const std::byte> cos_bytes =
      wide ? fill(cos_entry, table.cos64_) : fill(cos_entry, table.cos_);
  const std::span<const std::byte> sin_bytes =
      wide ? fill(sin_entry, table.sin64_) : fill(sin_entry, table.sin_);
  if (digest_of(cos_bytes, sin_bytes) != file.metadata().at("sha256")) {
    refuse(path, "its data does not match its checksum, so it was altered after it was written");
  }
  return table;
}

}  // namespace ropewalk
