#include "base/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <numeric>

#include "base/safetensors_header.h"
#include "ropewalk/error.h"
#include "support/temporary_folder.h"
#include "support/write_limit.h"

namespace ropewalk {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;
using testing::WriteLimit;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A file of the format from its JSON text and data.
std::string file_of(std::string_view json, std::string_view data = "") {
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(json.size() >> 8 * i & 0xff);
  return bytes.append(json).append(data);
}

/// The message with which the reader refuses these bytes; a test failure where it does not.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder / "hostile.safetensors";
  write_file(path, bytes);
  try {
    const SafetensorsReader reader(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
    EXPECT_NE(std::string(error.what()).find("hostile.safetensors"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_LT(std::strlen(error.what()), 500u);
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << bytes.substr(0, 200);
  return {};
}

void expect_refusal(const std::string& bytes, std::string_view reason) {
  const std::string message = refusal(bytes);
  EXPECT_NE(message.find(reason), std::string::npos) << message;
}

TEST(Safetensors, WritesWhatItReads) {
  const TemporaryFolder folder;
  const auto path = folder / "two.safetensors";
  const std::vector<SafetensorsTensor> tensors = {
      {"weight \"q\"", "F32", {2, 3}}, {"scalar", "I64", {}}, {"none", "BF16", {0, 7}}};
  const SafetensorsMetadata metadata = {{"format", "pt"}, {"unit", "µrad"}};
  std::string data(32, '\0');
  std::iota(data.begin(), data.end(), 'A');
  SafetensorsWriter writer(path, tensors, metadata);
  writer.write(bytes_of(data).first(5));
  writer.write(bytes_of(data).subspan(5));
  EXPECT_FALSE(std::filesystem::exists(path)) << "must not appear before commit";
  writer.commit();

  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.metadata(), metadata);
  ASSERT_EQ(reader.tensors().size(), 3u);
  for (const SafetensorsTensor& tensor : tensors) {
    EXPECT_EQ(static_cast<const SafetensorsTensor&>(reader.at(tensor.name)), tensor);
  }
  EXPECT_EQ(reader.at("weight \"q\"").offset % 8, 0u);
  std::string part(6, '\0');
  reader.read(reader.at("weight \"q\""), 3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, data.substr(3, 6));
  std::string scalar(8, '\0');
  reader.read(reader.at("scalar"), 0, std::as_writable_bytes(std::span(scalar)));
  EXPECT_EQ(scalar, data.substr(24));
  EXPECT_THROW(reader.read(reader.at("scalar"), 1, std::as_writable_bytes(std::span(scalar))),
               Error);
  EXPECT_THROW((void)reader.at("absent"), Error);
  EXPECT_EQ(folder.listing(), std::vector<std::string>{"two.safetensors"});
}

TEST(Safetensors, TensorsMayBeNamedInAnyOrder) {
  const TemporaryFolder folder;
  write_file(folder / "a", file_of(R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]},
      "a":{"shape":[1],"data_offsets":[0,1],"dtype":"U8"}}   )",
                                   "1234"));
  const SafetensorsReader reader(folder / "a");
  EXPECT_EQ(reader.tensors()[0].name, "a");
  EXPECT_EQ(reader.tensors()[1].bytes, 3u);
}

TEST(Safetensors, RefusesWhatIsNotTheFormat) {
  expect_refusal("", "too few");
  expect_refusal("GGUF and much more text of another format", "not a safetensors file");
  expect_refusal(std::string(8, '\xff') + "{}", "not a safetensors file");
  expect_refusal(file_of(" {}"), "not a safetensors file");
  expect_refusal(file_of("{\"a\""), "not valid JSON");
  expect_refusal(file_of("{}}"), "not valid JSON");
  expect_refusal(file_of(std::string("{}\0", 3)), "zero byte");
  expect_refusal(file_of(std::string("{}\0\0  ", 6)), "zero byte");
  expect_refusal(file_of("{\"\xff\xfe\":1}"), "not valid JSON");
  expect_refusal(file_of(R"({"a":1})"), "a number");
  expect_refusal(file_of(R"({"a":[]})"), "an array");
  expect_refusal(file_of(R"({"a":null})"), "null");
  expect_refusal(file_of(R"({"__metadata__":{"a":1}})"), "a number");
  expect_refusal(file_of(R"({"__metadata__":{"a":{}}})"), "an object");
  expect_refusal(file_of(R"({"__metadata__":{"a":"1","a":"1"}})"), "twice");
  expect_refusal(file_of(R"({"__metadata__":{},"__metadata__":{}})"), "twice");
}

