#include "rotate/cuda/policy.h"

#include <gtest/gtest.h>

#include "ropewalk/cuda.h"
#include "ropewalk/error.h"

namespace ropewalk::cuda {
namespace {

TEST(Policy, NamesAreReadBack) {
  for (const std::string& name : policy_names()) {
    EXPECT_EQ(to_string(policy_from_name(name)), name);
  }
}

TEST(Policy, OtherNamesAreRefused) {
  for (const char* name : {"", "fast", "sweep", "sweep-4", "sweep-4x2", "sweep-4x2-64-rows",
                           "tokens-0x1-64", "sweep-4x2-100000", "sweep-4x2-64-row "}) {
    EXPECT_THROW((void)policy_from_name(name), Error) << name;
  }
}

TEST(Policy, TheChosenOneCanTakeTheCall) {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::float16, Dtype::bfloat16}) {
    for (const std::int64_t pairs : {1, 2, 3, 10, 23, 32, 40, 64, 128, 289, 512}) {
      for (const std::int64_t alignment : {2, 4, 8, 16}) {
        if (alignment < static_cast<std::int64_t>(size_of(dtype))) continue;
        for (const std::int64_t tokens : {1, 100, 100000}) {
          for (const Order order : {Order::half, Order::interleaved}) {
            Call call;
            call.dtype = dtype;
            call.read = call.write = order;
            call.pairs = call.block_pairs = pairs;
            call.alignment = alignment;
            call.tokens = tokens;
            call.heads[0] = 32;
            call.heads[1] = 8;
            call.rows = 32 * tokens;
            call.bytes = 2 * tokens * 40 * 2 * pairs * static_cast<std::int64_t>(size_of(dtype));
            const Policy policy = choose_policy(call);
            EXPECT_TRUE(is_possible(call, policy)) << to_string(policy);
            // Rows aligned to 16 bytes, channels side by side: never the narrow path.
            EXPECT_TRUE(policy.vectors || alignment < 16) << name_of(dtype) << " pairs " << pairs;
          }
        }
      }
    }
  }
}

TEST(Policy, StridedChannelsTakeTheNarrowPath) {
  Call call;
  call.channels_adjacent = false;
  EXPECT_FALSE(choose_policy(call).vectors);
}

}  // namespace
}  // namespace ropewalk::cuda
