// Files that appear whole or not at all, and who may read them.
#include "base/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ropewalk/error.h"
#include "support/temporary_folder.h"

namespace ropewalk {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override { old_umask_ = ::umask(027); }
  void TearDown() override { ::umask(old_umask_); }

  void replace() const {
    AtomicFile file(path_);
    file.write(std::as_bytes(std::span("new", 3)));
    file.commit();
    EXPECT_EQ(read_file(path_), "new");
    EXPECT_EQ(folder_.listing(), std::vector<std::string>{"file"});
  }
  [[nodiscard]] ::mode_t mode() const {
    struct ::stat status {};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "file";
  ::mode_t old_umask_ = 0;
};

TEST_F(AtomicFileTest, ANewFileFollowsTheUmask) {
  replace();
  EXPECT_EQ(mode(), 0640u);
}

TEST_F(AtomicFileTest, AFileThatExistsKeepsItsMode) {
  for (const ::mode_t before : {0600u, 0644u, 0664u, 0400u, 0777u}) {
    write_file(path_, "old");
    ASSERT_EQ(::chmod(path_.c_str(), before), 0);
    replace();
    EXPECT_EQ(mode(), before);
    ASSERT_EQ(::unlink(path_.c_str()), 0);
  }
}

TEST_F(AtomicFileTest, WithoutCommitNothingChanges) {
  write_file(path_, "old");
  {
    AtomicFile file(path_);
    file.write(std::as_bytes(std::span("new", 3)));
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(folder_.listing(), std::vector<std::string>{"file"});
}

TEST_F(AtomicFileTest, SymbolicLinksAreFollowed) {
  const std::filesystem::path link = folder_ / "link";
  std::filesystem::create_symlink("second", link);
  std::filesystem::create_symlink(path_, folder_ / "second");
  for (const char* bytes : {"a", "b"}) {  // the target is new, then it exists
    AtomicFile file(link);
    file.write(std::as_bytes(std::span(bytes, 1)));
    file.commit();
    EXPECT_EQ(read_file(path_), bytes);
    EXPECT_TRUE(std::filesystem::is_symlink(link));
  }
  std::filesystem::create_symlink("loop", folder_ / "loop");
  std::filesystem::create_symlink("no/file", folder_ / "dangling");
  for (const char* name : {"loop", "dangling"}) {
    try {
      const AtomicFile file(folder_ / name);
      ADD_FAILURE() << name << " was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
    }
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / name));
  }
}

TEST_F(AtomicFileTest, AKilledWriterLeavesNothingBehind) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    try {
      AtomicFile file(path_);
      file.write(std::as_bytes(std::span("new", 3)));
      ::raise(SIGKILL);
    } catch (...) {
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  const std::vector<std::string> left = folder_.listing();
  if (left.size() == 1 && left[0].starts_with(".ropewalk-")) {
    GTEST_SKIP() << "this file system has no files without a name";
  }
  EXPECT_EQ(left, std::vector<std::string>{});
}

}  // namespace
}  // namespace ropewalk
