// Strides: the result depends on the values alone, never on where they lie.
#include "rotate_fixture.h"
#include "verify/layout.h"

namespace ropewalk {
namespace {

using namespace testing_support;
using verify::HostBuffer;

/// What each (batch, token, head) row gives when it is rotated all alone.
void rotate_row_by_row(const RotaryPlan& plan, const ConstTensorView& in, const TensorView& out,
                       const std::vector<std::int64_t>& starts, const RotateOptions& options) {
  for (std::int64_t b = 0; b < in.size[kBatch]; ++b) {
    for (std::int64_t t = 0; t < in.size[kToken]; ++t) {
      for (std::int64_t h = 0; h < in.size[kHead]; ++h) {
        ConstTensorView one_in = in;
        TensorView one_out = out;
        one_in.data = verify::element_at(in, {b, t, h, 0});
        one_out.data = verify::element_at(out, {b, t, h, 0});
        one_in.size = one_out.size = {1, 1, 1, in.size[kChannel]};
        rotate_one(plan, one_in, one_out,
                   Positions::from_offset(starts[static_cast<std::size_t>(b)] + t), options);
      }
    }
  }
}

// Bug14b: batch, heads, key heads and tokens of 1, 2, 3, 5 in every layout, with a start per row.
TEST(Layouts, SmallShapesInEveryLayout_Bug14) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  const RotaryPlan plan = make_plan(10, 1e4, 8);
  const std::vector<std::int64_t> all_starts{131071, 0, 39001, 7, 1 << 20};
  for (const std::int64_t batch : {1, 2, 3, 5}) {
    const std::vector<std::int64_t> starts(all_starts.begin(), all_starts.begin() + batch);
    const Positions positions =
        Positions::from_batch_offsets(std::span<const std::int64_t>(starts));
    for (const std::int64_t heads : {1, 2, 3, 5}) {
      for (const std::int64_t key_heads : {1, 2, 3, 5}) {
        for (const std::int64_t tokens : {1, 2, 3, 5}) {
          const HostTensor q = random_tensor(Dtype::float32, {batch, tokens, heads, 10}, seed);
          const HostTensor k =
              random_tensor(Dtype::float32, {batch, tokens, key_heads, 10}, seed + 1);
          const HostTensor want_q(Dtype::float32, q.view().size);
          const HostTensor want_k(Dtype::float32, k.view().size);
          rotate_row_by_row(plan, q, want_q, starts, {});
          rotate_row_by_row(plan, k, want_k, starts, {});
          for (const verify::Layout layout : verify::kLayouts) {
            const verify::Placement p =
                verify::place(layout, Dtype::float32, {batch, tokens, heads, key_heads, 10});
            verify::copy_elements(q, p.q);
            verify::copy_elements(k, p.k);
            const std::array rotations{Rotation::in_place(p.q), Rotation::in_place(p.k)};
            rotate(plan, rotations, positions);
            Comparison found = compare_bits(want_q, p.q);
            found.merge(compare_bits(want_k, p.k));
            ASSERT_TRUE(found.pass())
                << name_of(layout) << " B " << batch << " H " << heads << " Hkv " << key_heads
                << " S " << tokens << ": " << found.detail;
          }
        }
      }
    }
  }
}

// Bug15: q and k of separate parents with separate strides, as a report has them.
class SeparateStrides : public ::testing::Test {
 protected:
  SeparateStrides()
      : q_parent_(Dtype::bfloat16, 8 * 16384), k_parent_(Dtype::bfloat16, 192 + 8 * 2624) {
    q_ = q_parent_.view(0, {1, 8, 64, 64}, {0, 16384, 256, 1});
    k_ = k_parent_.view(192, {1, 8, 1, 64}, {0, 2624, 64, 1});
    Random random(1);
    random.fill(q_);
    random.fill(k_);
    verify::copy_elements(q_, want_q_.view());
    verify::copy_elements(k_, want_k_.view());
    rotate_one(plan_, want_q_.view(), positions_);
    rotate_one(plan_, want_k_.view(), positions_);
  }

