// The oracle's own view of the number formats, checked against the compiler and by exhaustion.
#include "verify/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "verify/random.h"

namespace ropewalk::verify {
namespace {

TEST(Number, Float16BitsRoundTripForEveryPattern) {
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
      const Quad value = decode(dtype, bits);
      if (is_nan(value)) {
        EXPECT_EQ(canonical_bits(dtype, bits), encode(dtype, value));
      } else {
        ASSERT_EQ(encode(dtype, value), bits) << name_of(dtype) << " " << bits;
      }
    }
  }
}

TEST(Number, KnownValues) {
  EXPECT_EQ(static_cast<double>(decode(Dtype::float16, 0x3c00)), 1.0);
  EXPECT_EQ(static_cast<double>(decode(Dtype::float16, 0x7bff)), 65504.0);
  EXPECT_EQ(static_cast<double>(decode(Dtype::float16, 0x0001)), 0x1p-24);
  EXPECT_EQ(static_cast<double>(decode(Dtype::bfloat16, 0xbf80)), -1.0);
  EXPECT_EQ(static_cast<double>(largest_finite(Dtype::float16)), 65504.0);
  EXPECT_EQ(static_cast<double>(largest_finite(Dtype::float32)),
            double{std::numeric_limits<float>::max()});
  EXPECT_EQ(static_cast<double>(smallest_subnormal(Dtype::float64)),
            std::numeric_limits<double>::denorm_min());
}

TEST(Number, RoundsTiesToEvenAndOverflowsAtTheThreshold) {
  EXPECT_EQ(encode(Dtype::float16, 1 + scale_by_power(1, -11)), 0x3c00u);
  EXPECT_EQ(encode(Dtype::float16, 1 + 3 * scale_by_power(1, -11)), 0x3c02u);
  EXPECT_EQ(encode(Dtype::float16, 65519.999), 0x7bffu);
  EXPECT_EQ(encode(Dtype::float16, 65520), 0x7c00u);
  EXPECT_EQ(encode(Dtype::float16, -65520), 0xfc00u);
  EXPECT_EQ(encode(Dtype::float16, 0x1p-25), 0u) << "half of the smallest subnormal ties to zero";
  EXPECT_EQ(encode(Dtype::float16, -0x1p-26), 0x8000u) << "a vanished negative keeps its sign";
}

TEST(Number, WideFormatsRoundAsTheCompilerDoes) {
  const std::uint64_t seed = fresh_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int i = 0; i < 20000; ++i) {
    const auto power = static_cast<int>(random.integer(-1090, 1020));
    const Quad value =
        scale_by_power(Quad(random.normal()) + Quad(random.normal()) * 0x1p-60, power);
    EXPECT_EQ(encode(Dtype::float64, value),
              std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    EXPECT_EQ(encode(Dtype::float32, value),
              std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  }
}

TEST(Number, StoresAndLoadsAtAnyAddress) {
  std::byte memory[16] = {};
  for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::float16, Dtype::bfloat16}) {
    store_bits(dtype, memory + 1, encode(dtype, -1.5));
    EXPECT_EQ(static_cast<double>(load_value(dtype, memory + 1)), -1.5);
    EXPECT_EQ(memory[1 + size_of(dtype)], std::byte{0});
    std::fill(std::begin(memory), std::end(memory), std::byte{0});
  }
}

}  // namespace
}  // namespace ropewalk::verify
