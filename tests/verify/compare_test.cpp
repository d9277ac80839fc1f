// The comparator must see one wrong bit, and must not see what is no error.
#include "verify/compare.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "verify/host_tensor.h"
#include "verify/number.h"
#include "verify/random.h"

namespace ropewalk::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<Dtype, 4> kAllDtypes{Dtype::float64, Dtype::float32, Dtype::float16,
                                          Dtype::bfloat16};

PlanSpec plain_spec(std::int64_t head_dim, std::int64_t rotary_dim) {
  PlanSpec spec;
  spec.head_dim = head_dim;
  spec.window = {0, rotary_dim};
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
    spec.frequencies.push_back(1.0 / static_cast<double>(1 + i));
  }
  return spec;
}

/// An input, its exact image, and the correctly rounded image as the output under judgement.
struct Judged {
  HostTensor in, out;
  Expectation expected;

  Judged(Dtype dtype, std::int64_t head_dim = 6, std::int64_t rotary_dim = 4,
         std::int64_t position = 5, Values values = Values::normal)
      : in(dtype, {2, 3, 2, head_dim}), out(dtype, {2, 3, 2, head_dim}) {
    Random random(fresh_seed());
    random.fill(in, values);
    derive(plain_spec(head_dim, rotary_dim), position);
  }
  Judged(Dtype dtype, std::array<double, 2> x, std::int64_t position)
      : in(dtype, {1, 1, 1, 2}), out(dtype, {1, 1, 1, 2}) {
    in.assign(x);
    derive(plain_spec(2, 2), position);
  }

  void derive(const PlanSpec& spec, std::int64_t position) {
    expected = expect(spec, Positions::from_offset(position), Direction::forward, in);
    std::size_t next = 0;
    for_each_index(in.view().size, [&](const std::array<std::int64_t, 4>& at) {
      const auto& e = expected.elements[next++];
      store_bits(in.view().dtype, element_at(out.view(), at),
                 e.copied ? e.copied_bits : encode(in.view().dtype, e.y));
    });
  }
  void flip_bit(const std::array<std::int64_t, 4>& at, int bit) const {
    void* address = element_at(out.view(), at);
    const Dtype dtype = out.view().dtype;
    store_bits(dtype, address, load_bits(dtype, address) ^ (std::uint64_t{1} << bit));
  }
  void set(const std::array<std::int64_t, 4>& at, double value) const {
    store_bits(out.view().dtype, element_at(out.view(), at), encode(out.view().dtype, value));
  }
  [[nodiscard]] Comparison verdict() const { return compare(expected, out); }
};

TEST(Compare, CorrectlyRoundedResultPasses) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Values values : {Values::normal, Values::wide, Values::non_finite}) {
      const Judged judged(dtype, 6, 4, 5, values);
      const Comparison found = judged.verdict();
      EXPECT_TRUE(found.pass()) << found.detail;
      EXPECT_EQ(found.elements, 72);
      EXPECT_EQ(found.correctly_rounded_share(), 1.0);
      EXPECT_LT(found.worst_ratio, 1.0);
    }
  }
}

TEST(Compare, OneFlippedBitOfACopiedElementFails) {
  for (const Dtype dtype : kAllDtypes) {
    const Judged judged(dtype);
    judged.flip_bit({1, 2, 1, 5}, 0);
    const Comparison found = judged.verdict();
    EXPECT_EQ(found.failed, 1);
    EXPECT_NE(found.detail.find("batch 1, token 2, head 1, channel 5"), std::string::npos)
        << found.detail;
  }
}

TEST(Compare, AFlippedBitAboveTheBoundFailsAndItsPlaceIsNamed) {
  for (const Dtype dtype : kAllDtypes) {
    const Judged judged(dtype);
    judged.set({0, 1, 0, 2}, judged.out.at(0, 1, 0, 2) + 1.0);
    const Comparison found = judged.verdict();
    EXPECT_EQ(found.failed, 1);
    EXPECT_GT(found.worst_ratio, 1.0);
    EXPECT_EQ(found.worst_at, (std::array<std::int64_t, 4>{0, 1, 0, 2}));
  }
}

TEST(Compare, SixteenUlpsFailInEveryDtype) {
  for (const Dtype dtype : kAllDtypes) {
    const Judged judged(dtype, {1.0, 0.0}, 1);
    judged.flip_bit({0, 0, 0, 0}, 4);
    EXPECT_FALSE(judged.verdict().pass()) << name_of(dtype);
  }
}

