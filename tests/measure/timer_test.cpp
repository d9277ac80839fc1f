#include "measure/timer.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

namespace ropewalk::measure {
namespace {

TEST(Timer, SummaryHasMedianBestAndQuartiles) {
  const Timing timing = summarise({5, 1, 3, 2, 4}, 7);
  EXPECT_EQ(timing.median, 3);
  EXPECT_EQ(timing.best, 1);
  EXPECT_DOUBLE_EQ(timing.spread, (4.0 - 2.0) / 3.0);
  EXPECT_EQ(timing.samples, 5);
  EXPECT_EQ(timing.calls, 7);
}

TEST(Timer, MedianOfAnEvenCountLiesBetween) { EXPECT_EQ(summarise({4, 1, 2, 8}, 1).median, 3); }

TEST(Timer, SleepTakesAtLeastItsTime) {
  using namespace std::chrono_literals;
  const std::array tasks{Task{[] { std::this_thread::sleep_for(2ms); }}};
  const Timing timing = time_in_turns(tasks, {0.01, 50e-6, 3, 5})[0];
  EXPECT_GE(timing.best, 0.002);
  EXPECT_GE(timing.median, timing.best);
  EXPECT_EQ(timing.calls, 1);
}

TEST(Timer, ShortWorkIsCalledOftenAndPreparedOncePerSample) {
  std::int64_t calls = 0;
  std::int64_t prepared = 0;
  const std::array tasks{Task{[&] { ++calls; }, [&] { ++prepared; }}};
  const Timing timing = time_in_turns(tasks, {0.001, 50e-6, 3, 3})[0];
  EXPECT_GT(timing.calls, 100);
  EXPECT_EQ(timing.samples, 3);
  EXPECT_GT(prepared, 3);
  EXPECT_GT(calls, prepared);
}

TEST(Timer, CallsOfASampleRespectTheTasksLimit) {
  const std::array tasks{Task{[] {}, {}, 16}};
  EXPECT_EQ(time_in_turns(tasks, {0.001, 1.0, 3, 3})[0].calls, 16);
}

}  // namespace
}  // namespace ropewalk::measure