TEST(Safetensors, RefusesTensorsThatDoNotFit) {
  const auto tensor = [](std::string_view fields) {
    return file_of(std::string("{\"t\":{") + std::string(fields) + "}}", "12345678");
  };
  expect_refusal(tensor(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), "unknown dtype");
  expect_refusal(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), "needs 12 bytes");
  expect_refusal(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "8");
  expect_refusal(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), "begins at byte 4");
  expect_refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "data_offsets");
  expect_refusal(tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])"), "need 16 bytes");
  expect_refusal(tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "negative");
  expect_refusal(tensor(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "fraction");
  expect_refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), "a number");
  expect_refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "lacks");
  expect_refusal(tensor(R"("dtype":"F32","shape":[2])"), "lacks");
  expect_refusal(tensor(R"("shape":[2],"data_offsets":[0,8])"), "lacks");
  expect_refusal(tensor(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), "an array");
  expect_refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)"), "unknown");
  expect_refusal(tensor(R"("dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8])"),
                 "repeated");
  expect_refusal(tensor(R"("dtype":"F4","shape":[17],"data_offsets":[0,8])"), "whole bytes");
  // 2^32 · 2^32 · 4 bytes wraps to zero in 64 bits.
  expect_refusal(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
                 "2^63");
  expect_refusal(tensor(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8])"),
                 "2^63");
}

TEST(Safetensors, RefusesOverlapsGapsAndRepeatedNames) {
  const auto two = [](std::string_view name, int begin, int end) {
    return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},")" + std::string(name) +
                       R"(":{"dtype":"U8","shape":[4],"data_offsets":[)" + std::to_string(begin) +
                       "," + std::to_string(end) + "]}}",
                   std::string(static_cast<std::size_t>(end), 'x'));
  };
  expect_refusal(two("a", 4, 8), "twice");
  expect_refusal(two("b", 2, 6), "begins at byte 2");
  expect_refusal(two("b", 0, 4), "begins at byte 0");
  expect_refusal(two("b", 5, 9), "begins at byte 5");
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string whole =
      file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  for (std::size_t kept = 0; kept < whole.size(); ++kept) (void)refusal(whole.substr(0, kept));
  (void)refusal(whole + "9");
}

