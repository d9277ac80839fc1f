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
  p.has_padding = from.padding.has_value() ? 1 : 0;
  p.padding = from.padding.value_or(0);
  p.axes = static_cast<std::int32_t>(from.axes);
  p.axis_stride = from.axis_stride;
  return p;
}

/// Orders of reading and writing: the inverse of "read interleaved, write half" swaps them.
void set_orders(Call& facts, Pairing pairing, Direction direction) {
  switch (pairing) {
    case Pairing::half: return;
    case Pairing::interleaved:
      facts.read = facts.write = Order::interleaved;
      return;
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
  for (const auto& [in, out] : call.rotations) {
    add(in.data, in.size, in.stride);
    add(out.data, out.size, out.stride);
  }
  return bits & -bits;
}

void check_alignment(const PreparedCall& call) {
  for (std::size_t i = 0; i < call.rotations.size(); ++i) {
    const auto& [in, out] = call.rotations[i];
    const auto size = size_of(in.dtype);
    const auto address = reinterpret_cast<std::uintptr_t>(in.data) |
                         reinterpret_cast<std::uintptr_t>(out.data);
    require(address % size == 0, "rotations[{}]: expected addresses that are multiples of {}", i,
            size);
  }
}

void fill_row(const PreparedCall& call, const Policy& policy, RowArgs& row) {
  const Call& facts = call.facts;
  const auto size = static_cast<std::int64_t>(size_of(facts.dtype));
  row.pairs = static_cast<std::uint32_t>(facts.pairs);
  row.block_pairs = static_cast<std::uint32_t>(facts.block_pairs);
  if (!policy.vectors) return;
  const RowLanes lanes = row_lanes(facts, policy);
  row.lanes = static_cast<std::uint32_t>(lanes.rotating);
  row.copy_lanes = static_cast<std::uint32_t>(lanes.copying);
  row.copy_chunks = static_cast<std::uint32_t>(lanes.chunks);
  row.copy_before = static_cast<std::uint32_t>(
      facts.copied > 0 ? call.plan->window().offset * size : 0);
  row.window = static_cast<std::uint32_t>(2 * facts.pairs * size);
  row.half = static_cast<std::uint32_t>(facts.block_pairs * size);
}

std::int64_t heads_of_group(const PreparedCall& call, const Policy& policy) {
  if (policy.vectors) return policy.heads;
  if (!call.plan->rotates()) return 1;
  // The narrow path shares the sines of a token; few enough that there is work for every thread.
  std::int64_t heads = call.facts.heads_divisor;
  while (heads > 4) {
    if (heads % 2 == 0) {
      heads /= 2;
    } else {
      break;
    }
  }
  return heads <= 8 ? heads : 1;
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
  const std::int64_t lanes = call.plan->rotates() ? facts.pairs : std::min<std::int64_t>(n.head_dim, 128);
  grid.threads_x = static_cast<std::uint32_t>(lanes);
  grid.threads_y = std::max(1u, 128u / grid.threads_x);
  const auto blocks = [&](const ViewArgs& view) {
    return (view.groups + grid.threads_y - 1) / grid.threads_y;
  };
  n.split_block = blocks(args.view[0]);
  n.blocks = n.split_block + (call.rotations.size() > 1 ? blocks(args.view[1]) : 0);
  grid.blocks_x = static_cast<std::uint32_t>(std::min(n.blocks, kMaxGrid));
  return grid;
}

Grid vector_grid(const PreparedCall& call, const Policy& policy, Args& args) {
  Grid grid;
  grid.threads_x = args.row.lanes + args.row.copy_lanes;
  grid.threads_y = static_cast<std::uint32_t>(policy.threads) / grid.threads_x;
  const bool two = call.rotations.size() > 1;
  const auto blocks = [&](std::int64_t groups) {
    return static_cast<std::uint32_t>((groups + grid.threads_y - 1) / grid.threads_y);
  };
  if (policy.map == Map::tokens) {
    const std::int64_t first = args.view[0].size[0];
    args.split = static_cast<std::uint32_t>(first);
    grid.blocks_x = blocks(first + (two ? args.view[1].size[0] : 0));
    grid.blocks_y = static_cast<std::uint32_t>(call.facts.tokens);
  } else {
    args.split = blocks(args.view[0].groups);
    grid.blocks_x = args.split + (two ? blocks(args.view[1].groups) : 0);
  }
  return grid;
}

}  // namespace

