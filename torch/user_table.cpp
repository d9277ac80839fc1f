#include "user_table.h"

#include <fmt/format.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <cmath>
#include <span>

#include "ropewalk/error.h"

namespace ropewalk::torch_ops {
namespace {

using ScalarType = TensorArgument::ScalarType;

constexpr std::int64_t kPadded = -1;  // the position of a padding row, which has no table row

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

std::int64_t integer_at(const void* data, Positions::Type type, std::int64_t index) {
  return type == Positions::Type::int32 ? static_cast<const std::int32_t*>(data)[index]
                                        : static_cast<const std::int64_t*>(data)[index];
}

/// The rows of all described tokens: batch × tokens, or tokens where every batch row is the same.
std::vector<std::int64_t> described_rows(const Positions& p, const ConstTensorView& view,
                                         bool per_batch) {
  const std::int64_t tokens = view.size[kToken];
  const std::int64_t batch = per_batch ? view.size[kBatch] : 1;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch * tokens));
  const auto put = [&](std::int64_t b, std::int64_t t, std::int64_t row) {
    rows[static_cast<std::size_t>(b * tokens + t)] = row;
  };
  switch (p.kind) {
    case Positions::Kind::offset:
      for (std::int64_t t = 0; t < tokens; ++t) put(0, t, p.start + t);
      break;
    case Positions::Kind::per_batch:
      if (p.count != batch) {
        refuse(fmt::format("starts: expected one per batch row ({}), got {}", batch, p.count));
      }
      for (std::int64_t b = 0; b < batch; ++b) {
        const std::int64_t start = integer_at(p.data, p.type, b * p.batch_stride);
        for (std::int64_t t = 0; t < tokens; ++t) put(b, t, start + t);
      }
      break;
    case Positions::Kind::per_token:
      if (p.axes != 1) refuse("positions: a table has one axis");
      for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t t = 0; t < tokens; ++t) {
          put(b, t, integer_at(p.data, p.type, b * p.batch_stride + t * p.token_stride));
        }
      }
      break;
    case Positions::Kind::packed: {
      std::int64_t first = 0;
      for (std::int64_t s = 0; s < p.sequences; ++s) {
        const std::int64_t last = integer_at(p.cu_seqlens, p.cu_type, s + 1);
        if (last < first || last > tokens) {
          refuse(fmt::format("cu_seqlens: entry {} is {}, expected {} to {}", s + 1, last, first,
                             tokens));
        }
        const std::int64_t start = p.data == nullptr ? 0 : integer_at(p.data, p.type, s);
        for (std::int64_t t = first; t < last; ++t) put(0, t, start + t - first);
        first = last;
      }
      if (first != tokens || integer_at(p.cu_seqlens, p.cu_type, 0) != 0 || view.size[kBatch] > 1) {
        refuse(
            fmt::format("cu_seqlens: expected one batch row, a first entry of 0 and a last "
                        "entry of {} tokens",
                        tokens));
      }
      break;
    }
  }
  return rows;
}

void check_rows(std::vector<std::int64_t>& rows, const std::optional<std::int64_t>& padding,
                std::int64_t table_rows) {
  for (std::int64_t& row : rows) {
    if (padding.has_value() && row == *padding) {
      row = kPadded;
    } else if (row < 0 || row >= table_rows) {
      throw Error(ErrorCode::bad_position,
                  fmt::format("positions: {} is outside the table of {} rows", row, table_rows));
    }
  }
}

/// Columns of pair i in a table that holds every value twice.
struct Copies {
  std::int64_t first;
  std::int64_t second;
};
Copies copies_of(Pairing pairing, std::int64_t pair, std::int64_t pairs) {
  if (pairing == Pairing::interleaved) return {2 * pair, 2 * pair + 1};
  return {pair, pair + pairs};
}

