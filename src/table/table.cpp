#include "ropewalk/table.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/half.h"
#include "phase/phase.h"
#include "phase/scalar_lanes.h"
#include "phase/sincos.h"

namespace ropewalk {
namespace {

constexpr std::int64_t kMaxRows = std::int64_t{1} << 31;

bool holds_double(const RotaryPlan& plan, Dtype dtype) {
  return dtype == Dtype::float64 || plan.arithmetic() == Arithmetic::parity_p4;
}

/// P0 and P1 store cosines and sines in the dtype of the data.
float rounded(float value, Arithmetic arithmetic, Dtype dtype) {
  if (arithmetic != Arithmetic::parity_p0 && arithmetic != Arithmetic::parity_p1) return value;
  if (dtype == Dtype::float16) return to_float(to_float16(value));
  if (dtype == Dtype::bfloat16) return to_float(to_bfloat16(value));
  return value;
}

/// One entry by the exact arithmetic, amplitude and sign folded in as rotate does.
template <class Real>
void exact_angle(const RotaryPlan& plan, std::int64_t position, std::size_t pair, Real& cos,
                 Real& sin) {
  using Lane = ScalarLanes<Real>;
  const Turns& turns = plan.turns()[pair];
  const std::uint64_t low = sizeof(Real) == 8 ? turns.low : 0;
  const std::uint64_t phase = phase_of(position, turns.fraction, low);
  Real t, c, s;
  typename Lane::Quadrant q;
  Lane::split_phase(&phase, t, q);
  sincos_of_turn<Lane>(t, q, c, s);
  cos = c * static_cast<Real>(plan.amplitude());
  sin = s * static_cast<Real>(plan.amplitude() * plan.sign());
}

/// One entry by the recipe of the models: the angle is a product of two floats, rounded once.
/// cos and sin of it are taken in double and rounded, which is the correct rounding but for a
/// handful of the 2^32 floats.
void recipe_angle32(const RotaryPlan& plan, std::int64_t position, std::size_t pair, float& cos,
                    float& sin) {
  const auto angle =
      static_cast<double>(plan.model_frequencies()[pair] * static_cast<float>(position));
  const auto amplitude = static_cast<float>(plan.amplitude());
  cos = static_cast<float>(std::cos(angle)) * amplitude;
  sin = static_cast<float>(std::sin(angle)) * amplitude * static_cast<float>(plan.sign());
}

/// The same recipe for tables in double: P4, and float64 data, whose models hold fp32 angles.
void recipe_angle64(const RotaryPlan& plan, std::int64_t position, std::size_t pair, double& cos,
                    double& sin) {
  if (plan.arithmetic() != Arithmetic::parity_p4) {
    float cos32 = 0;
    float sin32 = 0;
    recipe_angle32(plan, position, pair, cos32, sin32);
    cos = static_cast<double>(cos32);
    sin = static_cast<double>(sin32);
    return;
  }
  const double angle = plan.frequencies()[pair] * static_cast<double>(position);
  cos = std::cos(angle) * plan.amplitude();
  sin = std::sin(angle) * plan.amplitude() * plan.sign();
}

template <class Real>
std::int64_t rows_of_user_table(const RotaryPlan& plan, std::span<const Real> cos,
                                std::span<const Real> sin) {
  require(cos.size() == sin.size(), "sin: expected {} values as cos has, got {}", cos.size(),
          sin.size());
  const auto pairs = static_cast<std::size_t>(std::max<std::int64_t>(1, plan.pairs()));
  require(!cos.empty() && cos.size() % pairs == 0,
          "cos: expected rows of {} values (one per pair), got {} values", pairs, cos.size());
  return static_cast<std::int64_t>(cos.size() / pairs);
}

}  // namespace

RotaryTable::RotaryTable(RotaryPlan plan, Dtype dtype, std::int64_t rows)
    : plan_(std::move(plan)), dtype_(dtype), rows_(rows) {
  require(rows_ >= 1 && rows_ <= kMaxRows, "rows: expected 1 to 2^31, got {}", rows_);
  require(plan_.rotates(), "plan: a plan that does not rotate has no table");
  require(plan_.axes() == 1, "plan: a table has one axis, the plan has {}", plan_.axes());
}

RotaryTable::RotaryTable(RotaryPlan plan, std::int64_t rows, Dtype dtype)
    : RotaryTable(std::move(plan), dtype, rows) {
  fill_rows(nullptr);
}

RotaryTable::RotaryTable(RotaryPlan plan, std::span<const std::int64_t> positions, Dtype dtype)
    : RotaryTable(std::move(plan), dtype, static_cast<std::int64_t>(positions.size())) {
  const bool wide = dtype_ == Dtype::float64;
  const std::int64_t limit = wide ? kPositionLimitFloat64 : kPositionLimit;
  for (const std::int64_t position : positions) {
    if (position > -limit && position < limit) continue;
    fail(ErrorCode::bad_position, "positions: {} is outside the limit |position| < 2^{}", position,
         wide ? 53 : 36);
  }
  fill_rows(positions.data());
}

/// Row i is that of positions[i]; null: of position i.
void RotaryTable::fill_rows(const std::int64_t* positions) {
  const bool exact = plan_.arithmetic() == Arithmetic::exact;
  if (holds_double(plan_, dtype_)) {
    fill(cos64_, sin64_, positions, exact ? &exact_angle<double> : &recipe_angle64);
  } else {
    fill(cos_, sin_, positions, exact ? &exact_angle<float> : &recipe_angle32);
    for (std::vector<float>* values : {&cos_, &sin_}) {
      for (float& value : *values) value = rounded(value, plan_.arithmetic(), dtype_);
    }
  }
}

RotaryTable::RotaryTable(const RotaryPlan& plan, std::span<const float> cos,
                         std::span<const float> sin, Dtype dtype)
    : RotaryTable(plan, dtype, rows_of_user_table(plan, cos, sin)) {
  assign(cos, sin);
}

RotaryTable::RotaryTable(const RotaryPlan& plan, std::span<const double> cos,
                         std::span<const double> sin, Dtype dtype)
    : RotaryTable(plan, dtype, rows_of_user_table(plan, cos, sin)) {
  assign(cos, sin);
}

template <class Real>
void RotaryTable::assign(std::span<const Real> cos, std::span<const Real> sin) {
  if (holds_double(plan_, dtype_)) {
    cos64_.assign(cos.begin(), cos.end());
    sin64_.assign(sin.begin(), sin.end());
    return;
  }
  const auto narrow = [](std::span<const Real> from, std::vector<float>& to) {
    to.reserve(from.size());
    for (const Real value : from) to.push_back(static_cast<float>(value));
  };
  narrow(cos, cos_);
  narrow(sin, sin_);
}

template <class Real>
void RotaryTable::fill(std::vector<Real>& cos, std::vector<Real>& sin,
                       const std::int64_t* positions,
                       void (*angle)(const RotaryPlan&, std::int64_t, std::size_t, Real&, Real&)) {
  const auto count = static_cast<std::size_t>(rows_ * pairs());
  cos.resize(count);
  sin.resize(count);
  std::size_t at = 0;
  for (std::int64_t row = 0; row < rows_; ++row) {
    const std::int64_t position = positions == nullptr ? row : positions[row];
    for (std::size_t pair = 0; pair < static_cast<std::size_t>(pairs()); ++pair, ++at) {
      angle(plan_, position, pair, cos[at], sin[at]);
    }
  }
}

}  // namespace ropewalk
