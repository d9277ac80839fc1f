// Positions: every kind gives the same bits for the same place, and bad ones are refused in time.
#include <cstring>
#include <limits>

#include "rotate_fixture.h"
#include "verify/position_sets.h"

namespace ropewalk {
namespace {

using namespace testing_support;
using Shape = std::array<std::int64_t, 4>;

constexpr Shape kShape{2, 4, 2, 16};

const RotaryPlan& plan16() {
  static const RotaryPlan plan = make_plan(16);
  return plan;
}

HostTensor rotated(const Positions& positions, Dtype dtype = Dtype::float32, Shape shape = kShape) {
  HostTensor out(dtype, shape);
  rotate_one(plan16(), random_tensor(dtype, shape, 9), out, positions);
  return out;
}

void expect_refused(const Positions& positions, ErrorCode code,
                    const std::vector<std::string>& words, Dtype dtype = Dtype::float32,
                    Shape shape = kShape, const RotaryPlan& plan = plan16()) {
  const HostTensor in = random_tensor(dtype, shape, 9);
  const HostTensor out(dtype, shape);
  const auto in_before = in.buffer().snapshot();
  const auto out_before = out.buffer().snapshot();
  expect_error(code, words, [&] { rotate_one(plan, in, out, positions); });
  expect_error(code, words, [&] { rotate_one(plan, in.view(), positions); });
  EXPECT_EQ(out.buffer().snapshot(), out_before) << "written before the refusal";
  EXPECT_EQ(in.buffer().snapshot(), in_before) << "written before the refusal";
}

TEST(PositionKinds, TheSamePlaceGivesTheSameBits) {
  const std::vector<std::int64_t> starts{131070, 131070};
  const std::vector<std::int64_t> tokens{131070, 131071, 131072, 131073};
  const std::vector<std::int32_t> tokens32(tokens.begin(), tokens.end());
  std::vector<std::int64_t> rows = tokens;
  rows.insert(rows.end(), tokens.begin(), tokens.end());
  const std::vector<std::int32_t> rows32(rows.begin(), rows.end());
  const std::vector<float> floats(rows.begin(), rows.end());
  const std::vector<double> doubles(rows.begin(), rows.end());
  for (const Dtype dtype : kAllDtypes) {
    SCOPED_TRACE(name_of(dtype));
    const HostTensor want = rotated(Positions::from_offset(131070), dtype);
    const auto same = [&](const Positions& positions) {
      const Comparison found = compare_bits(want, rotated(positions, dtype));
      EXPECT_TRUE(found.pass()) << found.detail;
    };
    same(Positions::from_batch_offsets(std::span<const std::int64_t>(starts)));
    same(Positions::from_tokens(std::span<const std::int64_t>(tokens)));
    same(Positions::from_tokens(std::span<const std::int32_t>(tokens32)));
    same(Positions::from_batch_tokens(std::span<const std::int64_t>(rows), 4));
    same(Positions::from_batch_tokens(std::span<const std::int32_t>(rows32), 4));
    same(Positions::from_axes(std::span<const std::int64_t>(rows), 1, 2, 4));
    same(Positions::from_floats(std::span<const float>(floats), 1, 2, 4));
    same(Positions::from_floats(std::span<const double>(doubles), 1, 2, 4));
  }
}

TEST(PositionKinds, PackedSequencesRestartAndTakeStarts) {
  const std::vector<std::int32_t> cu{0, 3, 3, 4, 9};
  const std::vector<std::int64_t> cu64(cu.begin(), cu.end());
  const std::vector<std::int64_t> starts{10, 77, -5, 131070};
  const std::vector<std::int64_t> plain{0, 1, 2, 0, 0, 1, 2, 3, 4};
  const std::vector<std::int64_t> shifted{10, 11, 12, -5, 131070, 131071, 131072, 131073, 131074};
  const Shape shape{1, 9, 2, 16};
  const HostTensor want_plain =
      rotated(Positions::from_tokens(std::span<const std::int64_t>(plain)), Dtype::bfloat16, shape);
  const HostTensor want_shifted = rotated(
      Positions::from_tokens(std::span<const std::int64_t>(shifted)), Dtype::bfloat16, shape);
  for (Positions packed : {Positions::from_cu_seqlens(std::span<const std::int32_t>(cu)),
                           Positions::from_cu_seqlens(std::span<const std::int64_t>(cu64))}) {
    EXPECT_TRUE(compare_bits(want_plain, rotated(packed, Dtype::bfloat16, shape)).pass());
    packed.data = starts.data();
    packed.count = 4;
    EXPECT_TRUE(compare_bits(want_shifted, rotated(packed, Dtype::bfloat16, shape)).pass());
  }
}

TEST(PositionKinds, EachPairReadsItsAxisAndOneComponentServesAll) {
  PlanSpec spec = plan16().spec();
  spec.axes = 3;
  spec.axis = {0, 1, 2, 0, 1, 2, 0, 1};
  const RotaryPlan plan(spec);
  std::vector<std::int64_t> components(3 * 2 * 4);
  Random random(4);
  for (std::int64_t& p : components) p = random.integer(-100000, 100000);
  const HostTensor in = random_tensor(Dtype::float64, kShape, 9);
  const HostTensor out(Dtype::float64, kShape);
  const Positions positions =
      Positions::from_axes(std::span<const std::int64_t>(components), 3, 2, 4);
  rotate_one(plan, in, out, positions);
  const Comparison found = judge(plan, in, out, positions);
  EXPECT_TRUE(found.pass()) << found.detail;

  const HostTensor broadcast(Dtype::float64, kShape);
  rotate_one(plan, in, broadcast, Positions::from_offset(41));
  EXPECT_TRUE(compare_bits(rotated(Positions::from_offset(41), Dtype::float64), broadcast).pass());
}

TEST(PositionKinds, StridedPositionArraysAreFollowed) {
  const std::vector<std::int64_t> tokens{5, -1, 6, -1, 7, -1, 8, -1};
  Positions every_second = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  every_second.count = 4;
  every_second.token_stride = 2;
  EXPECT_TRUE(compare_bits(rotated(Positions::from_offset(5)), rotated(every_second)).pass());
}

TEST(FloatPositions, FractionsAreExact) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  PlanSpec spec = make_plan(16, 100.0).spec();
  for (double& omega : spec.frequencies) omega *= 2 * M_PI;  // DINOv3: whole turns per unit
  spec.frequencies[3] = -spec.frequencies[3];
  spec.sign = -1;
  const RotaryPlan plan(spec);
  std::vector<double> doubles{0.5,        -0.5,      1.0 / 3,  -1e-9,
                              1048575.25, -131071.5, 0.999999, 0x1p35 + 0.5};
  std::vector<float> floats;
  for (double& p : doubles) {
    p *= 1 + 1e-12 * random.normal();
    floats.push_back(static_cast<float>(p));
  }
  for (const Dtype dtype : kAllDtypes) {
    const HostTensor in = random_tensor(dtype, kShape, seed);
    const HostTensor out(dtype, kShape);
    for (const Positions& positions :
         {Positions::from_floats(std::span<const double>(doubles), 1, 2, 4),
          Positions::from_floats(std::span<const float>(floats), 1, 2, 4)}) {
      rotate_one(plan, in, out, positions);
      const Comparison found = judge(plan, in, out, positions);
      EXPECT_TRUE(found.pass()) << name_of(dtype) << ": " << found.detail;
    }
  }
}

TEST(FloatPositions, NotFiniteOrTooLargeIsRefused) {
  for (const double bad :
       {std::nan(""), std::numeric_limits<double>::infinity(), 0x1p36, -0x1p40}) {
    const std::vector<double> values{0, 1, 2, 3, 4, 5, 6, bad};
    expect_refused(Positions::from_floats(std::span<const double>(values), 1, 2, 4),
                   ErrorCode::bad_position, {"positions"});
  }
}

// Float positions are an explicit opt-in of per-token positions alone (Bug1).
TEST(FloatPositions, FloatStartsAndFloatBoundariesAreRefused_Bug1) {
  Positions starts = Positions::from_offset(0);
  const std::vector<float> values{1, 2};
  starts.kind = Positions::Kind::per_batch;
  starts.type = Positions::Type::float32;
  starts.data = values.data();
  starts.count = 2;
  starts.batch_stride = 1;
  expect_refused(starts, ErrorCode::invalid_argument, {"positions"});
  const std::vector<std::int32_t> cu{0, 4};
  Positions packed = Positions::from_cu_seqlens(std::span<const std::int32_t>(cu));
  packed.cu_type = Positions::Type::float32;
  expect_refused(packed, ErrorCode::invalid_argument, {"cu_seqlens"}, Dtype::float32,
                 {1, 4, 2, 16});
}

TEST(BadPositions, LimitsOfEveryDtypeAreNamed) {
  for (const Dtype dtype : kAllDtypes) {
    const int bits = dtype == Dtype::float64 ? 53 : 36;
    const std::int64_t limit = std::int64_t{1} << bits;
    for (const std::int64_t bad :
         {limit, -limit, limit + 7, std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min()}) {
      const std::vector<std::int64_t> tokens{0, 1, 2, bad};
      expect_refused(Positions::from_tokens(std::span<const std::int64_t>(tokens)),
                     ErrorCode::bad_position, {std::to_string(bad), std::to_string(bits)}, dtype);
      const std::vector<std::int64_t> starts{0, bad};
      expect_refused(Positions::from_batch_offsets(std::span<const std::int64_t>(starts)),
                     ErrorCode::bad_position, {std::to_string(bad)}, dtype);
      expect_refused(Positions::from_offset(bad), ErrorCode::bad_position, {std::to_string(bad)},
                     dtype);
    }
    // The run may begin inside and end outside.
    expect_refused(Positions::from_offset(limit - 3), ErrorCode::bad_position,
                   {std::to_string(limit)}, dtype);
    const HostTensor in = random_tensor(dtype, kShape, 9);
    const HostTensor out(dtype, kShape);
    for (const std::int64_t start : {limit - 4, -limit + 1}) {
      rotate_one(plan16(), in, out, Positions::from_offset(start));
      const Comparison found = judge(plan16(), in, out, Positions::from_offset(start));
      EXPECT_TRUE(found.pass()) << found.detail;
    }
  }
}

TEST(BadPositions, WrongCountsAndAxesAreRefused) {
  const std::vector<std::int64_t> five{0, 1, 2, 3, 4};
  expect_refused(Positions::from_tokens(std::span<const std::int64_t>(five)),
                 ErrorCode::invalid_argument, {"positions", "4", "5"});
  expect_refused(Positions::from_batch_offsets(std::span<const std::int64_t>(five)),
                 ErrorCode::invalid_argument, {"positions", "2", "5"});
  expect_refused(Positions::from_axes(std::span<const std::int64_t>(five), 3, 2, 4),
                 ErrorCode::invalid_argument,
                 {"positions: expected 3 axes × 2 batch rows × 4 tokens of values, got 5 values"});
  expect_refused(Positions::from_batch_tokens(std::span<const std::int64_t>(five), 4),
                 ErrorCode::invalid_argument, {"1 batch rows × 4 tokens", "got 5 values"});
  expect_refused(Positions::from_batch_tokens(std::span<const std::int64_t>(five), -1),
                 ErrorCode::invalid_argument, {"-1 tokens", "got 5 values"});
  const std::vector<std::int64_t> three_axes(24);
  expect_refused(Positions::from_axes(std::span<const std::int64_t>(three_axes), 3, 2, 4),
                 ErrorCode::invalid_argument, {"positions", "axes"});
  Positions null = Positions::from_tokens(std::span<const std::int64_t>(five).first(4));
  null.data = nullptr;
  expect_refused(null, ErrorCode::invalid_argument, {"positions", "null"});
}

// A (batch, token) array for fewer rows than the tensor has must not be read past its end.
TEST(BadPositions, TooFewBatchRowsAreRefused) {
  const std::vector<std::int64_t> two_rows(8);
  expect_refused(Positions::from_batch_tokens(std::span<const std::int64_t>(two_rows), 4),
                 ErrorCode::invalid_argument, {"positions"}, Dtype::float32, {3, 4, 2, 16});
}

TEST(BadPositions, BrokenCuSeqlensAreRefused) {
  const Shape flat{1, 6, 2, 16};
  const std::vector<std::vector<std::int32_t>> broken{{1, 6},     {0, 5}, {0, 7},   {0, 4, 3, 6},
                                                      {0, -1, 6}, {0},    {0, 8, 6}};
  for (const auto& cu : broken) {
    expect_refused(Positions::from_cu_seqlens(std::span<const std::int32_t>(cu)),
                   ErrorCode::invalid_argument, {"cu_seqlens"}, Dtype::float32, flat);
  }
  const std::vector<std::int32_t> good{0, 2, 6};
  expect_refused(Positions::from_cu_seqlens(std::span<const std::int32_t>()),
                 ErrorCode::invalid_argument, {"cu_seqlens"}, Dtype::float32, flat);
  expect_refused(Positions::from_cu_seqlens(std::span<const std::int32_t>(good)),
                 ErrorCode::invalid_argument, {"packed"}, Dtype::float32, {2, 6, 2, 16});
  Positions null = Positions::from_cu_seqlens(std::span<const std::int32_t>(good));
  null.cu_seqlens = nullptr;
  expect_refused(null, ErrorCode::invalid_argument, {"cu_seqlens"}, Dtype::float32, flat);

  const std::vector<std::int64_t> starts{0, std::int64_t{1} << 36};
  Positions far = Positions::from_cu_seqlens(std::span<const std::int32_t>(good));
  far.data = starts.data();
  far.count = 2;
  expect_refused(far, ErrorCode::bad_position, {"68719476736"}, Dtype::float32, flat);
  far.count = 1;
  expect_refused(far, ErrorCode::invalid_argument, {"positions"}, Dtype::float32, flat);
}

TEST(Padding, RowsPassThroughBitForBitWhateverTheyHold) {
  const std::vector<std::int64_t> tokens{5, -1, 7, -1};
  Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  positions.padding = -1;
  for (const Dtype dtype : kAllDtypes) {
    const HostTensor in = random_tensor(dtype, kShape, 2);
    // Signalling NaNs and poison in the padding rows must survive: they are copied, not computed.
    TensorView padding_rows = in.view();
    padding_rows.data = verify::element_at(in.view(), {0, 1, 0, 0});
    padding_rows.size[kToken] = 2;
    padding_rows.stride[kToken] *= 2;
    verify::for_each_index(padding_rows.size, [&](const Shape& at) {
      std::memset(verify::element_at(padding_rows, at), 0xff, size_of(dtype));
    });
    const HostTensor out(dtype, kShape);
    rotate_one(plan16(), in, out, positions);
    Comparison found = judge(plan16(), in, out, positions);
    rotate_one(plan16(), in.view(), positions);
    found.merge(compare_bits(out, in, verify::NanRule::same_bits));
    EXPECT_TRUE(found.pass()) << name_of(dtype) << ": " << found.detail;
  }
}

// Padding may lie outside the valid range, which is the point of a sentinel.
TEST(Padding, MayBeAnInvalidPosition) {
  const std::int64_t sentinel = std::numeric_limits<std::int64_t>::min();
  const std::vector<std::int64_t> tokens{sentinel, 1, 2, sentinel};
  Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  expect_refused(positions, ErrorCode::bad_position, {"positions"});
  positions.padding = sentinel;
  const HostTensor in = random_tensor(Dtype::float16, kShape, 2);
  const HostTensor out(Dtype::float16, kShape);
  rotate_one(plan16(), in, out, positions);
  const Comparison found = judge(plan16(), in, out, positions);
  EXPECT_TRUE(found.pass()) << found.detail;
}

}  // namespace
}  // namespace ropewalk
