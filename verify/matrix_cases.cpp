// Which cases the matrix has, and their plans.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verify/matrix.h"

namespace ropewalk::verify {
namespace {

constexpr std::array kDtypes{Dtype::float32, Dtype::bfloat16, Dtype::float16, Dtype::float64};
constexpr std::array kPairings{Pairing::half, Pairing::interleaved, Pairing::interleaved_to_half};
constexpr std::array kDirections{Direction::forward, Direction::inverse};
/// Vector tails of every length, powers of two, and the dims that models have.
constexpr std::array<std::int64_t, 19> kRotaryDims{2,  4,  6,  10, 16,  20,  24,  36,  40, 46,
                                                   64, 72, 80, 96, 128, 160, 192, 256, 576};
/// Rounds of quick: each dtype × pairing × layout comes up this often with other partners.
constexpr int kQuickRounds = 3;

template <class Range>
auto cycle(const Range& range, std::size_t n) {
  return range[n % range.size()];
}

Values draw_values(Random& random) {
  const std::int64_t n = random.integer(0, 9);
  return n < 6 ? Values::normal : n < 8 ? Values::wide : Values::non_finite;
}

MatrixCase draw_rest(MatrixCase c, Random& random) {
  c.variant = cycle(kPlanVariants, static_cast<std::size_t>(random.integer(0, 1 << 20)));
  c.values = draw_values(random);
  c.seed = static_cast<std::uint64_t>(random.integer(0, std::int64_t{1} << 62));
  return c;
}

template <class Body>
void for_each_main_axis(Body&& body) {
  for (const Layout layout : kLayouts) {
    for (const Pairing pairing : kPairings) {
      for (const Dtype dtype : kDtypes) {
        body(MatrixCase{.dtype = dtype, .pairing = pairing, .layout = layout});
      }
    }
  }
}

std::vector<MatrixCase> quick_cases(Random& random) {
  std::vector<MatrixCase> cases;
  // Consecutive n visit all position kinds and rotary dims (their counts are prime, or coprime to
  // the 84 combinations of a round), from a start that the seed draws.
  auto n = static_cast<std::size_t>(random.integer(0, 1 << 20));
  for (int round = 0; round < kQuickRounds; ++round) {
    for_each_main_axis([&](MatrixCase c) {
      ++n;
      c.positions = cycle(kPositionKinds, n);
      c.rotary_dim = cycle(kRotaryDims, n);
      c.direction = cycle(kDirections, static_cast<std::size_t>(random.integer(0, 1)));
      c.in_place = random.integer(0, 1) == 1;
      cases.push_back(draw_rest(c, random));
    });
  }
  return cases;
}

std::vector<MatrixCase> full_cases(Random& random) {
  std::vector<MatrixCase> cases;
  for_each_main_axis([&](MatrixCase c) {
    for (const PositionKind positions : kPositionKinds) {
      for (const std::int64_t rotary_dim : kRotaryDims) {
        for (const Direction direction : kDirections) {
          for (const bool in_place : {false, true}) {
            c.positions = positions;
            c.rotary_dim = rotary_dim;
            c.direction = direction;
            c.in_place = in_place;
            cases.push_back(draw_rest(c, random));
          }
        }
      }
    }
  });
  return cases;
}

std::vector<double> frequencies_of(const MatrixCase& c) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < c.rotary_dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(c.rotary_dim);
    if (c.variant == PlanVariant::fast_turns) {
      frequencies.push_back((i % 3 == 1 ? -1.0 : 1.0) * 40.0 * std::pow(100.0, exponent));
    } else {
      frequencies.push_back(std::pow(5e5, exponent));
    }
  }
  return frequencies;
}

}  // namespace

std::string_view name_of(PlanVariant variant) noexcept {
  switch (variant) {
    case PlanVariant::plain: return "plain";
    case PlanVariant::tail: return "tail";
    case PlanVariant::offset_window: return "offset_window";
    case PlanVariant::amplitude: return "amplitude";
    case PlanVariant::negative_sign: return "negative_sign";
    case PlanVariant::blocks: return "blocks";
    case PlanVariant::fast_turns: return "fast_turns";
  }
  return "?";
}

std::string to_string(const MatrixCase& c) {
  return fmt::format("{} {} {} {} {} {} rotary_dim {} {} {} values, seed {}", name_of(c.dtype),
                     name_of(c.pairing), name_of(c.layout), name_of(c.positions),
                     name_of(c.direction), c.in_place ? "in place" : "out of place", c.rotary_dim,
                     name_of(c.variant), name_of(c.values), c.seed);
}

RotaryPlan plan_of(const MatrixCase& c, int axes) {
  PlanSpec spec;
  spec.head_dim = c.rotary_dim;
  spec.window = {0, c.rotary_dim};
  spec.pairing = c.pairing;
  spec.frequencies = frequencies_of(c);
  spec.axes = axes;
  if (axes > 1) {
    for (std::int64_t i = 0; i < c.rotary_dim / 2; ++i) {
      spec.axis.push_back(static_cast<std::uint8_t>(i % axes));
    }
  }
  switch (c.variant) {
    case PlanVariant::plain:
    case PlanVariant::fast_turns: break;
    case PlanVariant::tail: spec.head_dim += 1; break;
    case PlanVariant::offset_window:
      spec.head_dim += 7;
      spec.window.offset = 3;
      break;
    case PlanVariant::amplitude:
      spec.head_dim += 2;
      spec.amplitude = 1.2772588722239781;
      break;
    case PlanVariant::negative_sign: spec.sign = -1; break;
    case PlanVariant::blocks:
      if (c.pairing == Pairing::half && c.rotary_dim % 4 == 0) spec.block_width = c.rotary_dim / 2;
      break;
  }
  return RotaryPlan(spec);
}

std::vector<MatrixCase> matrix_cases(MatrixSize size, std::uint64_t seed) {
  Random random(seed);
  return size == MatrixSize::quick ? quick_cases(random) : full_cases(random);
}

}  // namespace ropewalk::verify
