// The bits depend on no thread count, no chunking and no caller.
#include <atomic>
#include <thread>

#include "rotate_fixture.h"

namespace ropewalk {
namespace {

using namespace testing_support;

class Threads : public ::testing::Test {
 protected:
  Threads() { rotate_one(plan_, in_, want_, positions_, options_of(Direction::forward, "scalar")); }
  void expect_same(const RotateOptions& options, const char* what) {
    const HostTensor got(Dtype::bfloat16, in_.view().size);
    rotate_one(plan_, in_, got, positions_, options);
    const Comparison found = compare_bits(want_, got);
    EXPECT_TRUE(found.pass()) << what << ": " << found.detail;
  }

  RotaryPlan plan_ = make_plan(128, 5e5);
  Positions positions_ = Positions::from_offset(130000);
  HostTensor in_ = random_tensor(Dtype::bfloat16, {2, 1201, 3, 128}, 1);
  HostTensor want_{Dtype::bfloat16, {2, 1201, 3, 128}};
};

TEST_F(Threads, AnyNumberGivesTheSameBits) {
  for (const int threads : {0, 1, 2, 3, 7, 64}) {
    RotateOptions options;
    options.threads = threads;
    expect_same(options, std::to_string(threads).c_str());
  }
}

TEST_F(Threads, AnyChunkingOfTheCallersOwnLoopGivesTheSameBits) {
  const ParallelFor one_by_one_backwards =
      [](std::int64_t count, std::int64_t,
         const std::function<void(std::int64_t, std::int64_t)>& body) {
        for (std::int64_t i = count; i-- > 0;) body(i, i + 1);
      };
  const ParallelFor all_at_once = [](std::int64_t count, std::int64_t,
                                     const std::function<void(std::int64_t, std::int64_t)>& body) {
    body(0, count);
  };
  std::atomic<int> bodies{0};
  const ParallelFor own_threads = [&](std::int64_t count, std::int64_t,
                                      const std::function<void(std::int64_t, std::int64_t)>& body) {
    std::vector<std::thread> threads;
    for (int n = 0; n < 3; ++n) {
      threads.emplace_back([&, n] { body(count * n / 3, count * (n + 1) / 3); });
      ++bodies;
    }
    for (std::thread& thread : threads) thread.join();
  };
  RotateOptions options;
  options.parallel_for = &one_by_one_backwards;
  expect_same(options, "one by one");
  options.parallel_for = &all_at_once;
  expect_same(options, "all at once");
  options.parallel_for = &own_threads;
  expect_same(options, "own threads");
  EXPECT_GT(bodies.load(), 0) << "the caller's loop was never used";
}

TEST_F(Threads, SeveralCallersAtOnceGetTheSameBits) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int n = 0; n < 4; ++n) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 3; ++repeat) {
        const HostTensor got(Dtype::bfloat16, in_.view().size);
        rotate_one(plan_, in_, got, positions_);
        if (!compare_bits(want_, got).pass()) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(Threads, NegativeCountsAreRefused) {
  RotateOptions options;
  options.threads = -1;
  expect_error(ErrorCode::invalid_argument, {"threads", "-1"},
               [&] { rotate_one(plan_, in_.view(), positions_, options); });
}

}  // namespace
}  // namespace ropewalk
