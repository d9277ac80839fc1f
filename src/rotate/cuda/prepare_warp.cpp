// Arguments of the warp kernels.
#include <algorithm>
#include <cstdlib>

#include "rotate/cuda/dimensions.h"
#include "rotate/cuda/prepare.h"

namespace ropewalk::cuda {
namespace {

constexpr std::int64_t kInt32 = std::int64_t{1} << 31;

bool fits(std::int64_t x) { return x > -kInt32 && x < kInt32; }

/// Bytes from one element of a dimension to the next.
std::int64_t bytes_along(const auto& tensor, std::size_t dimension) {
  return tensor.stride[dimension] * static_cast<std::int64_t>(size_of(tensor.dtype));
}

/// False where a number does not fit.
bool fill_strides(const PreparedCall& call, const TokenDimension& tokens, WarpSweepArgs& args) {
  bool all_fit = true;
  const auto narrow = [&](std::int64_t bytes) {
    all_fit = all_fit && fits(bytes);
    return static_cast<std::int32_t>(bytes);
  };
  const std::int64_t window =
      call.plan->window().offset * static_cast<std::int64_t>(size_of(call.facts.dtype));
  for (std::size_t i = 0; i < call.count; ++i) {
    const auto& [in, out] = call.views[i];
    args.in[i] = static_cast<const char*>(in.data) + window;
    args.out[i] = static_cast<char*>(out.data) + window;
    args.in_token[i] = narrow(bytes_along(in, tokens.dimension));
    args.out_token[i] = narrow(bytes_along(out, tokens.dimension));
    args.view[i].in_batch = bytes_along(in, kBatch);
    args.view[i].out_batch = bytes_along(out, kBatch);
    if (i == 0 || in.size[kHead] > 1) {  // a single head has no stride
      args.in_head = narrow(bytes_along(in, kHead));
      args.out_head = narrow(bytes_along(out, kHead));
    }
  }
  const std::int64_t reach = std::llabs(tokens.position) * (tokens.count - 1) +
                             std::llabs(tokens.batch_position) * (tokens.batches - 1) +
                             std::llabs(call.positions->axis_stride) * call.positions->axes;
  args.position_token = narrow(tokens.position);
  args.position_batch = narrow(tokens.batch_position);
  args.axis_stride = narrow(call.positions->axis_stride);
  return all_fit && reach < kInt32;
}

std::uint32_t facts_of(const PreparedCall& call, const TokenDimension& tokens, bool programmatic) {
  std::uint32_t facts = call.facts.heads_inside ? kWarpHeadsInside : 0u;
  if (call.positions->kind != Positions::Kind::offset) {
    facts |= call.positions->type == Positions::Type::int64 ? kWarpInt64 : kWarpInt32;
  }
  if (tokens.adds_token) facts |= kWarpAddToken;
  if (tokens.batches > 1) facts |= kWarpBatches;
  if (programmatic) facts |= kWarpProgrammatic;
  return facts;
}

}  // namespace

TokenDimension token_dimension(const PreparedCall& call) {
  const PositionStrides strides = position_strides(*call.positions);
  const auto& size = call.views[0].in.size;
  if (size[kToken] == 1) return {kBatch, size[kBatch], 1, strides.batch, 0, false};
  TokenDimension tokens{kToken,        size[kToken],  size[kBatch],
                        strides.token, strides.batch, strides.token_token != 0};
  if (tokens.batches == 1) return tokens;
  bool one = !tokens.adds_token && strides.batch == strides.token * size[kToken];
  for (const auto& [in, out] : std::span(call.views).first(call.count)) {
    one = one && in.stride[kBatch] == in.stride[kToken] * size[kToken] &&
          out.stride[kBatch] == out.stride[kToken] * size[kToken];
  }
  if (one) {
    tokens.count *= tokens.batches;
    tokens.batches = 1;
  }
  return tokens;
}

std::optional<Grid> fill_args(const PreparedCall& call, const DevicePointers& device,
                              const Policy& policy, bool programmatic, WarpSweepArgs& args) {
  const TokenDimension tokens = token_dimension(call);
  if (!fill_strides(call, tokens, args)) return std::nullopt;
  const std::int64_t of_warp = heads_of_warp(call.facts, policy);
  std::uint32_t groups[2] = {};
  for (std::size_t i = 0; i < call.count; ++i) {
    groups[i] = static_cast<std::uint32_t>(call.facts.heads[i] / of_warp);
  }
  const auto warps = static_cast<std::uint32_t>(policy.threads / 32);
  Grid grid;
  grid.threads_x = static_cast<std::uint32_t>(policy.threads);
  args.facts = facts_of(call, tokens, programmatic);
  if (policy.map == Map::tokens) {
    if (groups[0] > kWarpMostBlocks) return std::nullopt;
    args.facts |= groups[0] / warps;
    grid.blocks_x = (groups[0] + groups[1]) / warps;
    grid.blocks_y = static_cast<std::uint32_t>(tokens.count);
  } else {
    std::uint32_t blocks[2] = {};
    for (std::size_t i = 0; i < call.count; ++i) {
      WarpView& view = args.view[i];
      view.inner = call.facts.heads_inside ? groups[i] : static_cast<std::uint32_t>(tokens.count);
      view.outer = call.facts.heads_inside ? static_cast<std::uint32_t>(tokens.count) : groups[i];
      const std::int64_t all = std::int64_t{view.inner} * view.outer;
      if (all >= kInt32 - warps) return std::nullopt;
      const Divisor inner = make_divisor(view.inner);
      view.multiplier = inner.multiplier;
      view.shift = inner.shift;
      blocks[i] = static_cast<std::uint32_t>((all + warps - 1) / warps);
    }
    args.split = blocks[0];
    grid.blocks_x = blocks[0] + blocks[1];
    grid.blocks_y = static_cast<std::uint32_t>(tokens.batches);
  }
  args.position_data = call.positions->kind == Positions::Kind::offset
                           ? reinterpret_cast<const void*>(call.positions->start)
                           : call.positions->data;
  args.frequencies = frequencies_of(call, device);
  const AngleArgs angle = angle_args(call, device);
  args.cos_amplitude = angle.cos_amplitude;
  args.sin_amplitude = angle.sin_amplitude;
  args.cos_amplitude32 = angle.cos_amplitude32;
  args.sin_amplitude32 = angle.sin_amplitude32;
  if (call.facts.packed) args.packed = position_args(call, device);
  args.axis = angle.axis;
  args.axes = static_cast<std::uint32_t>(call.positions->axes);
  args.bad_rows = device.bad_rows;
  return grid;
}

}  // namespace ropewalk::cuda
