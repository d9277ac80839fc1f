// Without a tool there is no domain, and no name is made.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "rotate/cuda/nvtx_range.h"

TEST(NoNvtxTest, WithoutAToolASpanIsNothing) {
  if (std::getenv("NVTX_INJECTION64_PATH") != nullptr) GTEST_SKIP() << "runs under a tool";
  EXPECT_EQ(ropewalk::cuda::nvtx_domain(), nullptr);
  const ropewalk::cuda::NvtxRange range([]() -> std::string {
    ADD_FAILURE() << "nobody listens";
    return "";
  });
}