TEST(Safetensors, ControlCharactersDoNotReachTheMessage) {
  const std::string message = refusal(
      file_of(R"({"\n\u001b[2Jevil":{"dtype":"F33","shape":[],"data_offsets":[0,4]}})", "1234"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

/// A header of `bytes` bytes near the format's limit: `begin`, then `unit` as often as fits.
/// Written in pieces, so that the test itself stays small in memory. "#" in the unit becomes a
/// number.
void write_large_header(const std::filesystem::path& path, std::string_view begin,
                        std::string_view unit, std::size_t bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  std::string block;
  for (std::size_t i = 0; i < 8; ++i) block += static_cast<char>(bytes >> 8 * i & 0xff);
  block += begin;
  std::size_t written = 0;
  for (int number = 0; written < bytes + 8; ++number) {
    const std::size_t mark = unit.find('#');
    block += unit.substr(0, mark);
    if (mark != std::string_view::npos) {
      block.append(std::to_string(number)).append(unit.substr(mark + 1));
    }
    if (block.size() < 65'536 && written + block.size() < bytes + 8) continue;
    stream.write(block.data(), static_cast<std::streamsize>(block.size()));
    written += block.size();
    block.clear();
  }
  ASSERT_TRUE(stream.flush());
}

// A sanitizer keeps freed memory and slows down: there the limits say nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsCount = false;
#else
constexpr bool kLimitsCount = true;
#endif

class HostileHeader : public ::testing::TestWithParam<std::array<const char*, 3>> {};

TEST_P(HostileHeader, IsRefusedQuicklyAndInLittleMemory) {
  const auto [name, begin, unit] = GetParam();
  const TemporaryFolder folder;
  const auto path = folder / "hostile";
  write_large_header(path, begin, unit, 95'000'000);
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto start = std::chrono::steady_clock::now();
  std::string message;
  try {
    const SafetensorsReader reader(path);
  } catch (const Error& error) {
    message = error.what();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_FALSE(message.empty());
  EXPECT_EQ(message.find("not a safetensors file"), std::string::npos) << "not parsed at all";
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  const long kilobytes = after.ru_maxrss - before.ru_maxrss;
  RecordProperty("seconds", std::to_string(elapsed.count()));
  RecordProperty("kilobytes", std::to_string(kilobytes));
  if (!kLimitsCount) return;
  EXPECT_LT(elapsed.count(), 1.0);
  EXPECT_LT(kilobytes, 100'000);
}

constexpr const char* kGap =
    "                                                                                            ";
constexpr const char* kWide =
    R"("#":{"dtype":"U8","data_offsets":[0,0],"shape":[0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]},)";

INSTANTIATE_TEST_SUITE_P(
    Safetensors, HostileHeader,
    ::testing::Values(std::array{"LongName", "{\"", "nnnnnnnn"}, std::array{"Gap", "{", kGap},
                      std::array{"LongNumber", "{\"a\":{\"shape\":[", "11111111"},
                      std::array{"LongShape", "{\"a\":{\"shape\":[", "1,"},
                      std::array{"DeepArrays", "{\"a\":", "[["},
                      std::array{"DeepObjects", "{\"a\":", "{\"a\":"},
                      std::array{"ManyTensors", "{",
                                 R"("#":{"dtype":"U8","data_offsets":[0,0],"shape":[0]},)"},
                      std::array{"WideTensors", "{", kWide},
                      std::array{"ManyTexts", "{\"__metadata__\":{", "\"#\":\"\","}),
    [](const auto& parameter) { return std::string(parameter.param[0]); });

TEST(Safetensors, OnlyRegularFilesAreRead) {
  const TemporaryFolder folder;
  EXPECT_THROW(SafetensorsReader{folder / "absent"}, Error);
  EXPECT_THROW(SafetensorsReader{folder / ""}, Error);
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(SafetensorsReader{pipe}, Error);
  EXPECT_THROW(SafetensorsWriter(pipe, {}), Error);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

const std::vector<SafetensorsTensor> kBig = {{"x", "U8", {100'000}}};

TEST(Safetensors, AWriterThatFailsLeavesTheOldFile) {
  const TemporaryFolder folder;
  const auto path = folder / "kept";
  write_file(path, "old");
  const std::string data(100'000, 'x');
  {
    const WriteLimit full_disk(5'000);
    EXPECT_THROW(
        {
          SafetensorsWriter writer(path, kBig);
          writer.write(bytes_of(data));
        },
        Error);
  }
  {
    SafetensorsWriter abandoned(path, kBig);
    abandoned.write(bytes_of(data));
  }
  {
    SafetensorsWriter short_of_bytes(path, kBig);
    EXPECT_THROW(short_of_bytes.commit(), Error);
    EXPECT_THROW(short_of_bytes.write(bytes_of(data + "y")), Error);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.listing(), std::vector<std::string>{"kept"});
}

TEST(Safetensors, AWriterReplacesTheTargetOfALink) {
  const TemporaryFolder folder;
  write_file(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  SafetensorsWriter writer(folder / "link", {});
  writer.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "target").substr(8, 2), "{}");
}

TEST(Safetensors, TheWriterRefusesBadDeclarations) {
  const TemporaryFolder folder;
  const auto refuse = [&](std::vector<SafetensorsTensor> tensors,
                          SafetensorsMetadata metadata = {}) {
    EXPECT_THROW(SafetensorsWriter(folder / "x", tensors, metadata), Error);
  };
  refuse({{"a", "U8", {1}}, {"a", "U8", {1}}});
  refuse({{"__metadata__", "U8", {1}}});
  refuse({{"a", "float32", {1}}});
  refuse({{"a", "U8", {-1}}});
  refuse({{"a", "F64", {INT64_MAX}}});
  refuse({}, {{"a", "\xff"}});
  EXPECT_THROW(SafetensorsWriter(folder / "no/such/folder/x", {}), Error);
  EXPECT_TRUE(folder.listing().empty());
}

}  // namespace
}  // namespace ropewalk
