#include "rotate/cuda/prepare.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/check.h"
#include "phase/phase.h"
#include "rotate/cuda/dimensions.h"
#include "rotate/cuda/policy_choice.h"

namespace ropewalk::cuda {
namespace {

constexpr std::int64_t kMaxGrid = (std::int64_t{1} << 31) - 1;

PositionArgs::Type type_of(Positions::Type type) {
  switch (type) {
    case Positions::Type::int32: return PositionArgs::kInt32;
    case Positions::Type::int64: return PositionArgs::kInt64;
    case Positions::Type::float32: return PositionArgs::kFloat32;
    case Positions::Type::float64: return PositionArgs::kFloat64;
  }
  return PositionArgs::kNone;
}

/// Orders of reading and writing: the inverse of "read interleaved, write half" swaps them.
void set_orders(Call& facts, Pairing pairing, Direction direction) {
  switch (pairing) {
    case Pairing::half: return;
    case Pairing::interleaved: facts.read = facts.write = Order::interleaved; return;
    case Pairing::interleaved_to_half:
      (direction == Direction::forward ? facts.read : facts.write) = Order::interleaved;
  }
}

/// The largest power of two up to 16 that divides every address of a chunk.
std::int64_t alignment_of(const PreparedCall& call) {
  const RotaryPlan& plan = *call.plan;
  const auto size = static_cast<std::int64_t>(size_of(call.facts.dtype));
  std::int64_t bits = 16 | plan.window().offset * size;
  if (call.facts.read == Order::half || call.facts.write == Order::half) {
    bits |= call.facts.block_pairs * size;
  }
  if (call.facts.copied > 0) {
    bits |= (plan.head_dim() - plan.window().offset - plan.rotary_dim()) * size |
            plan.rotary_dim() * size;
  }
  const auto add = [&](const void* data, const std::array<std::int64_t, 4>& shape,
                       const std::array<std::int64_t, 4>& stride) {
    bits |= static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) & 15);
    for (const std::size_t d : {kBatch, kToken, kHead}) {
      if (shape[d] > 1) bits |= std::llabs(stride[d]) * size;
    }
  };
  for (const auto& [in, out] : std::span(call.views).first(call.count)) {
    add(in.data, in.size, in.stride);
    add(out.data, out.size, out.stride);
  }
  return bits & -bits;
}

void check_alignment(const PreparedCall& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    const auto& [in, out] = call.views[i];
    const auto size = size_of(in.dtype);
    const auto address =
        reinterpret_cast<std::uintptr_t>(in.data) | reinterpret_cast<std::uintptr_t>(out.data);
    require(address % size == 0, "rotations[{}]: expected addresses that are multiples of {}", i,
            size);
  }
}

void fill_row(const PreparedCall& call, const Policy& policy, RowArgs& row) {
  const Call& facts = call.facts;
  const auto size = static_cast<std::int64_t>(size_of(facts.dtype));
  row.pairs = static_cast<std::uint32_t>(facts.pairs);
  row.block_pairs = static_cast<std::uint32_t>(facts.block_pairs);
  const RowLanes lanes = row_lanes(facts, policy);
  row.lanes = static_cast<std::uint32_t>(lanes.rotating);
  row.copy_lanes = static_cast<std::uint32_t>(lanes.copying);
  row.copy_chunks = static_cast<std::uint32_t>(lanes.chunks);
  row.copy_before =
      static_cast<std::uint32_t>(facts.copied > 0 ? call.plan->window().offset * size : 0);
  row.window = static_cast<std::uint32_t>(2 * facts.pairs * size);
  row.half = static_cast<std::uint32_t>(facts.block_pairs * size);
}

/// The narrow path shares the sines of a token among up to eight heads; more would leave threads
/// without work.
std::int64_t narrow_heads(const PreparedCall& call) {
  const std::int64_t divisor = std::gcd(call.facts.heads[0], call.facts.heads[1]);
  for (const std::int64_t heads : {4, 3, 5, 2, 7}) {
    if (call.plan->rotates() && divisor % heads == 0) return heads;
  }
  return 1;
}

