#include "measure/machine.h"

#include <gtest/gtest.h>

namespace ropewalk::measure {
namespace {

TEST(Machine, KnowsItselfAndItsBuild) {
  const Machine& facts = machine();
  EXPECT_FALSE(facts.cpu.empty());
  EXPECT_GE(facts.processors, 1);
  EXPECT_FALSE(facts.compiler.empty());
  EXPECT_FALSE(facts.version.empty());
  EXPECT_NE(to_string(facts).find(facts.cpu), std::string::npos);
}

TEST(Machine, CachesGrowWithTheirLevel) {
  std::int64_t last = 0;
  for (const Cache& cache : machine().caches) {
    EXPECT_GT(cache.bytes, last) << "level " << cache.level;
    last = cache.bytes;
  }
  EXPECT_GT(level2_cache_bytes(), 0);
  EXPECT_GE(largest_cache_bytes(), level2_cache_bytes());
  EXPECT_GT(out_of_cache_bytes(), largest_cache_bytes());
}

}  // namespace
}  // namespace ropewalk::measure
