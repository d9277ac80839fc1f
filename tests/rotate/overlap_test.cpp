// Which views may share memory. A refusal must come before anything is written.
#include "rotate_fixture.h"

namespace ropewalk {
namespace {

using namespace testing_support;
using verify::HostBuffer;
using Shape = std::array<std::int64_t, 4>;

const RotaryPlan& plan8() {
  static const RotaryPlan plan = make_plan(8);
  return plan;
}

class Overlap : public ::testing::Test {
 protected:
  Overlap() : buffer_(Dtype::float32, 4096) {
    Random(1).fill(buffer_.view(0, {1, 1, 1, 4096}, {0, 0, 0, 1}));
  }

  void expect_refused(std::span<const Rotation> rotations, const std::vector<std::string>& words) {
    const auto before = buffer_.snapshot();
    expect_error(ErrorCode::invalid_argument, words,
                 [&] { rotate(plan8(), rotations, Positions::from_offset(3)); });
    EXPECT_EQ(buffer_.snapshot(), before) << "something was written before the refusal";
  }
  void expect_right(std::span<const Rotation> rotations) {
    std::vector<verify::Expectation> truths;
    std::vector<TensorView> outs;
    for (const Rotation& r : rotations) {
      truths.push_back(
          verify::expect(plan8().spec(), Positions::from_offset(3), Direction::forward, r.in));
      outs.push_back(r.out);
    }
    const auto before = buffer_.snapshot();
    ASSERT_NO_THROW(rotate(plan8(), rotations, Positions::from_offset(3)));
    for (std::size_t i = 0; i < truths.size(); ++i) {
      const Comparison found = compare(truths[i], outs[i]);
      EXPECT_TRUE(found.pass()) << i << ": " << found.detail;
    }
    EXPECT_EQ(buffer_.changed_outside(before, outs), "");
  }
  [[nodiscard]] TensorView view(std::int64_t offset, Shape size, Shape stride) const {
    return buffer_.view(offset, size, stride);
  }

