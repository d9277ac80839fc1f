#include "rotate/positions.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ropewalk {
namespace {

using Kind = Positions::Kind;
using Type = Positions::Type;

bool is_float(Type type) { return type == Type::float32 || type == Type::float64; }

[[noreturn]] void fail_position(std::int64_t position, const PositionRules& rules) {
  if (rules.rows > 0) {
    fail(ErrorCode::bad_position, "positions: {} is outside the table of {} rows", position,
         rules.rows);
  }
  fail(ErrorCode::bad_position, "positions: {} is outside the limit |position| < 2^{}", position,
       rules.float64_data ? 53 : 36);
}

bool is_valid(std::int64_t position, const PositionRules& rules) {
  if (rules.rows > 0) return position >= 0 && position < rules.rows;
  const std::int64_t limit = rules.float64_data ? kPositionLimitFloat64 : kPositionLimit;
  return position > -limit && position < limit;
}

/// A span given to a factory of Positions holds what its sizes say: exactly that where it is read
/// without gaps, at least that where the caller has set other strides.
void check_length(const Positions& p) {
  if (p.values < 0) return;
  const bool sizes_ok = p.axes >= 0 && p.batches >= 0 && p.count >= 0;
  const auto read = static_cast<__int128>(p.axes) * p.batches * p.count;
  const bool dense = p.token_stride == 1 && (p.batches <= 1 || p.batch_stride == p.count) &&
                     (p.axes <= 1 || p.axis_stride == p.batches * p.count);
  const auto reach = [](std::int64_t size, std::int64_t stride) {
    return size <= 1 ? __int128{0} : static_cast<__int128>(size - 1) * stride;
  };
  const __int128 steps[] = {reach(p.axes, p.axis_stride), reach(p.batches, p.batch_stride),
                            reach(p.count, p.token_stride)};
  __int128 lowest = 0;
  __int128 highest = 0;
  for (const __int128 step : steps) (step < 0 ? lowest : highest) += step;
  const bool inside = read == 0 || (lowest >= 0 && highest < p.values);
  require(sizes_ok && (dense ? read == p.values : inside),
          "positions: expected {} axes × {} batch rows × {} tokens of values{}, got {} values",
          p.axes, p.batches, p.count, dense ? "" : " at the given strides", p.values);
}

}  // namespace

void check_description(const Positions& p, const PositionRules& rules) {
  require(p.type <= Type::float64 && p.cu_type <= Type::float64, "positions: unknown type {}",
          static_cast<int>(std::max(p.type, p.cu_type)));
  if (p.kind != Kind::per_token) {
    require(!is_float(p.type), "positions: starts of sequences must be integers");
    require(p.axes == 1, "positions: only per-token positions have several axes, got {}", p.axes);
  }
  switch (p.kind) {
    case Kind::offset: return;
    case Kind::per_batch:
      require(p.count == rules.batch, "positions: expected one start per batch row ({}), got {}",
              rules.batch, p.count);
      require(p.data != nullptr || p.count == 0 || rules.batch == 0,
              "positions: expected data, got a null pointer");
      return;
    case Kind::per_token:
      check_length(p);
      require(p.count == rules.tokens, "positions: expected one per token ({}), got {}",
              rules.tokens, p.count);
      require(p.batches == 0 || p.batches == rules.batch || (p.batches == 1 && p.batch_stride == 0),
              "positions: expected {} batch rows (or 1 with stride 0), got {}", rules.batch,
              p.batches);
      require(p.axes == 1 || p.axes == rules.axes,
              "positions: expected 1 or {} axes (the plan's), got {}", rules.axes, p.axes);
      require(p.data != nullptr || p.count == 0 || rules.batch == 0,
              "positions: expected data, got a null pointer");
      require(!is_float(p.type) || rules.rows == 0,
              "positions: a table is indexed by integers, got float positions");
      return;
    case Kind::packed:
      require(rules.batch <= 1, "positions: packed sequences have one batch row, got {}",
              rules.batch);
      require(p.sequences >= 0, "cu_seqlens: expected at least one entry, got {}", p.sequences + 1);
      require(p.cu_seqlens != nullptr, "cu_seqlens: expected data, got a null pointer");
      require(!is_float(p.cu_type), "cu_seqlens: expected integers");
      require(p.data == nullptr || p.count == p.sequences,
              "positions: expected one start per sequence ({}), got {}", p.sequences, p.count);
      return;
  }
  fail(ErrorCode::invalid_argument, "positions: unknown kind {}", static_cast<int>(p.kind));
}

void check_offset(const Positions& positions, const PositionRules& rules) {
  const std::int64_t first = positions.start;
  if (!is_valid(first, rules)) fail_position(first, rules);
  const std::int64_t last = first + rules.tokens - 1;  // a valid first one leaves room for the sum
  if (!is_valid(last, rules)) fail_position(last, rules);
}

PositionReader::PositionReader(const Positions& positions, const PositionRules& rules)
    : positions_(positions), rules_(rules) {
  check_description(positions_, rules_);
  if (rules_.batch > 0 && rules_.tokens > 0) check_values();
}

void PositionReader::check_range(std::int64_t first, std::int64_t last) const {
  if (!is_valid(first, rules_)) fail_position(first, rules_);
  if (!is_valid(last, rules_)) fail_position(last, rules_);
}

