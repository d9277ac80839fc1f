// Canaries, guard pages and random fills do what tests rely on.
#include "verify/host_tensor.h"

#include <gtest/gtest.h>

#include <set>

#include "verify/compare.h"
#include "verify/layout.h"
#include "verify/number.h"
#include "verify/random.h"

namespace ropewalk::verify {
namespace {

TEST(GuardedBuffer, OneByteOutsideIsACrash) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const GuardedBuffer at_end(10, GuardedBuffer::Edge::end);
  const GuardedBuffer at_begin(10, GuardedBuffer::Edge::begin);
  at_end.data()[9] = std::byte{1};
  at_begin.data()[0] = std::byte{1};
  volatile std::byte* end = at_end.data();
  volatile std::byte* begin = at_begin.data();
  EXPECT_DEATH(end[10] = std::byte{1}, "");
  EXPECT_DEATH(begin[-1] = std::byte{1}, "");
}

TEST(HostBuffer, NoticesAByteChangedBetweenElements) {
  const HostBuffer buffer(Dtype::float16, 8, 1, 1);
  const TensorView every_second = buffer.view(0, {1, 1, 1, 4}, {0, 0, 0, 2});
  const auto before = buffer.snapshot();
  store_bits(Dtype::float16, element_at(every_second, {0, 0, 0, 3}), 0);
  EXPECT_EQ(buffer.changed_outside(before, {{every_second}}), "");
  buffer.bytes()[4] = std::byte{0};  // element 1, between two of the view
  EXPECT_NE(buffer.changed_outside(before, {{every_second}}), "");
  buffer.restore(before);
  EXPECT_EQ(buffer.changed_outside(before, {}), "");
  buffer.bytes()[0] = std::byte{0};  // the lead
  EXPECT_NE(buffer.changed_outside(before, {{every_second}}), "");
}

TEST(HostBuffer, PoisonIsNanInEveryDtype) {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::float16, Dtype::bfloat16}) {
    const HostBuffer buffer(dtype, 1);
    EXPECT_TRUE(is_nan(load_value(dtype, buffer.data())));
  }
}

TEST(Random, FillsTheViewAndNothingElse) {
  for (const Layout layout : kLayouts) {
    const Placement placement = place(layout, Dtype::bfloat16, {1, 3, 2, 1, 6});
    const auto before = placement.snapshot();
    Random random(fresh_seed());
    random.fill(placement.q);
    random.fill(placement.k);
    EXPECT_EQ(placement.changed_outside(before), "") << name_of(layout);
    for_each_index(placement.q.size, [&](const std::array<std::int64_t, 4>& at) {
      EXPECT_FALSE(is_nan(load_value(Dtype::bfloat16, element_at(placement.q, at))));
    });
  }
}

TEST(Random, SameSeedSameBitsAndFreshSeedsDiffer) {
  HostTensor a(Dtype::float32, {1, 4, 4, 16});
  HostTensor b(Dtype::float32, {1, 4, 4, 16});
  Random(7).fill(a);
  Random(7).fill(b);
  EXPECT_TRUE(compare_bits(a, b).pass());
  Random(8).fill(b);
  EXPECT_FALSE(compare_bits(a, b).pass());
  EXPECT_NE(fresh_seed(), fresh_seed());
}

TEST(Random, WideValuesReachSubnormalsZerosAndLargeNumbers) {
  Random random(11);
  std::set<int> seen;
  for (int i = 0; i < 4000; ++i) {
    const Quad x = decode(Dtype::float16, random.element(Dtype::float16, Values::wide));
    ASSERT_TRUE(is_finite(x));
    if (x == 0) seen.insert(0);
    if (x != 0 && magnitude(x) < 0x1p-14) seen.insert(1);
    if (magnitude(x) > 4096) seen.insert(2);
  }
  EXPECT_EQ(seen.size(), 3u);
}

}  // namespace
}  // namespace ropewalk::verify
