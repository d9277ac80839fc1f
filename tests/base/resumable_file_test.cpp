#include "base/resumable_file.h"

#include <gtest/gtest.h>

#include <string>

#include "ropewalk/error.h"
#include "support/temporary_folder.h"
#include "support/write_limit.h"

namespace ropewalk {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class ResumableFileTest : public ::testing::Test {
 protected:
  /// Two noted pieces, as an interrupted run leaves them.
  void interrupt() const {
    ResumableFile file(path, "job");
    file.append(bytes("first "));
    file.append(bytes("second "));
  }
  void expect_refused(const std::string& job, std::string_view words) const {
    const std::string before = read_file(partial) + read_file(journal);
    try {
      const ResumableFile file(path, job);
      FAIL() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
    EXPECT_EQ(read_file(partial) + read_file(journal), before);
  }

  TemporaryFolder folder;
  std::filesystem::path path = folder / "out";
  std::filesystem::path partial = folder / "out.partial";
  std::filesystem::path journal = folder / "out.journal";
};

TEST_F(ResumableFileTest, GoesOnBehindTheNotedPieces) {
  interrupt();
  ResumableFile file(path, "job");
  EXPECT_EQ(file.size(), 13U);
  file.append(bytes("third"));
  file.commit();
  EXPECT_EQ(read_file(path), "first second third");
  EXPECT_EQ(folder.listing(), std::vector<std::string>{"out"});
}

TEST_F(ResumableFileTest, WhatWasNotNotedIsCutOff) {
  interrupt();
  write_file(partial, read_file(partial) + "torn piece");
  EXPECT_EQ(ResumableFile(path, "job").size(), 13U);
  EXPECT_EQ(read_file(partial), "first second ");
}

TEST_F(ResumableFileTest, ALineTornAnywhereIsCutOff) {
  interrupt();
  const std::string whole = read_file(journal);
  const std::string data = read_file(partial);
  const std::size_t header = whole.find('\n') + 1;
  const std::size_t second = whole.find('\n', header) + 1;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(journal, whole.substr(0, length));
    write_file(partial, data);
    const std::uint64_t noted = length < second ? 0 : 6;
    EXPECT_EQ(ResumableFile(path, "job").size(), noted) << length;
    EXPECT_EQ(read_file(partial).size(), noted);
  }
}

TEST_F(ResumableFileTest, AnotherJobIsRefused) {
  interrupt();
  expect_refused("another job", "another job");
}

TEST_F(ResumableFileTest, AnAlteredPieceIsRefused) {
  interrupt();
  std::string data = read_file(partial);
  data[7] ^= 1;
  write_file(partial, data);
  expect_refused("job", "differs from its journal between bytes 6 and 13");
  write_file(partial, data.substr(0, 10));
  expect_refused("job", "differs");
}

TEST_F(ResumableFileTest, ADamagedLineIsRefused) {
  interrupt();
  const std::string whole = read_file(journal);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = damaged[at] == 'x' ? 'y' : 'x';
    write_file(journal, damaged);
    if (at < whole.rfind('\n', whole.size() - 2)) {
      expect_refused("job", "damaged");
    } else {  // the last line may have been torn by a power failure
      EXPECT_LE(ResumableFile(path, "job").size(), 6U) << at;
      write_file(partial, "first second ");
    }
  }
}

TEST_F(ResumableFileTest, TwoAtOnceAreRefused) {
  const ResumableFile first(path, "job");
  expect_refused("job", "another process");
}

TEST_F(ResumableFileTest, AFullDiskKeepsWhatWasNoted) {
  {
    ResumableFile file(path, "job");
    file.append(bytes(std::string(1000, 'a')));
    const testing::WriteLimit limit(1500);
    EXPECT_THROW(file.append(bytes(std::string(1000, 'b'))), Error);
    EXPECT_EQ(file.size(), 1000U);
  }
  ResumableFile file(path, "job");
  EXPECT_EQ(file.size(), 1000U);
  file.append(bytes(std::string(1000, 'c')));
  file.commit();
  EXPECT_EQ(read_file(path), std::string(1000, 'a') + std::string(1000, 'c'));
}

TEST_F(ResumableFileTest, AFolderIsNoFile) {
  std::filesystem::create_directory(path);
  expect_refused("job", "not a regular file");
}

}  // namespace
}  // namespace ropewalk