Grid fill_narrow(const PreparedCall& call, std::int64_t heads, Args& args) {
  const Call& facts = call.facts;
  NarrowArgs& n = args.narrow;
  n.read_interleaved = facts.read == Order::interleaved ? 1 : 0;
  n.write_interleaved = facts.write == Order::interleaved ? 1 : 0;
  n.in_place = facts.in_place ? 1 : 0;
  n.heads = static_cast<std::uint32_t>(heads);
  n.offset = call.plan->window().offset;
  n.head_dim = call.plan->head_dim();
  n.general = facts.general ? 1 : 0;
  Grid grid;
  const std::int64_t lanes =
      call.plan->rotates() ? facts.pairs : std::min<std::int64_t>(n.head_dim, 128);
  grid.threads_x = static_cast<std::uint32_t>(lanes);
  grid.threads_y = std::max(1u, 128u / grid.threads_x);
  const auto blocks = [&](const ViewArgs& view) {
    return (view.groups + grid.threads_y - 1) / grid.threads_y;
  };
  n.split_block = blocks(args.view[0]);
  n.blocks = n.split_block + (call.count > 1 ? blocks(args.view[1]) : 0);
  grid.blocks_x = static_cast<std::uint32_t>(std::min(n.blocks, kMaxGrid));
  return grid;
}

Grid vector_grid(const PreparedCall& call, const Policy& policy, VectorArgs& args) {
  Grid grid;
  grid.threads_x = args.row.lanes + args.row.copy_lanes;
  grid.threads_y = static_cast<std::uint32_t>(policy.threads) / grid.threads_x;
  const auto blocks = [&](std::uint32_t groups) {
    return (groups + grid.threads_y - 1) / grid.threads_y;
  };
  if (policy.map == Map::tokens) {
    args.split = args.view[0].size0;
    grid.blocks_x = blocks(args.split + args.view[1].size0);
    grid.blocks_y = static_cast<std::uint32_t>(call.facts.tokens);
  } else {
    args.split = blocks(args.view[0].groups);
    grid.blocks_x = args.split + blocks(args.view[1].groups);
  }
  return grid;
}

/// q and k as one tensor with the heads of both, where they lie side by side in a packed buffer:
/// one sweep through memory instead of two with gaps.
bool join_heads(Rotation& q, const Rotation& k) {
  const auto beside = [](const auto& a, const auto& b) {
    const std::int64_t step =
        a.size[kHead] * a.stride[kHead] * static_cast<std::int64_t>(size_of(a.dtype));
    return a.stride == b.stride &&
           reinterpret_cast<std::uintptr_t>(a.data) + static_cast<std::uintptr_t>(step) ==
               reinterpret_cast<std::uintptr_t>(b.data);
  };
  if (!beside(q.in, k.in) || !beside(q.out, k.out)) return false;
  q.in.size[kHead] += k.in.size[kHead];
  q.out.size[kHead] += k.out.size[kHead];
  return true;
}

/// Whether row groups lie one behind the other in the input.
bool is_linear(const std::array<RowDimension, 3>& d) {
  const bool first = d[1].size == 1 || d[1].in == d[0].in * d[0].size;
  const bool second = d[2].size == 1 || d[2].in == d[1].in * d[1].size;
  return first && second;
}

bool same_strides(const std::array<RowDimension, 3>& dimensions) {
  return std::ranges::all_of(dimensions,
                             [](const RowDimension& d) { return d.size == 1 || d.in == d.out; });
}

bool have_same_head_strides(std::span<const Rotation> views) {
  return views[0].in.stride[kHead] == views[1].in.stride[kHead] &&
         views[0].out.stride[kHead] == views[1].out.stride[kHead];
}

}  // namespace