void PositionReader::check_packed() const {
  const std::int64_t n = positions_.sequences;
  require(boundary(0) == 0, "cu_seqlens: expected to begin with 0, got {}", boundary(0));
  require(boundary(n) == rules_.tokens, "cu_seqlens: expected to end with {} tokens, got {}",
          rules_.tokens, boundary(n));
  for (std::int64_t s = 0; s < n; ++s) {
    const std::int64_t length = boundary(s + 1) - boundary(s);
    require(length >= 0 && boundary(s) >= 0, "cu_seqlens: entry {} is {}, below the {} before it",
            s + 1, boundary(s + 1), boundary(s));
    if (length == 0) continue;
    const std::int64_t start = positions_.data == nullptr ? 0 : integer(s);
    check_range(start, start);
    check_range(start + length - 1, start + length - 1);
  }
}

void PositionReader::check_values() const {
  switch (positions_.kind) {
    case Kind::offset: check_offset(positions_, rules_); return;
    case Kind::per_batch:
      for (std::int64_t b = 0; b < rules_.batch; ++b) {
        const std::int64_t start = integer(index_of(0, b, 0));
        if (!is_valid(start, rules_)) fail_position(start, rules_);
        check_range(start, start + rules_.tokens - 1);
      }
      return;
    case Kind::packed: check_packed(); return;
    case Kind::per_token: break;
  }
  const std::int64_t batches = positions_.batch_stride == 0 ? 1 : rules_.batch;
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t t = 0; t < rules_.tokens; ++t) {
      if (has_padding() && is_padding(b, t)) continue;
      for (std::int64_t axis = 0; axis < positions_.axes; ++axis) {
        const std::int64_t index = index_of(axis, b, t);
        if (is_float(positions_.type)) {
          const double value = fraction(index);
          const auto limit =
              static_cast<double>(rules_.float64_data ? kPositionLimitFloat64 : kPositionLimit);
          if (!(std::fabs(value) < limit)) {
            fail(ErrorCode::bad_position, "positions: {} is outside the limit |position| < 2^{}",
                 value, rules_.float64_data ? 53 : 36);
          }
        } else if (!is_valid(integer(index), rules_)) {
          fail_position(integer(index), rules_);
        }
      }
    }
  }
}

std::int64_t PositionReader::integer(std::int64_t index) const {
  return positions_.type == Type::int32 ? static_cast<const std::int32_t*>(positions_.data)[index]
                                        : static_cast<const std::int64_t*>(positions_.data)[index];
}

double PositionReader::fraction(std::int64_t index) const {
  return positions_.type == Type::float32
             ? static_cast<double>(static_cast<const float*>(positions_.data)[index])
             : static_cast<const double*>(positions_.data)[index];
}

std::int64_t PositionReader::boundary(std::int64_t index) const {
  return positions_.cu_type == Type::int32
             ? static_cast<const std::int32_t*>(positions_.cu_seqlens)[index]
             : static_cast<const std::int64_t*>(positions_.cu_seqlens)[index];
}

std::int64_t PositionReader::index_of(std::int64_t axis, std::int64_t batch,
                                      std::int64_t token) const {
  return axis * positions_.axis_stride + batch * positions_.batch_stride +
         token * positions_.token_stride;
}

bool PositionReader::is_padding(std::int64_t batch, std::int64_t token) const {
  if (!positions_.padding) return false;
  const std::int64_t padding = *positions_.padding;
  for (std::int64_t axis = 0; axis < positions_.axes; ++axis) {
    const std::int64_t index = index_of(axis, batch, token);
    const bool same = is_float(positions_.type) ? fraction(index) == static_cast<double>(padding)
                                                : integer(index) == padding;
    if (!same) return false;
  }
  return true;
}

std::int64_t PositionReader::sequence_of(std::int64_t token) const {
  std::int64_t low = 0;
  std::int64_t high = positions_.sequences - 1;
  while (low < high) {  // the last sequence that begins at or before the token
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (boundary(middle) <= token) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void PositionReader::read(std::int64_t batch, std::int64_t first, std::int64_t count,
                          FixedPosition* out, bool* pass) const {
  const auto put = [&](std::int64_t t, std::int64_t position) {
    for (int axis = 0; axis < rules_.axes; ++axis) out[t * rules_.axes + axis] = {position, 0};
    if (pass != nullptr) pass[t] = has_padding() && position == *positions_.padding;
  };
  switch (positions_.kind) {
    case Kind::offset:
      for (std::int64_t t = 0; t < count; ++t) put(t, positions_.start + first + t);
      return;
    case Kind::per_batch: {
      const std::int64_t start = integer(index_of(0, batch, 0));
      for (std::int64_t t = 0; t < count; ++t) put(t, start + first + t);
      return;
    }
    case Kind::packed: {
      std::int64_t sequence = sequence_of(first);
      for (std::int64_t t = 0; t < count; ++t) {
        while (boundary(sequence + 1) <= first + t) ++sequence;
        const std::int64_t start = positions_.data == nullptr ? 0 : integer(sequence);
        put(t, start + first + t - boundary(sequence));
      }
      return;
    }
    case Kind::per_token: break;
  }
  for (std::int64_t t = 0; t < count; ++t) {
    for (int axis = 0; axis < rules_.axes; ++axis) {
      const std::int64_t given = positions_.axes == 1 ? 0 : axis;
      const std::int64_t index = index_of(given, batch, first + t);
      out[t * rules_.axes + axis] = is_float(positions_.type) ? fixed_position(fraction(index))
                                                              : FixedPosition{integer(index), 0};
    }
    if (pass != nullptr) pass[t] = has_padding() && is_padding(batch, first + t);
    // A padding row is copied; its position may lie anywhere, and is not used.
  }
}

}  // namespace ropewalk