PreparedCall prepare_call(const RotaryPlan& plan, const DevicePointers& device,
                          std::span<const Rotation> rotations, const Positions& positions,
                          Direction direction, int compute_capability) {
  PreparedCall call{&plan, rotations, &positions, direction, device.table_rows > 0, {}};
  check_alignment(call);
  Call& facts = call.facts;
  const Rotation& first = rotations.front();
  facts.compute_capability = compute_capability;
  facts.dtype = first.in.dtype;
  set_orders(facts, plan.pairing(), direction);
  facts.table = call.table;
  facts.general = positions.axes > 1 ||
                  (positions.kind == Positions::Kind::per_token &&
                   (positions.type == Positions::Type::float32 ||
                    positions.type == Positions::Type::float64));
  facts.padding = positions.padding.has_value();
  facts.computes_double = device.table_is_double && facts.dtype != Dtype::float64;
  facts.pairs = plan.pairs();
  facts.block_pairs = plan.block_width() == 0 ? plan.pairs() : plan.block_width() / 2;
  facts.in_place = std::ranges::all_of(rotations, is_in_place);
  facts.copied = facts.in_place ? 0 : plan.head_dim() - plan.rotary_dim();
  facts.tokens = first.in.size[kBatch] * first.in.size[kToken];
  facts.heads_divisor = 0;
  for (const auto& [in, out] : rotations) {
    facts.heads_divisor = std::gcd(facts.heads_divisor, in.size[kHead]);
    facts.channels_adjacent = facts.channels_adjacent && (in.size[kChannel] <= 1 || (in.stride[kChannel] == 1 && out.stride[kChannel] == 1));
    facts.heads_inside = facts.heads_inside && std::llabs(out.stride[kHead]) <= std::llabs(out.stride[kToken]);
    facts.rows = std::max(facts.rows, facts.tokens * in.size[kHead]);
    facts.bytes += 2 * facts.tokens * in.size[kHead] * (2 * facts.pairs + facts.copied) *
                   static_cast<std::int64_t>(size_of(facts.dtype));
  }
  facts.alignment = alignment_of(call);
  return call;
}

Grid fill_args(const PreparedCall& call, const DevicePointers& device, const Policy& policy,
               Args& args) {
  const RotaryPlan& plan = *call.plan;
  const auto size = static_cast<std::int64_t>(size_of(call.facts.dtype));
  const std::int64_t heads = heads_of_group(call, policy);
  const PositionStrides strides = position_strides(*call.positions);
  for (std::size_t i = 0; i < call.rotations.size(); ++i) {
    const auto& [in, out] = call.rotations[i];
    ViewArgs& view = args.view[i];
    view = view_of(row_dimensions(call.rotations[i], strides, heads, policy.map == Map::tokens));
    const std::int64_t first = policy.vectors ? plan.window().offset * size : 0;
    view.in = static_cast<const char*>(in.data) + first;
    view.out = static_cast<char*>(out.data) + first;
    view.in_head = in.stride[kHead] * size;
    view.out_head = out.stride[kHead] * size;
    view.in_channel = in.stride[kChannel] * size;
    view.out_channel = out.stride[kChannel] * size;
  }
  if (call.rotations.size() < 2) args.view[1].size0.divisor = 0;  // no group of it is live
  args.position = position_args(call, device);
  args.angle = device.angle;
  const double sign = call.direction == Direction::inverse ? -1.0 : 1.0;
  args.angle.cos_amplitude = plan.amplitude();
  args.angle.sin_amplitude = call.table ? sign : plan.amplitude() * (sign * plan.sign());
  switch (plan.arithmetic()) {
    case Arithmetic::exact: args.angle.step = kFused; break;
    case Arithmetic::parity_p0: args.angle.step = kStepwise; break;
    default: args.angle.step = kSeparate;
  }
  args.bad_rows = device.bad_rows;
  fill_row(call, policy, args.row);
  return policy.vectors ? vector_grid(call, policy, args) : fill_narrow(call, heads, args);
}

}  // namespace ropewalk::cuda
