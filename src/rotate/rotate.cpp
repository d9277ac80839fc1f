#include "ropewalk/rotate.h"

#include <algorithm>

#include "base/check.h"
#include "base/cpu_features.h"
#include "base/parallel.h"
#include "ropewalk/table.h"
#include "rotate/check.h"
#include "rotate/cpu/kernels.h"
#include "rotate/observe.h"
#include "rotate/positions.h"

namespace ropewalk {
namespace {

using cpu::Order;
using cpu::Step;
using cpu::Store;

Step step_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::exact: return Step::fused;
    case Arithmetic::parity_p0: return Step::stepwise;
    case Arithmetic::parity_p1:
    case Arithmetic::parity_p2:
    case Arithmetic::parity_p3: return Step::separate;
    case Arithmetic::parity_p4: return Step::separate64;
  }
  return Step::fused;
}

struct Orders {
  Order read;
  Order write;
};

/// The inverse of "read interleaved, write half" reads half and writes interleaved.
Orders orders_of(Pairing pairing, Direction direction) {
  switch (pairing) {
    case Pairing::half: return {Order::half, Order::half};
    case Pairing::interleaved: return {Order::interleaved, Order::interleaved};
    case Pairing::interleaved_to_half: break;
  }
  return direction == Direction::forward ? Orders{Order::interleaved, Order::half}
                                         : Orders{Order::half, Order::interleaved};
}

constexpr std::int64_t kTokensAtATime = 4;

/// A call with everything decided that does not change from tile to tile.
class Run {
 public:
  Run(const RotaryPlan& plan, const RotaryTable* table, std::span<const Rotation> rotations,
      const CheckedCall& call, const PositionReader& reader, const cpu::Kernel& kernel,
      const RotateOptions& options)
      : plan_(plan),
        table_(table),
        rotations_(rotations),
        call_(call),
        reader_(reader),
        options_(options),
        kernel_(kernel),
        step_(step_of(plan.arithmetic())),
        computes_double_(call.dtype == Dtype::float64 || step_ == Step::separate64),
        beyond_last_cache_(static_cast<std::size_t>(call.bytes_written) >=
                           last_level_cache_bytes()) {
    const std::int64_t angles = computes_double_ ? cpu::kTileAngles / 2 : cpu::kTileAngles;
    tile_tokens_ = std::clamp<std::int64_t>(angles / cpu::padded_pairs(plan.pairs()), 1,
                                            std::min(cpu::kMaxTileTokens, call.tokens));
    tiles_per_row_ = (call.tokens + tile_tokens_ - 1) / tile_tokens_;
  }