template <class Source, class Real>
void gather_as(const TensorArgument& tensor, const RotaryPlan& plan,
               std::span<const std::int64_t> rows, const char* name, std::vector<Real>& out) {
  const auto* data = static_cast<const Source*>(tensor.data());
  const std::int64_t pairs = plan.pairs();
  const bool doubled = tensor.size(1) == 2 * pairs;
  const std::int64_t step = tensor.stride(1);
  std::size_t at = 0;
  for (const std::int64_t row : rows) {
    const Source* values = data + (row == kPadded ? 0 : row) * tensor.stride(0);
    for (std::int64_t i = 0; i < pairs; ++i) {
      const auto [first, second] = doubled ? copies_of(plan.pairing(), i, pairs) : Copies{i, i};
      const auto value = static_cast<Real>(values[first * step]);
      const auto copy = static_cast<Real>(values[second * step]);
      if (row != kPadded && value != copy && !(std::isnan(value) && std::isnan(copy))) {
        refuse(
            fmt::format("{}: columns {} and {} of row {} differ; a table of rotary_dim = {} "
                        "columns holds every value twice",
                        name, first, second, row, 2 * pairs));
      }
      out[at++] = value;
    }
  }
}

template <class Real>
std::vector<Real> gather(const TensorArgument& tensor, const RotaryPlan& plan,
                         std::span<const std::int64_t> rows, const char* name) {
  std::vector<Real> out(rows.size() * static_cast<std::size_t>(plan.pairs()));
  switch (tensor.scalar_type()) {
    case ScalarType::Double: gather_as<double>(tensor, plan, rows, name, out); break;
    case ScalarType::Float: gather_as<float>(tensor, plan, rows, name, out); break;
    case ScalarType::Half: gather_as<torch::headeronly::Half>(tensor, plan, rows, name, out); break;
    case ScalarType::BFloat16:
      gather_as<torch::headeronly::BFloat16>(tensor, plan, rows, name, out);
      break;
    default: refuse(fmt::format("{}: expected float64, float32, float16 or bfloat16", name));
  }
  return out;
}

void check_shape(const TensorArgument& tensor, const RotaryPlan& plan, const char* name) {
  if (tensor.dim() != 2 || tensor.size(0) < 1 ||
      (tensor.size(1) != plan.pairs() && tensor.size(1) != plan.rotary_dim())) {
    refuse(
        fmt::format("{}: expected (rows, {}) or (rows, {}), rotary_dim / 2 or rotary_dim columns",
                    name, plan.pairs(), plan.rotary_dim()));
  }
  if (!tensor.is_cpu()) refuse(fmt::format("{}: expected a tensor on the device of q", name));
}

RotaryTable make_table(const RotaryPlan& plan, const TensorArgument& cos, const TensorArgument& sin,
                       std::span<const std::int64_t> rows, Dtype dtype) {
  if (dtype == Dtype::float64) {
    return {plan, std::span<const double>(gather<double>(cos, plan, rows, "cos")),
            std::span<const double>(gather<double>(sin, plan, rows, "sin")), dtype};
  }
  return {plan, std::span<const float>(gather<float>(cos, plan, rows, "cos")),
          std::span<const float>(gather<float>(sin, plan, rows, "sin")), dtype};
}

bool differs_by_batch(const Positions& p) {
  return p.kind == Positions::Kind::per_batch ||
         (p.kind == Positions::Kind::per_token && p.batch_stride != 0);
}

std::vector<std::int64_t> checked_rows(const RotaryPlan& plan, const TensorArgument& cos,
                                       const TensorArgument& sin, const Positions& positions,
                                       const ConstTensorView& view) {
  check_shape(cos, plan, "cos");
  check_shape(sin, plan, "sin");
  if (cos.size(0) != sin.size(0)) {
    refuse(fmt::format("sin: expected {} rows as cos has, got {}", cos.size(0), sin.size(0)));
  }
  std::vector<std::int64_t> rows = described_rows(positions, view, differs_by_batch(positions));
  check_rows(rows, positions.padding, cos.size(0));
  return rows;
}

}  // namespace

UserTable::UserTable(const RotaryPlan& plan, const TensorArgument& cos, const TensorArgument& sin,
                     const Positions& positions, const ConstTensorView& view)
    : per_batch_(differs_by_batch(positions)),
      tokens_(view.size[kToken]),
      rows_(checked_rows(plan, cos, sin, positions, view)),
      has_padding_(positions.padding.has_value()),
      table_(make_table(plan, cos, sin, rows_, view.dtype)) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i] != kPadded) rows_[i] = static_cast<std::int64_t>(i);
  }
}

Positions UserTable::positions() const noexcept {
  Positions positions =
      per_batch_ ? Positions::from_batch_tokens(rows_, tokens_) : Positions::from_tokens(rows_);
  if (has_padding_) positions.padding = kPadded;
  return positions;
}

}  // namespace ropewalk::torch_ops
