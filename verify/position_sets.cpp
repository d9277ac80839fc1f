#include "verify/position_sets.h"

#include <algorithm>
#include <limits>

namespace ropewalk::verify {
namespace {

constexpr std::int64_t kPadding = -7;

std::vector<std::int64_t> shuffled(std::vector<std::int64_t> values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(
        values[i - 1],
        values[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
  }
  return values;
}

std::int64_t any_landmark(Dtype dtype, Random& random) {
  const auto all = landmark_positions(dtype);
  return all[static_cast<std::size_t>(
      random.integer(0, static_cast<std::int64_t>(all.size()) - 1))];
}

void set_tokens(PositionSet& set, const std::vector<std::int64_t>& landmarks) {
  set.int64s = landmarks;
  set.tokens = static_cast<std::int64_t>(set.int64s.size());
  set.positions = Positions::from_tokens(std::span<const std::int64_t>(set.int64s));
}

void set_packed(PositionSet& set, Dtype dtype, bool with_starts, Random& random) {
  set.cu_seqlens = {0, 5, 5, 6, 11};
  set.tokens = set.cu_seqlens.back();
  set.positions = Positions::from_cu_seqlens(std::span<const std::int32_t>(set.cu_seqlens));
  if (!with_starts) return;
  for (int s = 0; s < 4; ++s) set.int64s.push_back(any_landmark(dtype, random));
  set.positions.data = set.int64s.data();
  set.positions.type = Positions::Type::int64;
  set.positions.count = static_cast<std::int64_t>(set.int64s.size());
}

/// Fractions of every fineness beside landmarks with a fraction; exact in the type by construction.
template <class Float>
std::vector<Float> fractional(std::int64_t count, Random& random) {
  std::vector<Float> values{Float(0.5),        Float(-0.5),    Float(1) / 3,
                            Float(499.75),     Float(4095.25), Float(-131071.5),
                            Float(1048575.25), Float(1e-30),   Float(2147483648.0)};
  while (static_cast<std::int64_t>(values.size()) < count) {
    values.push_back(static_cast<Float>(random.normal()));
  }
  values.resize(static_cast<std::size_t>(count));
  return values;
}

}  // namespace

std::vector<std::int64_t> landmark_positions(Dtype dtype) {
  std::vector<std::int64_t> all{0,
                                1,
                                2,
                                499,
                                4095,
                                8191,
                                39001,
                                131071,
                                1 << 20,
                                (1 << 24) - 1,
                                1 << 24,
                                (1 << 24) + 1,
                                std::numeric_limits<std::int32_t>::max(),
                                std::int64_t{1} << 35,
                                -1,
                                -131071};
  if (dtype == Dtype::float64) {
    all.push_back((std::int64_t{1} << 53) - 100);
    all.push_back(-(std::int64_t{1} << 52) - 1);
  } else {
    all.push_back((std::int64_t{1} << 36) - 100);
    all.push_back(-(std::int64_t{1} << 35) - 1);
  }
  return all;
}

std::string_view name_of(PositionKind kind) noexcept {
  switch (kind) {
    case PositionKind::tokens_int64: return "tokens_int64";
    case PositionKind::tokens_int32: return "tokens_int32";
    case PositionKind::batch_tokens: return "batch_tokens";
    case PositionKind::offset: return "offset";
    case PositionKind::batch_offsets: return "batch_offsets";
    case PositionKind::packed: return "packed";
    case PositionKind::packed_starts: return "packed_starts";
    case PositionKind::three_axes: return "three_axes";
    case PositionKind::float32_axes: return "float32_axes";
    case PositionKind::float64_tokens: return "float64_tokens";
    case PositionKind::padded: return "padded";
  }
  return "?";
}

PositionSet make_positions(PositionKind kind, Dtype dtype, Random& random, std::int64_t max_batch) {
  PositionSet set;
  const std::vector<std::int64_t> landmarks = landmark_positions(dtype);
  const auto count = static_cast<std::int64_t>(landmarks.size());
  switch (kind) {
    case PositionKind::tokens_int64: set_tokens(set, landmarks); break;
    case PositionKind::tokens_int32:
      for (const std::int64_t p : landmarks) {
        if (p >= std::numeric_limits<std::int32_t>::min() &&
            p <= std::numeric_limits<std::int32_t>::max()) {
          set.int32s.push_back(static_cast<std::int32_t>(p));
        }
      }
      set.tokens = static_cast<std::int64_t>(set.int32s.size());
      set.positions = Positions::from_tokens(std::span<const std::int32_t>(set.int32s));
      break;
    case PositionKind::batch_tokens: {
      set.batch = std::min<std::int64_t>(2, max_batch);
      set.tokens = count;
      for (std::int64_t b = 0; b < set.batch; ++b) {
        const auto row = shuffled(landmarks, random);
        set.int64s.insert(set.int64s.end(), row.begin(), row.end());
      }
      set.positions =
          Positions::from_batch_tokens(std::span<const std::int64_t>(set.int64s), set.tokens);
      break;
    }
    case PositionKind::offset:
      set.batch = std::min<std::int64_t>(2, max_batch);
      set.tokens = 5;
      set.positions = Positions::from_offset(any_landmark(dtype, random) - 2);
      break;
    case PositionKind::batch_offsets:
      set.batch = std::min<std::int64_t>(3, max_batch);
      set.tokens = 5;
      for (std::int64_t b = 0; b < set.batch; ++b)
        set.int64s.push_back(any_landmark(dtype, random) - 2);
      set.positions = Positions::from_batch_offsets(std::span<const std::int64_t>(set.int64s));
      break;
    case PositionKind::packed: set_packed(set, dtype, false, random); break;
    case PositionKind::packed_starts: set_packed(set, dtype, true, random); break;
    case PositionKind::three_axes:
      set.axes = 3;
      set.tokens = count;
      for (int a = 0; a < 3; ++a) {
        const auto component = shuffled(landmarks, random);
        set.int64s.insert(set.int64s.end(), component.begin(), component.end());
      }
      set.positions =
          Positions::from_axes(std::span<const std::int64_t>(set.int64s), 3, 1, set.tokens);
      break;
    case PositionKind::float32_axes:
      set.axes = 2;
      set.tokens = 12;
      set.floats = fractional<float>(24, random);
      set.positions = Positions::from_floats(std::span<const float>(set.floats), 2, 1, 12);
      break;
    case PositionKind::float64_tokens:
      set.tokens = 13;
      set.doubles = fractional<double>(13, random);
      set.positions = Positions::from_floats(std::span<const double>(set.doubles), 1, 1, 13);
      break;
    case PositionKind::padded: {
      auto with_padding = landmarks;
      with_padding[1] = with_padding[6] = with_padding.back() = kPadding;
      set_tokens(set, with_padding);
      set.positions.padding = kPadding;
      break;
    }
  }
  return set;
}

}  // namespace ropewalk::verify