  void operator()() const {
    const std::int64_t tiles = call_.batch * tiles_per_row_;
    // Below a few hundred kilobytes handing work over costs more than it brings; a worker of the
    // library's own pool sleeps, and waking it takes tens of microseconds (docs/cpu.md).
    constexpr std::int64_t kGrainBytes = 256 << 10;
    constexpr std::int64_t kWakeBytes = 4 << 20;
    const std::int64_t tile_bytes = std::max<std::int64_t>(1, call_.bytes_written / tiles);
    const std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / tile_bytes);
    const auto body = [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) rotate_tile(tile);
      if (beyond_last_cache_) kernel_.fence();
    };
    if (options_.parallel_for != nullptr) {
      (*options_.parallel_for)(tiles, grain, body);
    } else if (options_.threads == 1 || tiles <= grain ||
               (options_.threads == 0 && call_.bytes_written < kWakeBytes)) {
      body(0, tiles);
    } else {
      parallel_for(tiles, grain, options_.threads, body);
    }
  }

 private:
  void rotate_tile(std::int64_t tile) const {
    alignas(64) unsigned char cosines[cpu::kTileAngles * sizeof(float)];
    alignas(64) unsigned char sines[cpu::kTileAngles * sizeof(float)];
    constexpr int kMaxAxes = 8;
    FixedPosition positions[cpu::kMaxTileTokens * kMaxAxes];
    bool pass[cpu::kMaxTileTokens] = {};
    const std::int64_t batch = tile / tiles_per_row_;
    const std::int64_t first = tile % tiles_per_row_ * tile_tokens_;
    const std::int64_t count = std::min(tile_tokens_, call_.tokens - first);
    reader_.read(batch, first, count, positions, pass);
    // The first view is rotated as its angles come, a few tokens at a time, so that memory is
    // busy with the ones before. Where runs of one head matter more, all angles come first.
    const bool few = beyond_last_cache_ && !heads_outside(rotations_.front());
    const std::int64_t step = few ? std::min(kTokensAtATime, count) : count;
    const std::int64_t angle_bytes =
        cpu::padded_pairs(plan_.pairs()) *
        static_cast<std::int64_t>(computes_double_ ? sizeof(double) : sizeof(float));
    const auto rotate_run = [&](const Rotation& rotation, std::int64_t from, std::int64_t run) {
      if (rotation.in.size[kHead] == 0) return;
      rotate_view(rotation, batch, first + from, run, cosines + from * angle_bytes,
                  sines + from * angle_bytes, pass + from);
    };
    for (std::int64_t from = 0; from < count; from += step) {
      const std::int64_t run = std::min(step, count - from);
      fill_angles(positions + from * plan_.axes(), pass + from, run, cosines + from * angle_bytes,
                  sines + from * angle_bytes);
      rotate_run(rotations_.front(), from, run);
    }
    for (const Rotation& rotation : rotations_.subspan(1)) rotate_run(rotation, 0, count);
  }

  [[nodiscard]] static bool heads_outside(const Rotation& rotation) {
    return std::abs(rotation.out.stride[kHead]) > std::abs(rotation.out.stride[kToken]);
  }

  void fill_angles(const FixedPosition* positions, const bool* pass, std::int64_t count,
                   unsigned char* cosines, unsigned char* sines) const {
    if (table_ == nullptr) {
      evaluate_angles(positions, count, cosines, sines);
    } else if (computes_double_) {
      copy_angles(table_->cos64(), table_->sin64(), positions, pass, count,
                  reinterpret_cast<double*>(cosines), reinterpret_cast<double*>(sines));
    } else {
      copy_angles(table_->cos(), table_->sin(), positions, pass, count,
                  reinterpret_cast<float*>(cosines), reinterpret_cast<float*>(sines));
    }
  }

  void evaluate_angles(const FixedPosition* positions, std::int64_t count, void* cosines,
                       void* sines) const {
    const double sign = (options_.direction == Direction::inverse ? -1.0 : 1.0) * plan_.sign();
    const cpu::AngleArgs args{.fractions = plan_.turn_fractions().data(),
                              .turns = plan_.turns().data(),
                              .axis = plan_.axes() == 1 ? nullptr : plan_.axis().data(),
                              .pairs = plan_.pairs(),
                              .tokens = count,
                              .axes = plan_.axes(),
                              .positions = positions,
                              .fractional = reader_.is_fractional(),
                              .amplitude = plan_.amplitude(),
                              .sine_amplitude = plan_.amplitude() * sign,
                              .cos = cosines,
                              .sin = sines};
    (computes_double_ ? kernel_.angles_double : kernel_.angles_float)(args);
  }

  /// Rows of the table, made contiguous and padded; the inverse negates the sine.
  template <class Real>
  void copy_angles(std::span<const Real> cos, std::span<const Real> sin,
                   const FixedPosition* positions, const bool* pass, std::int64_t count,
                   Real* cosines, Real* sines) const {
    const std::int64_t pairs = plan_.pairs();
    const Real sign = options_.direction == Direction::inverse ? Real{-1} : Real{1};
    for (std::int64_t t = 0; t < count; ++t) {
      if (pass[t]) continue;
      const std::int64_t row = positions[t].whole * pairs;
      const std::int64_t to = t * cpu::padded_pairs(pairs);
      for (std::int64_t i = 0; i < pairs; ++i) {
        cosines[to + i] = cos[static_cast<std::size_t>(row + i)];
        sines[to + i] = sign * sin[static_cast<std::size_t>(row + i)];
      }
    }
  }

  void rotate_view(const Rotation& rotation, std::int64_t batch, std::int64_t first,
                   std::int64_t count, const void* cosines, const void* sines,
                   const bool* pass) const {
    const auto size = static_cast<std::int64_t>(size_of(call_.dtype));
    const auto& [in, out] = rotation;
    const Orders orders = orders_of(plan_.pairing(), options_.direction);
    const bool in_place = is_in_place(rotation);
    const std::int64_t in_first = batch * in.stride[kBatch] + first * in.stride[kToken];
    const std::int64_t out_first = batch * out.stride[kBatch] + first * out.stride[kToken];
    const cpu::TileKey key{call_.dtype, orders.read, orders.write, step_,
                           store_for(rotation, in_place)};
    const cpu::TileArgs args{
        .in = static_cast<const char*>(in.data) + in_first * size,
        .out = static_cast<char*>(out.data) + out_first * size,
        .in_token = in.stride[kToken] * size,
        .in_head = in.stride[kHead] * size,
        .in_channel = in.stride[kChannel] * size,
        .out_token = out.stride[kToken] * size,
        .out_head = out.stride[kHead] * size,
        .out_channel = out.stride[kChannel] * size,
        .tokens = count,
        .heads = in.size[kHead],
        .head_dim = plan_.head_dim(),
        .offset = plan_.window().offset,
        .pairs = plan_.pairs(),
        .block_pairs = plan_.block_width() == 0 ? plan_.pairs() : plan_.block_width() / 2,
        .cos = cosines,
        .sin = sines,
        .pass = reader_.has_padding() ? pass : nullptr,
        .in_place = in_place,
        .heads_outside = heads_outside(rotation),
        .from_memory = beyond_last_cache_};
    (step_ == Step::separate64 ? cpu::tile_computing_in_double(key) : kernel_.tile(key))(args);
  }

  /// Streaming stores pay where the output passes through no cache anyway, and need aligned rows.
  [[nodiscard]] Store store_for(const Rotation& rotation, bool in_place) const {
    if (in_place || step_ != Step::fused) return Store::cached;
    if (!beyond_last_cache_ || options_.fresh_outputs) return Store::cached;
    const TensorView& out = rotation.out;
    const auto size = static_cast<std::int64_t>(size_of(call_.dtype));
    if (out.stride[kChannel] != 1) return Store::cached;
    std::int64_t misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out.data) &
                                                        static_cast<std::uintptr_t>(63));
    for (const std::size_t d : {0U, 1U, 2U}) {
      if (out.size[d] > 1) misaligned |= out.stride[d] * size;
    }
    misaligned |= plan_.window().offset * size;
    const std::int64_t half_width =
        (plan_.block_width() == 0 ? plan_.rotary_dim() : plan_.block_width()) / 2;
    if (orders_of(plan_.pairing(), options_.direction).write == Order::half) {
      misaligned |= half_width * size;
    }
    return misaligned % kernel_.store_alignment == 0 ? Store::streaming : Store::cached;
  }

  const RotaryPlan& plan_;
  const RotaryTable* table_;
  std::span<const Rotation> rotations_;
  const CheckedCall& call_;
  const PositionReader& reader_;
  const RotateOptions& options_;
  const cpu::Kernel& kernel_;
  Step step_;
  bool computes_double_;
  bool beyond_last_cache_;
  std::int64_t tile_tokens_ = 1;
  std::int64_t tiles_per_row_ = 1;
};