TEST(Compare, NanAndInfinityMustStandInTheSamePlaces) {
  for (const Dtype dtype : kAllDtypes) {
    const Judged finite(dtype, {1.0, 2.0}, 1);
    for (const double intruder : {kInfinity, -kInfinity, std::nan("")}) {
      finite.set({0, 0, 0, 1}, intruder);
      EXPECT_EQ(finite.verdict().failed, 1) << name_of(dtype) << " " << intruder;
    }
    const Judged nan(dtype, {std::nan(""), 2.0}, 1);
    EXPECT_TRUE(nan.verdict().pass());
    nan.flip_bit({0, 0, 0, 0}, static_cast<int>(8 * size_of(dtype)) - 1);
    EXPECT_TRUE(nan.verdict().pass()) << "the sign of a NaN is the hardware's own";
    nan.set({0, 0, 0, 0}, 1.0);
    EXPECT_EQ(nan.verdict().failed, 1);

    const Judged infinite(dtype, {kInfinity, 2.0}, 1);  // cos 1, sin 1 > 0: both outputs +infinity
    EXPECT_TRUE(infinite.verdict().pass());
    infinite.set({0, 0, 0, 0}, -kInfinity);
    EXPECT_EQ(infinite.verdict().failed, 1) << "the sign of an infinity counts";
    infinite.set({0, 0, 0, 0}, static_cast<double>(largest_finite(dtype)));
    EXPECT_EQ(infinite.verdict().failed, 1);
  }
}

TEST(Compare, OverflowOfAFiniteTruth) {
  const double big = 60000;  // cos 5.5 + … : y1 = 60000 (cos 0.7 + sin 0.7) ≈ 84500 > 65504
  PlanSpec spec = plain_spec(2, 2);
  spec.frequencies = {0.7};
  HostTensor in(Dtype::float16, {1, 1, 1, 2});
  HostTensor out(Dtype::float16, {1, 1, 1, 2});
  in.assign(std::array{big, big});
  const Expectation expected = expect(spec, Positions::from_offset(1), Direction::forward, in);
  out.assign(std::array{static_cast<double>(expected.elements[0].y), kInfinity});
  EXPECT_TRUE(compare(expected, out).pass());
  out.assign(std::array{static_cast<double>(expected.elements[0].y), 65504.0});
  EXPECT_FALSE(compare(expected, out).pass());
  out.assign(std::array{static_cast<double>(expected.elements[0].y), -kInfinity});
  EXPECT_FALSE(compare(expected, out).pass());
}

TEST(Compare, WrongShapeOrDtypeFails) {
  const Judged judged(Dtype::float32);
  EXPECT_FALSE(compare(judged.expected, HostTensor(Dtype::float32, {2, 3, 2, 5})).pass());
  EXPECT_FALSE(compare(judged.expected, HostTensor(Dtype::bfloat16, {2, 3, 2, 6})).pass());
  EXPECT_FALSE(compare_bits(judged.in, HostTensor(Dtype::float32, {3, 2, 2, 6})).pass());
}

TEST(Compare, PoisonedOutputFailsEverywhere) {
  for (const Dtype dtype : kAllDtypes) {
    const Judged judged(dtype);
    judged.out.buffer().poison();
    EXPECT_EQ(judged.verdict().failed, 72) << name_of(dtype);
  }
}

TEST(CompareBits, SeesOneBitAndTheSignOfZero) {
  HostTensor a(Dtype::float16, {1, 2, 1, 3});
  HostTensor b(Dtype::float16, {1, 2, 1, 3});
  a.assign(std::array{0.0, 1.0, 2.0, 3.0, 4.0, 5.0});
  copy_elements(a, b);
  EXPECT_TRUE(compare_bits(a, b).pass());
  EXPECT_EQ(hash_bits(a), hash_bits(b));
  b.assign(std::array{-0.0, 1.0, 2.0, 3.0, 4.0, 5.0});
  EXPECT_EQ(compare_bits(a, b).failed, 1);
  EXPECT_NE(hash_bits(a), hash_bits(b));
}

TEST(CompareBits, NanPayloads) {
  HostTensor a(Dtype::bfloat16, {1, 1, 1, 1});
  HostTensor b(Dtype::bfloat16, {1, 1, 1, 1});
  store_bits(Dtype::bfloat16, a.view().data, 0x7fc0);
  store_bits(Dtype::bfloat16, b.view().data, 0xffc1);
  EXPECT_TRUE(compare_bits(a, b).pass());
  EXPECT_EQ(hash_bits(a), hash_bits(b));
  EXPECT_FALSE(compare_bits(a, b, NanRule::same_bits).pass());
}

TEST(CompareBits, FollowsStrides) {
  HostTensor a(Dtype::float32, {1, 2, 2, 2});
  a.assign(std::array{0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0});
  HostTensor b(Dtype::float32, {1, 2, 2, 2});
  b.assign(std::array{0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0});
  TensorView swapped = b.view();
  std::swap(swapped.stride[kToken], swapped.stride[kHead]);
  EXPECT_TRUE(compare_bits(a, swapped).pass());
  EXPECT_FALSE(compare_bits(a, b).pass());
}

TEST(Compare, MergeKeepsTheWorst) {
  Comparison a, b;
  a.elements = 1;
  a.worst_ratio = 0.25;
  a.worst_at = {0, 0, 0, 0};
  b.elements = 2;
  b.worst_ratio = 0.5;
  b.worst_at = {0, 0, 0, 1};
  b.failed = 1;
  b.detail = "wrong";
  a.merge(b);
  EXPECT_EQ(a.elements, 3);
  EXPECT_EQ(a.worst_ratio, 0.5);
  EXPECT_EQ(a.worst_at[3], 1);
  EXPECT_FALSE(a.pass());
}

}  // namespace
}  // namespace ropewalk::verify