PositionArgs position_args(const PreparedCall& call, const DevicePointers& device) {
  const Positions& from = *call.positions;
  PositionArgs p;
  const bool has_data = from.kind == Positions::Kind::per_batch ||
                        from.kind == Positions::Kind::per_token ||
                        (from.kind == Positions::Kind::packed && from.data != nullptr);
  if (has_data) {
    p.data = from.data;
    p.type = type_of(from.type);
  }
  p.by_token = from.kind == Positions::Kind::per_token ? 0 : 1;
  p.start = from.kind == Positions::Kind::offset ? from.start : 0;
  if (from.kind == Positions::Kind::packed) {
    p.cu_seqlens = from.cu_seqlens;
    p.cu_type = type_of(from.cu_type);
    p.sequences = from.sequences;
  }
  if (device.table_rows > 0) {
    p.low = 0;
    p.limit = device.table_rows;
  } else {
    p.limit = call.facts.dtype == Dtype::float64 ? kPositionLimitFloat64 : kPositionLimit;
    p.low = 1 - p.limit;
  }
  p.range = p.limit - p.low;
  p.has_padding = from.padding.has_value() ? 1 : 0;
  p.padding = from.padding.value_or(0);
  p.axes = static_cast<std::int32_t>(from.axes);
  p.axis_stride = from.axis_stride;
  return p;
}

AngleArgs angle_args(const PreparedCall& call, const DevicePointers& device) {
  const RotaryPlan& plan = *call.plan;
  AngleArgs angle = device.angle;
  const double direction = call.direction == Direction::inverse ? -1.0 : 1.0;
  angle.cos_amplitude = plan.amplitude();
  angle.sin_amplitude = call.table ? direction : plan.amplitude() * (direction * plan.sign());
  angle.cos_amplitude32 = static_cast<float>(angle.cos_amplitude);
  angle.sin_amplitude32 = static_cast<float>(angle.sin_amplitude);
  switch (plan.arithmetic()) {
    case Arithmetic::exact: angle.step = kFused; break;
    case Arithmetic::parity_p0: angle.step = kStepwise; break;
    default: angle.step = kSeparate;
  }
  return angle;
}

const void* frequencies_of(const PreparedCall& call, const DevicePointers& device) {
  if (call.facts.dtype == Dtype::float64) return device.angle.precise;
  return device.angle.fractions;
}

PreparedCall prepare_call(const RotaryPlan& plan, const DevicePointers& device,
                          std::span<const Rotation> rotations, const Positions& positions,
                          Direction direction, int compute_capability) {
  PreparedCall call{.plan = &plan,
                    .positions = &positions,
                    .direction = direction,
                    .table = device.table_rows > 0,
                    .facts = {}};
  for (const Rotation& rotation : rotations) call.views[call.count++] = rotation;
  if (call.count == 2 && join_heads(call.views[0], call.views[1])) call.count = 1;
  check_alignment(call);
  Call& facts = call.facts;
  const Rotation& first = call.views.front();
  facts.compute_capability = compute_capability;
  facts.dtype = first.in.dtype;
  set_orders(facts, plan.pairing(), direction);
  facts.table = call.table;
  facts.several_axes = positions.axes > 1;
  facts.fractional =
      positions.kind == Positions::Kind::per_token &&
      (positions.type == Positions::Type::float32 || positions.type == Positions::Type::float64);
  facts.general = facts.several_axes || facts.fractional;
  facts.padding = positions.padding.has_value();
  facts.packed = positions.kind == Positions::Kind::packed;
  facts.int32_positions =
      positions.kind == Positions::Kind::per_token && positions.type == Positions::Type::int32;
  facts.computes_double = device.table_is_double && facts.dtype != Dtype::float64;
  facts.pairs = plan.pairs();
  facts.block_pairs = plan.block_width() == 0 ? plan.pairs() : plan.block_width() / 2;
  const auto views = std::span(call.views).first(call.count);
  facts.in_place = std::ranges::all_of(views, is_in_place);
  facts.copied = facts.in_place ? 0 : plan.head_dim() - plan.rotary_dim();
  facts.partial = plan.rotary_dim() < plan.head_dim();
  facts.tokens = first.in.size[kBatch] * first.in.size[kToken];
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto& [in, out] = views[i];
    facts.heads[i] = in.size[kHead];
    facts.channels_adjacent =
        facts.channels_adjacent &&
        (in.size[kChannel] <= 1 || (in.stride[kChannel] == 1 && out.stride[kChannel] == 1));
    facts.heads_inside =
        facts.heads_inside && std::llabs(out.stride[kHead]) <= std::llabs(out.stride[kToken]);
    facts.rows = std::max(facts.rows, facts.tokens * in.size[kHead]);
    facts.bytes += 2 * facts.tokens * in.size[kHead] * (2 * facts.pairs + facts.copied) *
                   static_cast<std::int64_t>(size_of(facts.dtype));
  }
  if (views.size() < 2) facts.heads[1] = 0;
  const TokenDimension tokens = token_dimension(call);
  facts.batches = tokens.batches;
  facts.steps_by_one =
      tokens.position == 1 || tokens.count == 1 || positions.kind == Positions::Kind::offset;
  facts.heads_alike = facts.heads[0] == 1 || facts.heads[1] <= 1 || have_same_head_strides(views);
  facts.alignment = alignment_of(call);
  return call;
}