void copy_all(std::span<const Rotation> rotations) {
  for (const auto& [in, out] : rotations) {
    const std::size_t size = size_of(in.dtype);
    const auto at = [&](const std::array<std::int64_t, 4>& stride, std::int64_t b, std::int64_t t,
                        std::int64_t h, std::int64_t c) {
      return (b * stride[0] + t * stride[1] + h * stride[2] + c * stride[3]) *
             static_cast<std::int64_t>(size);
    };
    for (std::int64_t b = 0; b < in.size[0]; ++b) {
      for (std::int64_t t = 0; t < in.size[1]; ++t) {
        for (std::int64_t h = 0; h < in.size[2]; ++h) {
          for (std::int64_t c = 0; c < in.size[3]; ++c) {
            std::copy_n(static_cast<const char*>(in.data) + at(in.stride, b, t, h, c), size,
                        static_cast<char*>(out.data) + at(out.stride, b, t, h, c));
          }
        }
      }
    }
  }
}

void run(const RotaryPlan& plan, const RotaryTable* table, std::span<const Rotation> rotations,
         const Positions& positions, const RotateOptions& options) {
  require(name_of(options.direction) != "unknown", "direction: unknown value {}",
          static_cast<int>(options.direction));
  require(options.threads >= 0, "threads: expected 0 or more, got {}", options.threads);
  const CheckedCall call = check_rotations(plan, rotations);
  const PositionReader reader(positions, {.batch = call.batch,
                                          .tokens = call.tokens,
                                          .axes = plan.axes(),
                                          .rows = table == nullptr ? 0 : table->rows(),
                                          .float64_data = call.dtype == Dtype::float64});
  // Looked up before the early returns: a wrong name is refused even where nothing is to do.
  const cpu::Kernel& kernel = cpu::kernel_named(options.kernel);
  if (call.empty) return;
  if (is_observing()) [[unlikely]] {
    observe_call(plan, rotations, positions, options.direction,
                 {"cpu", 0, plan.rotates() ? kernel.name : "copy", table != nullptr});
  }
  if (!plan.rotates()) {
    copy_all(rotations);
    return;
  }
  Run(plan, table, rotations, call, reader, kernel, options)();
}

}  // namespace

void rotate(const RotaryPlan& plan, std::span<const Rotation> rotations, const Positions& positions,
            const RotateOptions& options) {
  require(plan.arithmetic() == Arithmetic::exact || !plan.rotates(),
          "plan: arithmetic {} takes its angles from a table; pass a RotaryTable",
          name_of(plan.arithmetic()));
  run(plan, nullptr, rotations, positions, options);
}

void rotate(const RotaryTable& table, std::span<const Rotation> rotations,
            const Positions& positions, const RotateOptions& options) {
  for (const Rotation& rotation : rotations) {
    require(rotation.in.dtype == table.dtype(), "table: made for {} data, got {}",
            name_of(table.dtype()), name_of(rotation.in.dtype));
  }
  run(table.plan(), &table, rotations, positions, options);
}

}  // namespace ropewalk
