// The host side of device timing: needs no GPU.
#include <gtest/gtest.h>

#include <set>

#include "measure/cuda/floors.h"
#include "measure/cuda/sets.h"

namespace ropewalk::measure {
namespace {

constexpr std::int64_t kL2 = std::int64_t{60} << 20;
constexpr std::int64_t kRoom = std::int64_t{4} << 30;

TEST(CudaSets, ColdSetsAreMoreThanFiveTimesTheCacheWarmOnesFitInIt) {
  for (const std::int64_t set : {std::int64_t{256} << 10, std::int64_t{5} << 20, kL2, 10 * kL2}) {
    const std::int64_t cold = sets_of_chain(2 * set, set, kRoom, kL2, false) * 2 * set;
    EXPECT_GT(cold, 5 * kL2) << set;
    const int warm = sets_of_chain(2 * set, set, kRoom, kL2, true);
    EXPECT_GE(warm, 1) << set;
    EXPECT_TRUE(warm == 1 || warm * 2 * set < kL2 / 2) << set;
  }
}

TEST(CudaSets, NeverMoreThanTheRoomHolds) {
  EXPECT_EQ(sets_of_chain(2 << 20, 1 << 20, 3 << 20, kL2, false), 3);
  EXPECT_EQ(sets_of_chain(2 << 20, 1 << 20, 1 << 20, kL2, false), 1);
}

TEST(CudaSets, SetsFollowEachOtherAndReturn) {
  std::byte memory[2048];
  const RotatingSets sets{memory, memory + 1024, aligned_set(250), 3};
  EXPECT_EQ(sets.set_bytes, 256);
  EXPECT_EQ(sets.in(1), memory + 256);
  EXPECT_EQ(sets.out(2), memory + 1024 + 512);
  EXPECT_EQ(sets.in(3), sets.in(0));
  EXPECT_EQ(aligned_set(256), 256);
}

TEST(CudaSets, ChainsLastAboutTwoMilliseconds) {
  EXPECT_EQ(nodes_of_chain(20'480), 400);
  EXPECT_EQ(nodes_of_chain(std::int64_t{4} << 30), 3);
  EXPECT_GT(nodes_of_chain(std::int64_t{8} << 20), nodes_of_chain(std::int64_t{64} << 20));
}

TEST(CudaSets, FloorsOfAPlacementAndTheEmptyKernelAreCandidates) {
  for (const bool in_place : {false, true}) {
    std::set<std::string> names;
    for (const Candidate& c : floor_candidates({}, 256, in_place, false)) names.insert(c.name);
    EXPECT_EQ(names.count("memcpy"), in_place ? 0u : 1u);
    EXPECT_EQ(names.count("flip 1x128"), in_place ? 1u : 0u);
    EXPECT_EQ(names.count(std::string(kEmpty)), 1u);
  }
}

TEST(CudaSets, TheFastestFloorIsNotTheRotationNorTheEmptyKernel) {
  const std::vector<Sample> samples{{"rotate", {1.0}},
                                    {"memcpy", {5.0, 5.5, 9.0}},
                                    {"copy 1x128", {4.0, 6.0, 6.5}},
                                    {std::string(kEmpty), {0.5}}};
  ASSERT_NE(fastest_floor(samples), nullptr);
  EXPECT_EQ(fastest_floor(samples)->name, "memcpy");  // by median
  EXPECT_EQ(fastest_floor(samples)->median(), 5.5);
  EXPECT_EQ(sample_named(samples, "copy 1x128")->quantile(0), 4.0);
  EXPECT_EQ(sample_named(samples, "flip 1x128"), nullptr);
}

}  // namespace
}  // namespace ropewalk::measure