  HostBuffer buffer_;
};

constexpr Shape kSize{1, 4, 2, 8};
constexpr Shape kPlain{0, 16, 8, 1};

TEST_F(Overlap, InPlaceIsFine) {
  const std::array rotations{Rotation::in_place(view(0, kSize, kPlain))};
  expect_right(rotations);
}

TEST_F(Overlap, InPlaceWithOtherStridesOfDimensionsOfSizeOneIsFine) {
  const std::array rotations{Rotation{view(0, kSize, kPlain), view(0, kSize, {77, 16, 8, 1})}};
  expect_right(rotations);
}

TEST_F(Overlap, NeighbouringBuffersAreFine) {
  const std::array rotations{Rotation{view(0, kSize, kPlain), view(64, kSize, kPlain)}};
  expect_right(rotations);
}

TEST_F(Overlap, SlicesOfOnePackedBufferAreFine) {
  const Shape stride{0, 6 * 8, 8, 1};
  const std::array rotations{Rotation::in_place(view(0, {1, 4, 3, 8}, stride)),
                             Rotation::in_place(view(24, {1, 4, 2, 8}, stride))};
  expect_right(rotations);
}

TEST_F(Overlap, InterleavedElementsOfOneBufferAreFine) {
  const Shape every_second{0, 32, 16, 2};
  const std::array apart{Rotation{view(0, kSize, every_second), view(1, kSize, every_second)}};
  expect_right(apart);
  const std::array both{Rotation::in_place(view(0, kSize, every_second)),
                        Rotation::in_place(view(1, kSize, every_second))};
  expect_right(both);
}

TEST_F(Overlap, BackwardsOverTheSameElementsIsRefused) {
  const TensorView forwards = view(0, kSize, kPlain);
  const TensorView backwards = view(48, kSize, {0, -16, 8, 1});
  const std::array rotations{Rotation{forwards, backwards}};
  expect_refused(rotations, {"rotations[0].out"});
}

TEST_F(Overlap, ShiftedOverlapIsRefused) {
  for (const std::int64_t shift : {1, 4, 8, 16, 63, -1, -63}) {
    const std::array rotations{
        Rotation{view(100, kSize, kPlain), view(100 + shift, kSize, kPlain)}};
    expect_refused(rotations, {"rotations[0].out", "overlaps"});
  }
}

TEST_F(Overlap, OneSharedElementAtTheEndIsRefused) {
  const std::array rotations{Rotation{view(0, kSize, kPlain), view(63, kSize, kPlain)}};
  expect_refused(rotations, {"overlaps"});
}

TEST_F(Overlap, OneSharedByteIsRefused) {
  TensorView out = view(64, kSize, kPlain);
  out.data = static_cast<std::byte*>(out.data) - 1;
  const std::array rotations{Rotation{view(0, kSize, kPlain), out}};
  expect_refused(rotations, {"overlaps"});
}

TEST_F(Overlap, SamePointerWithOtherStridesIsRefused) {
  const std::array rotations{Rotation{view(0, kSize, kPlain), view(0, kSize, {0, 8, 32, 1})}};
  expect_refused(rotations, {"rotations[0].out"});
}

TEST_F(Overlap, OutputsOfTwoRotationsThatMeetAreRefused) {
  const std::array twice{Rotation::in_place(view(0, kSize, kPlain)),
                         Rotation::in_place(view(0, kSize, kPlain))};
  expect_refused(twice, {"rotations[0].out", "rotations[1]"});
  const std::array into_one{Rotation{view(0, kSize, kPlain), view(512, kSize, kPlain)},
                            Rotation{view(64, kSize, kPlain), view(512 + 56, kSize, kPlain)}};
  expect_refused(into_one, {"rotations[0].out", "rotations[1].out"});
}

TEST_F(Overlap, WritingWhatAnotherRotationReadsIsRefused) {
  const std::array first_over_second{Rotation{view(0, kSize, kPlain), view(512, kSize, kPlain)},
                                     Rotation{view(520, kSize, kPlain), view(1024, kSize, kPlain)}};
  expect_refused(first_over_second, {"rotations[0].out", "rotations[1].in"});
  const std::array second_over_first{Rotation{view(520, kSize, kPlain), view(1024, kSize, kPlain)},
                                     Rotation{view(0, kSize, kPlain), view(512, kSize, kPlain)}};
  expect_refused(second_over_first, {"rotations[1].out", "rotations[0].in"});
}

TEST_F(Overlap, TwoRotationsMayReadTheSameInput) {
  const std::array rotations{Rotation{view(0, kSize, kPlain), view(512, kSize, kPlain)},
                             Rotation{view(8, kSize, kPlain), view(1024, kSize, kPlain)}};
  expect_right(rotations);
}

TEST_F(Overlap, OutputsThatOverlapThemselvesAreRefused) {
  for (const Shape& stride : {Shape{0, 16, 0, 1}, Shape{0, 0, 8, 1}, Shape{0, 16, 8, 0},
                              Shape{0, 16, 4, 1}, Shape{0, 8, 8, 1}, Shape{0, 15, 8, 1}}) {
    const TensorView bad = view(0, kSize, stride);
    const std::array out_of_place{Rotation{view(2048, kSize, kPlain), bad}};
    expect_refused(out_of_place, {"rotations[0].out"});
    const std::array in_place{Rotation::in_place(bad)};
    expect_refused(in_place, {"rotations[0].out"});
  }
}

// Three coprime strides, none a multiple of another's span, ask for a search of all combinations.
TEST_F(Overlap, WhatCannotBeDecidedIsRefused) {
  const Shape size{61, 61, 61, 8};
  const std::int64_t unit = 1 << 20;
  // Addresses that are never dereferenced: the call must be refused on strides alone.
  const auto address = [](std::int64_t value) {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(value));
  };
  const ConstTensorView in(address(unit), Dtype::float32, size,
                           {unit * 3 + 17, unit * 5 + 1009, unit * 7 + 4003, 16});
  const TensorView out{address(14 * unit),
                       Dtype::float32,
                       size,
                       {unit * 4 + 31, unit * 4 * 67 + 77, unit * 4 * 67 * 67 + 9, 1}};
  const std::array rotations{Rotation{in, out}};
  expect_error(ErrorCode::invalid_argument, {"rotations[0].out", "decided"},
               [&] { rotate(plan8(), rotations, Positions::from_offset(0)); });
}

// Random small views: the decision must equal that of a byte map, or say "cannot be decided".
TEST_F(Overlap, DecisionsEqualABruteForceMap) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  int refused = 0, accepted = 0;
  for (int n = 0; n < 3000; ++n) {
    const Shape size{random.integer(1, 3), random.integer(1, 3), random.integer(1, 3), 8};
    const auto draw = [&] {
      return view(1000 + random.integer(-200, 200), size,
                  {random.integer(-60, 60), random.integer(-40, 40), random.integer(-30, 30),
                   random.integer(1, 3)});
    };
    const TensorView in = draw();
    const TensorView out = draw();
    std::vector<int> reads(4096), writes(4096);
    bool self = false;
    verify::for_each_index(size, [&](const Shape& at) {
      const auto index = [&](const TensorView& v) {
        return (static_cast<std::byte*>(verify::element_at(v, at)) -
                static_cast<std::byte*>(buffer_.data())) /
               4;
      };
      ++reads[static_cast<std::size_t>(index(in))];
      self |= ++writes[static_cast<std::size_t>(index(out))] > 1;
    });
    bool shared = false;
    for (std::size_t i = 0; i < reads.size(); ++i) shared |= reads[i] > 0 && writes[i] > 0;
    const auto before = buffer_.snapshot();
    try {
      rotate_one(plan8(), in, out, Positions::from_offset(1));
      EXPECT_FALSE(self || (shared && in.data != out.data)) << "an overlap was let through";
      ++accepted;
    } catch (const Error& error) {
      EXPECT_EQ(buffer_.snapshot(), before);
      const std::string what = error.what();
      // Elements that do not overlap each other may be refused only where the strides do not show
      // it.
      EXPECT_TRUE(self || shared || what.find("do not exclude") != std::string::npos ||
                  what.find("decided") != std::string::npos)
          << what;
      ++refused;
    }
    buffer_.restore(before);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 50);
}

TEST_F(Overlap, ShapesDtypesAndNullPointersAreChecked) {
  const TensorView good = view(0, kSize, kPlain);
  TensorView other = view(512, {1, 4, 1, 8}, kPlain);
  expect_refused(std::array{Rotation{good, other}}, {"rotations[0].out", "shape"});
  other = view(512, kSize, kPlain);
  other.dtype = Dtype::bfloat16;
  expect_refused(std::array{Rotation{good, other}}, {"rotations[0].out", "dtype"});
  expect_refused(std::array{Rotation::in_place(view(0, {1, 4, 2, 9}, {0, 18, 9, 1}))},
                 {"rotations[0].in", "head_dim", "8", "9"});
  TensorView null = good;
  null.data = nullptr;
  expect_refused(std::array{Rotation::in_place(null)}, {"rotations[0]", "null"});
  expect_refused(
      std::array{Rotation::in_place(good), Rotation::in_place(view(512, {1, 3, 2, 8}, kPlain))},
      {"rotations[1].in", "tokens"});
  expect_refused(std::array{Rotation::in_place(view(0, {1, -4, 2, 8}, kPlain))}, {"rotations[0]"});
}

}  // namespace
}  // namespace ropewalk
