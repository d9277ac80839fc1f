#include "measure/traffic.h"

#include <gtest/gtest.h>

namespace ropewalk::measure {
namespace {

TEST(Traffic, CountsEachByteOnceReadAndOnceWritten) {
  const Shape shape{4, 8192, 64, 8, 128, 128, Dtype::bfloat16};
  EXPECT_EQ(necessary_bytes(shape, true), 2LL * 4 * 8192 * 72 * 128 * 2);
  EXPECT_EQ(necessary_bytes(shape, false), necessary_bytes(shape, true));
}

TEST(Traffic, OutOfPlaceTheUnrotatedChannelsMoveToo) {
  const Shape shape{1, 10, 2, 1, 96, 24, Dtype::float32};
  EXPECT_EQ(necessary_bytes(shape, true), 2LL * 10 * 3 * 24 * 4);
  EXPECT_EQ(necessary_bytes(shape, false), 2LL * 10 * 3 * 96 * 4);
}

TEST(Traffic, DoesNotOverflow32Bits) {
  const Shape shape{16, 1 << 20, 128, 8, 128, 128, Dtype::float64};
  EXPECT_EQ(necessary_bytes(shape, true), 2LL * 16 * (1 << 20) * 136 * 128 * 8);
}

TEST(Traffic, CountingThreeTensorsIsHalfAsMuchAgain) {
  const Shape shape{1, 7, 3, 1, 64, 64, Dtype::float16};
  EXPECT_EQ(2 * three_times_counted_bytes(shape, true), 3 * necessary_bytes(shape, true));
}

}  // namespace
}  // namespace ropewalk::measure