Grid fill_args(const PreparedCall& call, const DevicePointers& device, bool programmatic,
               Args& args) {
  const auto size = static_cast<std::int64_t>(size_of(call.facts.dtype));
  const std::int64_t heads = narrow_heads(call);
  const PositionStrides strides = position_strides(*call.positions);
  for (std::size_t i = 0; i < call.count; ++i) {
    const auto& [in, out] = call.views[i];
    ViewArgs& view = args.view[i];
    view = view_of(row_dimensions(call.views[i], strides, heads, false));
    view.in = static_cast<const char*>(in.data);
    view.out = static_cast<char*>(out.data);
    view.in_head = in.stride[kHead] * size;
    view.out_head = out.stride[kHead] * size;
    view.in_channel = in.stride[kChannel] * size;
    view.out_channel = out.stride[kChannel] * size;
  }
  args.programmatic = programmatic ? 1 : 0;
  args.position = position_args(call, device);
  args.angle = angle_args(call, device);
  args.bad_rows = device.bad_rows;
  args.row.pairs = static_cast<std::uint32_t>(call.facts.pairs);
  args.row.block_pairs = static_cast<std::uint32_t>(call.facts.block_pairs);
  return fill_narrow(call, heads, args);
}

std::optional<Grid> fill_args(const PreparedCall& call, const DevicePointers& device,
                              const Policy& policy, bool programmatic, VectorArgs& args) {
  const auto size = static_cast<std::int64_t>(size_of(call.facts.dtype));
  const PositionStrides strides = position_strides(*call.positions);
  const std::int64_t window = call.plan->window().offset * size;
  args.flags = kLinear | kSameStrides | (programmatic ? kProgrammatic : 0u);
  const auto views = std::span(call.views).first(call.count);
  if (std::ranges::any_of(views, is_in_place)) args.flags |= kMayCollide;
  args.view[1].size0 = 0;  // where there is one tensor, no group of a second is live
  for (std::size_t i = 0; i < call.count; ++i) {
    const auto& [in, out] = call.views[i];
    const auto dimensions =
        row_dimensions(call.views[i], strides, policy.heads, policy.map == Map::tokens);
    VectorView& view = args.view[i];
    if (!fill_view(dimensions, view)) return std::nullopt;
    const std::int64_t in_head = in.stride[kHead] * size;
    const std::int64_t out_head = out.stride[kHead] * size;
    if (std::max(std::llabs(in_head), std::llabs(out_head)) >= std::int64_t{1} << 31) {
      return std::nullopt;
    }
    view.in_head = static_cast<std::int32_t>(in_head);
    view.out_head = static_cast<std::int32_t>(out_head);
    args.in[i] = static_cast<const char*>(in.data) + window;
    args.out[i] = static_cast<char*>(out.data) + window;
    args.heads[i] = static_cast<std::uint32_t>(in.size[kHead]);
    args.head_index[i] = head_index(dimensions);
    if (!is_linear(dimensions)) args.flags &= ~std::uint32_t{kLinear};
    if (!same_strides(dimensions)) args.flags &= ~std::uint32_t{kSameStrides};
    if (dimensions[2].size > 1) args.flags |= kThreeIndices;
    if (in.size[kHead] % policy.heads != 0) args.flags |= kRaggedHeads;
  }
  args.position = position_args(call, device);
  args.position_data = args.position.data;
  args.angle = angle_args(call, device);
  args.frequencies = frequencies_of(call, device);
  args.bad_rows = device.bad_rows;
  fill_row(call, policy, args.row);
  args.lanes = args.row.lanes;
  args.half = args.row.half;
  return vector_grid(call, policy, args);
}

}  // namespace ropewalk::cuda
