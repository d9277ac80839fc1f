#include "ropewalk/observe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "ropewalk/error.h"
#include "ropewalk/rotate.h"
#include "ropewalk/table.h"
#include "support/temporary_folder.h"

namespace ropewalk {
namespace {

using testing::read_file;
using testing::TemporaryFolder;

class Collector final : public CallObserver {
 public:
  struct Seen {
    CallRecord call;
    std::string kernel, positions, fingerprint;
  };
  void on_call(const CallRecord& c) noexcept override {
    seen.push_back(
        {c, std::string(c.kernel), std::string(c.positions), std::string(c.fingerprint)});
  }
  std::vector<Seen> seen;
};

class Observe : public ::testing::Test {
 protected:
  Observe() { reset_call_counters(); }
  ~Observe() override {
    set_call_observer(nullptr);
    count_calls(false);
  }

  /// q out of place with 3 heads, k in place with 1, both (2, 5, …, 16), 8 channels rotated.
  void rotate_both(const RotateOptions& options = {}) {
    const Rotation rotations[] = {{bthd(q.data(), Dtype::float32, 2, 5, 3, 16),
                                   bthd(q_out.data(), Dtype::float32, 2, 5, 3, 16)},
                                  Rotation::in_place(bthd(k.data(), Dtype::float32, 2, 5, 1, 16))};
    rotate(plan, rotations, Positions::from_offset(7), options);
  }

  RotaryPlan plan = make_plan(16, 10000.0, 8);
  std::vector<float> q = std::vector<float>(480), q_out = q, k = std::vector<float>(160);
};

TEST_F(Observe, ACallIsDescribed) {
  const auto collector = std::make_shared<Collector>();
  set_call_observer(collector);
  rotate_both(
      {.direction = Direction::inverse, .threads = 1, .parallel_for = nullptr, .kernel = "scalar"});
  ASSERT_EQ(collector->seen.size(), 1U);
  const auto& [call, kernel, positions, fingerprint] = collector->seen[0];
  EXPECT_EQ(kernel, "scalar");
  EXPECT_EQ(positions, "offset");
  EXPECT_EQ(fingerprint, plan.fingerprint());
  EXPECT_EQ(call.device, "cpu");
  EXPECT_EQ(call.dtype, Dtype::float32);
  EXPECT_EQ(call.direction, Direction::inverse);
  EXPECT_FALSE(call.in_place);
  EXPECT_FALSE(call.table);
  EXPECT_EQ(call.views, 2);
  EXPECT_EQ(call.batch, 2);
  EXPECT_EQ(call.tokens, 5);
  EXPECT_EQ(call.heads, 4);
  EXPECT_EQ(call.head_dim, 16);
  EXPECT_EQ(call.rotary_dim, 8);
  EXPECT_EQ(call.bytes, 2 * 4 * (2 * 5 * 3 * 16 + 2 * 5 * 1 * 8));
}

TEST_F(Observe, RefusedAndEmptyCallsAreNone) {
  const auto collector = std::make_shared<Collector>();
  set_call_observer(collector);
  const Rotation empty[] = {Rotation::in_place(bthd(k.data(), Dtype::float32, 2, 0, 1, 16))};
  rotate(plan, empty, Positions::from_offset(0));
  const Rotation one[] = {Rotation::in_place(bthd(k.data(), Dtype::float32, 2, 5, 1, 16))};
  EXPECT_THROW(rotate(plan, one, Positions::from_offset(std::int64_t{1} << 36)), Error);
  EXPECT_TRUE(collector->seen.empty());
  rotate(RotaryTable(plan, 12, Dtype::float32), one, Positions::from_offset(7));
  ASSERT_EQ(collector->seen.size(), 1U);
  EXPECT_TRUE(collector->seen[0].call.table);
  EXPECT_TRUE(collector->seen[0].call.in_place);
}

TEST_F(Observe, NothingIsCountedWhileOff) {
  rotate_both();
  EXPECT_EQ(call_counters().cpu_calls, 0U);
  count_calls(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      std::vector<float> mine(160);
      const Rotation one[] = {Rotation::in_place(bthd(mine.data(), Dtype::float32, 2, 5, 1, 16))};
      for (int j = 0; j < 100; ++j) rotate(make_plan(16), one, Positions::from_offset(j));
    });
  }
  for (std::thread& thread : threads) thread.join();
  count_calls(false);
  rotate_both();
  const CallCounters counters = call_counters();
  EXPECT_EQ(counters.cpu_calls, 400U);
  EXPECT_EQ(counters.cuda_launches, 0U);
  EXPECT_EQ(counters.tokens, 4000U);
  EXPECT_EQ(counters.bytes, 400U * 2 * 4 * 160);
  reset_call_counters();
  EXPECT_EQ(call_counters().bytes, 0U);
}

TEST_F(Observe, TheBitsAreThoseOfAnUnobservedCall) {
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i) - 50.0F;
  const std::vector<float> before = k;
  rotate_both();
  const std::vector<float> unobserved = std::exchange(k, before);
  count_calls(true);
  set_call_observer(std::make_shared<Collector>());
  rotate_both();
  EXPECT_EQ(k, unobserved);
}

TEST_F(Observe, TheLogIsOneObjectALine) {
  const TemporaryFolder folder;
  set_call_observer(log_calls_to(folder / "log"));
  rotate_both();
  set_call_observer(log_calls_to(folder / "log"));  // appends
  rotate_both();
  set_call_observer(nullptr);
  rotate_both();
  std::istringstream lines(read_file(folder / "log"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("device"), "cpu");
    EXPECT_EQ(json.at("kernel"), active_cpu_kernel());
    EXPECT_EQ(json.at("dtype"), "float32");
    EXPECT_EQ(json.at("tokens"), 5);
    EXPECT_EQ(json.at("in_place"), false);
    EXPECT_EQ(json.at("fingerprint"), plan.fingerprint());
    EXPECT_GT(json.at("time_ns"), 0);
  }
  EXPECT_EQ(count, 2);
}

TEST_F(Observe, ALogThatCannotBeOpenedIsRefusedAndALostLineCounted) {
  const TemporaryFolder folder;
  EXPECT_THROW((void)log_calls_to(folder / "none" / "log"), Error);
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  set_call_observer(log_calls_to("/dev/full"));
  rotate_both();
  EXPECT_EQ(call_counters().lines_dropped, 1U);
}

}  // namespace
}  // namespace ropewalk