  RotaryPlan plan_ = make_plan(64);
  Positions positions_ = Positions::from_offset(0);
  HostBuffer q_parent_, k_parent_;
  TensorView q_, k_;
  HostTensor want_q_{Dtype::bfloat16, {1, 8, 64, 64}};
  HostTensor want_k_{Dtype::bfloat16, {1, 8, 1, 64}};
};

TEST_F(SeparateStrides, InPlaceJointAndAloneEqualTheContiguousCall_Bug15) {
  const auto q_before = q_parent_.snapshot();
  const auto k_before = k_parent_.snapshot();
  const std::array both{Rotation::in_place(q_), Rotation::in_place(k_)};
  const std::array swapped{both[1], both[0]};
  const std::array<std::span<const Rotation>, 4> calls{both, swapped, std::span(both).first(1),
                                                       std::span(both).last(1)};
  for (std::size_t n = 0; n < calls.size(); ++n) {
    SCOPED_TRACE(n);
    q_parent_.restore(q_before);
    k_parent_.restore(k_before);
    rotate(plan_, calls[n], positions_);
    const bool q_alone = n == 2;
    const bool k_alone = n == 3;
    EXPECT_EQ(compare_bits(want_q_, q_).pass(), !k_alone);
    EXPECT_EQ(compare_bits(want_k_, k_).pass(), !q_alone);
    EXPECT_EQ(q_parent_.snapshot() == q_before, k_alone);
    EXPECT_EQ(k_parent_.snapshot() == k_before, q_alone);
    EXPECT_EQ(q_parent_.changed_outside(q_before, {{q_}}), "");
    EXPECT_EQ(k_parent_.changed_outside(k_before, {{k_}}), "");
  }
}

TEST_F(SeparateStrides, OutOfPlaceIntoOtherStrides_Bug15) {
  const HostBuffer target(Dtype::bfloat16, 64 * 8 * 130, 3, 3);
  const TensorView out = target.view(0, q_.size, {0, 130, 8 * 130, 2});
  const auto before = target.snapshot();
  const auto q_before = q_parent_.snapshot();
  rotate_one(plan_, q_, out, positions_);
  EXPECT_TRUE(compare_bits(want_q_, out).pass());
  EXPECT_EQ(target.changed_outside(before, {{out}}), "");
  EXPECT_EQ(q_parent_.snapshot(), q_before);
}

// Bug15: an expanded gradient has stride 0, in a head, a token or the channels.
TEST(Layouts, ExpandedInputsAreReadRightly_Bug15) {
  const RotaryPlan plan = make_plan(32, 1e4, 30);
  const Positions positions = Positions::from_offset(4094);
  for (const std::array<std::int64_t, 4>& stride :
       {std::array<std::int64_t, 4>{0, 32, 0, 1}, {0, 0, 32, 1}, {64, 0, 0, 1}, {0, 0, 0, 0}}) {
    const HostBuffer source(Dtype::float32, 3 * 32);
    Random(2).fill(source.view(0, {1, 1, 1, 96}, {0, 0, 0, 1}));
    const TensorView view = source.view(0, {2, 3, 3, 32}, stride);
    const HostTensor dense(Dtype::float32, view.size);
    verify::copy_elements(view, dense);
    for (const Direction direction : {Direction::forward, Direction::inverse}) {
      const HostTensor want(Dtype::float32, view.size);
      const HostTensor got(Dtype::float32, view.size);
      rotate_one(plan, dense, want, positions, options_of(direction));
      rotate_one(plan, view, got, positions, options_of(direction));
      const Comparison found = compare_bits(want, got);
      EXPECT_TRUE(found.pass()) << found.detail;
    }
  }
}

// In place = out of place = strided = packed, for every dtype, pairing and kernel.
TEST(Layouts, InPlaceOutOfPlaceStridedAndPackedAgreeBitForBit) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  const Positions positions = Positions::from_offset(131068);
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : kAllPairings) {
      const RotaryPlan plan = make_plan(38, 5e5, 34, pairing);
      const HostTensor q = random_tensor(dtype, {1, 6, 3, 38}, seed, verify::Values::wide);
      const HostTensor k = random_tensor(dtype, {1, 6, 1, 38}, seed + 1, verify::Values::wide);
      for (const Direction direction : {Direction::forward, Direction::inverse}) {
        const HostTensor want_q(dtype, q.view().size);
        const HostTensor want_k(dtype, k.view().size);
        rotate_one(plan, q, want_q, positions, options_of(direction, "scalar"));
        rotate_one(plan, k, want_k, positions, options_of(direction, "scalar"));
        for (const verify::Layout layout : verify::kLayouts) {
          const verify::Placement in = verify::place(layout, dtype, {1, 6, 3, 1, 38});
          const verify::Placement out = verify::place(layout, dtype, {1, 6, 3, 1, 38});
          for (const std::string& kernel : verify::supported_cpu_kernels()) {
            verify::copy_elements(q, in.q);
            verify::copy_elements(k, in.k);
            const std::array apart{Rotation{in.q, out.q}, Rotation{in.k, out.k}};
            const std::array in_place{Rotation::in_place(in.q), Rotation::in_place(in.k)};
            rotate(plan, apart, positions, options_of(direction, kernel));
            rotate(plan, in_place, positions, options_of(direction, kernel));
            Comparison found = compare_bits(want_q, out.q);
            found.merge(compare_bits(want_k, out.k));
            found.merge(compare_bits(want_q, in.q));
            found.merge(compare_bits(want_k, in.k));
            ASSERT_TRUE(found.pass()) << kernel << " " << name_of(dtype) << " " << name_of(pairing)
                                      << " " << name_of(layout) << ": " << found.detail;
          }
        }
      }
    }
  }
}

TEST(Layouts, EmptyTensorsReturnAtOnce) {
  const RotaryPlan plan = make_plan(8);
  for (const std::array<std::int64_t, 4>& size :
       {std::array<std::int64_t, 4>{0, 3, 2, 8}, {1, 0, 2, 8}, {1, 3, 0, 8}}) {
    const TensorView nothing{nullptr, Dtype::float32, size, {48, 16, 8, 1}};
    EXPECT_NO_THROW(rotate_one(plan, nothing, Positions::from_offset(0)));
  }
  EXPECT_NO_THROW(rotate(plan, std::span<const Rotation>{}, Positions::from_offset(0)));
}

// One of q and k may have no heads while the other does.
TEST(Layouts, AnEmptyKeyDoesNotStopTheQuery) {
  const RotaryPlan plan = make_plan(8);
  const HostTensor q = random_tensor(Dtype::float32, {1, 3, 2, 8}, 1);
  const HostTensor want(Dtype::float32, q.view().size);
  rotate_one(plan, q, want, Positions::from_offset(5));
  const TensorView nothing{nullptr, Dtype::float32, {1, 3, 0, 8}, {0, 0, 8, 1}};
  const std::array rotations{Rotation::in_place(nothing), Rotation::in_place(q)};
  rotate(plan, rotations, Positions::from_offset(5));
  EXPECT_TRUE(compare_bits(want, q).pass());
}

}  // namespace
}  // namespace ropewalk
