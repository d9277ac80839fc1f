#include "base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

namespace ropewalk {
namespace {

/// Every index exactly once.
void expect_covers(std::int64_t count, std::int64_t grain, int threads) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
  parallel_for(count, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  for (const auto& times : seen) ASSERT_EQ(times.load(), 1);
}

TEST(Parallel, CoversEveryIndexOnce) {
  for (const int threads : {0, 1, 2, 3, 8}) {
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      for (const std::int64_t grain : {0, 1, 3, 5000}) expect_covers(count, grain, threads);
    }
  }
}

TEST(Parallel, ConcurrentCallersAndNestedCallsFinish) {
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> sum{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        parallel_for(16, 1, 3, [&](std::int64_t begin, std::int64_t end) {
          parallel_for(end - begin, 1, 2,
                       [&](std::int64_t first, std::int64_t last) { sum += last - first; });
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 50 * 16);
}

// ThreadSanitizer ends a child of a threaded process that starts threads itself.
#if !defined(__SANITIZE_THREAD__)
TEST(Parallel, WorksInAForkedChild) {
  expect_covers(100, 1, 2);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> sum{0};
    parallel_for(100, 1, 2, [&](std::int64_t begin, std::int64_t end) {
      sum += static_cast<int>(end - begin);
    });
    _exit(sum.load() == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

// A sanitizer reserves more address space than a limit allows.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Parallel, FinishesWhereTheSystemGivesNoMoreThreads) {
  const pid_t child = fork();
  if (child == 0) {
    // Room for what the loop allocates, not for the stacks of its threads.
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(getpagesize()) + (rlim_t{1} << 20);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    std::atomic<int> sum{0};
    parallel_for(1000, 1, 500, [&](std::int64_t begin, std::int64_t end) {
      sum += static_cast<int>(end - begin);
    });
    _exit(sum.load() == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace ropewalk
