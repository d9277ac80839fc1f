#include <algorithm>
#include <vector>

#include "base/check.h"
#include "ropewalk/cuda.h"
#include "rotate/cuda/device_state.h"
#include "rotate/cuda/kernels.h"
#include "rotate/cuda/nvtx_range.h"
#include "rotate/cuda/policy_choice.h"
#include "rotate/cuda/prepare.h"
#include "rotate/observe.h"
#include "rotate/positions.h"

namespace ropewalk::cuda {
namespace {

constexpr std::size_t kViewsOfLaunch = 2;

Kernel narrow_kernel(const PreparedCall& call) {
  const DtypeKernels kernels = kernels_of(call.facts.dtype);
  if (!call.plan->rotates()) return kernels.copy;
  if (!call.facts.table) return kernels.narrow;
  return call.facts.computes_double ? kernels.narrow_table_double : kernels.narrow_table;
}

Policy policy_of(const PreparedCall& call, const Options& options) {
  if (!call.plan->rotates()) return {};
  if (options.policy.empty()) return choose_policy(call.facts);
  const Policy forced = policy_from_name(options.policy);
  if (!is_possible(call.facts, forced)) {
    fail(ErrorCode::unsupported, "policy: {} cannot take this call", options.policy);
  }
  return forced;
}

void launch(const void* kernel, const Grid& grid, void* args, Stream stream, bool programmatic) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks_x, grid.blocks_y, 1);
  config.blockDim = dim3(grid.threads_x, grid.threads_y, 1);
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  if (programmatic) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  void* arguments[] = {args};
  check_cuda(cudaLaunchKernelExC(&config, kernel, arguments), "launch of the rotation");
}

void rotate_two(const DeviceState& state, const DevicePointers& pointers,
                std::span<const Rotation> rotations, const Positions& positions, Stream stream,
                const Options& options) {
  PreparedCall call = prepare_call(state.plan, pointers, rotations, positions, options.direction,
                                   state.compute_capability);
  const bool programmatic = options.programmatic && state.compute_capability >= 90;
  call.facts.programmatic = programmatic;
  if (!call.plan->rotates() && call.facts.in_place) return;
  Policy policy = policy_of(call, options);
  const NvtxRange range([&policy] { return "rotate " + to_string(policy); });
  if (is_observing()) [[unlikely]] {
    observe_call(state.plan, rotations, positions, options.direction,
                 {"cuda", state.device, to_string(policy), call.facts.table});
  }
  if (policy.warp) {
    WarpSweepArgs args;
    if (const auto grid = fill_args(call, pointers, policy, programmatic, args)) {
      launch(warp_kernel_for(call.facts, policy), *grid, &args, stream, programmatic);
      return;
    }
    // A stride beyond 32 bits.
    call.facts.heads_alike = false;
    policy = choose_policy(call.facts);
  }
  if (policy.vectors) {
    VectorArgs args;
    if (const auto grid = fill_args(call, pointers, policy, programmatic, args)) {
      launch(reinterpret_cast<const void*>(vector_kernel_for(call.facts, policy)), *grid, &args,
             stream, programmatic);
      return;
    }
  }
  Args args;
  const Grid grid = fill_args(call, pointers, programmatic, args);
  launch(reinterpret_cast<const void*>(narrow_kernel(call)), grid, &args, stream, programmatic);
}

void run(const DeviceState& state, const DevicePointers& pointers,
         std::span<const Rotation> rotations, const Positions& positions, Stream stream,
         const Options& options) {
  const CheckedCall call = check_rotations(state.plan, rotations);
  const PositionRules rules{.batch = call.batch,
                            .tokens = call.tokens,
                            .axes = state.plan.axes(),
                            .rows = pointers.table_rows,
                            .float64_data = call.dtype == Dtype::float64};
  check_description(positions, rules);
  if (call.empty) return;
  if (positions.kind == Positions::Kind::offset) check_offset(positions, rules);
  const DeviceScope scope(state.device);
  Rotation kept[kViewsOfLaunch];
  std::size_t count = 0;
  for (const Rotation& rotation : rotations) {
    if (rotation.in.elements() == 0) continue;
    kept[count++] = rotation;
    if (count == kViewsOfLaunch) {
      rotate_two(state, pointers, {kept, count}, positions, stream, options);
      count = 0;
    }
  }
  if (count > 0) rotate_two(state, pointers, {kept, count}, positions, stream, options);
}

}  // namespace

void rotate(const DevicePlan& plan, std::span<const Rotation> rotations, const Positions& positions,
            Stream stream, const Options& options) {
  const DeviceState& state = plan.state();
  require(state.plan.arithmetic() == Arithmetic::exact || !state.plan.rotates(),
          "plan: arithmetic {} takes its angles from a table", name_of(state.plan.arithmetic()));
  run(state, state.pointers, rotations, positions, stream, options);
}

void rotate(const DevicePlan& plan, const DeviceAngles& angles, std::span<const Rotation> rotations,
            const Positions& positions, Stream stream, const Options& options) {
  const DeviceState& state = plan.state();
  require(angles.rows >= 1 && angles.cos != nullptr && angles.sin != nullptr,
          "angles: expected a cosine and a sine for at least one row, got {} rows", angles.rows);
  for (const Rotation& rotation : rotations) {
    const bool needs_double =
        rotation.in.dtype == Dtype::float64 || state.plan.arithmetic() == Arithmetic::parity_p4;
    require(angles.is_double == needs_double, "angles: expected {} for {} data",
            needs_double ? "double" : "float", name_of(rotation.in.dtype));
  }
  DevicePointers pointers = state.pointers;
  pointers.angle.table_cos = angles.cos;
  pointers.angle.table_sin = angles.sin;
  pointers.table_rows = angles.rows;
  pointers.table_is_double = angles.is_double;
  run(state, pointers, rotations, positions, stream, options);
}

void rotate(const DeviceTable& table, std::span<const Rotation> rotations,
            const Positions& positions, Stream stream, const Options& options) {
  for (const Rotation& rotation : rotations) {
    require(rotation.in.dtype == *table.state().table_dtype, "table: made for {} data, got {}",
            name_of(*table.state().table_dtype), name_of(rotation.in.dtype));
  }
  run(table.state(), table.state().pointers, rotations, positions, stream, options);
}

std::string policy_for(const DevicePlan& plan, std::span<const Rotation> rotations,
                       const Positions& positions, const Options& options) {
  const DeviceState& state = plan.state();
  (void)check_rotations(state.plan, rotations);
  const auto views = rotations.first(std::min(rotations.size(), kViewsOfLaunch));
  PreparedCall call = prepare_call(state.plan, state.pointers, views, positions, options.direction,
                                   state.compute_capability);
  call.facts.programmatic = options.programmatic && state.compute_capability >= 90;
  return to_string(policy_of(call, options));
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names{"narrow"};
  for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::float16, Dtype::bfloat16}) {
    for (const WarpKernel& kernel : kernels_of(dtype).warps) {
      const WarpShape& s = kernel.shape;
      std::string name = to_string({true, s.map, s.pairs, s.heads, s.threads, false, true});
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
    for (const VectorKernel& kernel : kernels_of(dtype).vectors) {
      const VectorShape& s = kernel.shape;
      for (const int threads : {64, 128, 256}) {
        std::string name = to_string({true, s.map, s.pairs, s.heads, threads, s.full_row});
        if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
      }
    }
  }
  return names;
}

}  // namespace ropewalk::cuda
