#include "ropewalk/plan.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace ropewalk {
namespace {

constexpr int kMaxAxes = 8;

void check_window(const PlanSpec& spec) {
  const auto [offset, width] = spec.window;
  require(spec.head_dim > 0, "head_dim: expected a positive number, got {}", spec.head_dim);
  require(
      width >= 2 && width % 2 == 0,
      "rotary_dim: expected an even number of at least 2 channels, got R = {} (head_dim D = {})",
      width, spec.head_dim);
  require(width <= kMaxRotaryDim, "rotary_dim: expected at most {} channels, got R = {}",
          kMaxRotaryDim, width);
  require(offset >= 0 && offset <= spec.head_dim - width,
          "window: rotary_dim R = {} at offset {} does not fit a head of D = {} channels", width,
          offset, spec.head_dim);
  if (spec.block_width != 0) {
    require(spec.pairing == Pairing::half, "block_width: only the half pairing has blocks, got {}",
            name_of(spec.pairing));
    require(spec.block_width > 0 && spec.block_width % 2 == 0 && width % spec.block_width == 0,
            "block_width: expected an even divisor of rotary_dim R = {}, got {}", width,
            spec.block_width);
  }
}

void check_frequencies(const PlanSpec& spec) {
  const auto pairs = static_cast<std::size_t>(spec.window.width / 2);
  require(spec.frequencies.size() == pairs,
          "frequencies: expected one per pair ({} for rotary_dim R = {}), got {}", pairs,
          spec.window.width, spec.frequencies.size());
  require(spec.model_frequencies.size() == pairs,
          "model_frequencies: expected one per pair ({}), got {}", pairs,
          spec.model_frequencies.size());
  for (const double omega : spec.frequencies) {
    require(std::isfinite(omega) && std::fabs(omega) < 0x1p32,
            "frequencies: expected finite values below 2^32 in magnitude, got {}", omega);
  }
  for (const float omega : spec.model_frequencies) {
    require(std::isfinite(omega), "model_frequencies: expected finite values, got {}", omega);
  }
  require(spec.axes >= 1 && spec.axes <= kMaxAxes, "axes: expected 1 to {}, got {}", kMaxAxes,
          spec.axes);
  require(spec.axis.size() == pairs, "axis: expected one per pair ({}), got {}", pairs,
          spec.axis.size());
  for (const std::uint8_t axis : spec.axis) {
    require(axis < spec.axes, "axis: expected values below axes = {}, got {}", spec.axes, axis);
  }
}

/// Values that came through a cast from outside the enumerations.
void check_enumerations(const PlanSpec& spec) {
  constexpr std::string_view kUnknown = "unknown";
  require(name_of(spec.pairing) != kUnknown, "pairing: unknown value {}",
          static_cast<int>(spec.pairing));
  require(name_of(spec.arithmetic) != kUnknown, "arithmetic: unknown value {}",
          static_cast<int>(spec.arithmetic));
  require(name_of(spec.frequency_precision) != kUnknown, "frequency_precision: unknown value {}",
          static_cast<int>(spec.frequency_precision));
  require(name_of(spec.length_policy) != kUnknown, "length_policy: unknown value {}",
          static_cast<int>(spec.length_policy));
  require(name_of(spec.channels) != kUnknown, "channels: unknown value {}",
          static_cast<int>(spec.channels));
}

PlanSpec normalised(PlanSpec spec) {
  check_enumerations(spec);
  if (!spec.rotates) {
    require(spec.frequencies.empty() && spec.window.width == 0,
            "frequencies: a plan that does not rotate has no frequencies and an empty window");
    require(spec.head_dim > 0, "head_dim: expected a positive number, got {}", spec.head_dim);
    return spec;
  }
  if (spec.window.width == 0) spec.window.width = spec.head_dim - spec.window.offset;
  if (spec.block_width == spec.window.width) spec.block_width = 0;
  check_window(spec);
  for (double& omega : spec.frequencies) omega += 0.0;  // −0 becomes +0
  if (spec.model_frequencies.empty()) {
    spec.model_frequencies.assign(spec.frequencies.begin(), spec.frequencies.end());
  }
  if (spec.axis.empty()) spec.axis.assign(spec.frequencies.size(), 0);
  check_frequencies(spec);
  require(std::isfinite(spec.amplitude), "amplitude: expected a finite number, got {}",
          spec.amplitude);
  require(std::fabs(spec.amplitude) <= static_cast<double>(std::numeric_limits<float>::max()),
          "amplitude: expected a number finite in fp32, got {}", spec.amplitude);
  require(spec.sign == 1 || spec.sign == -1, "sign: expected 1 or -1, got {}", spec.sign);
  return spec;
}

/// FNV-1a, 128 bits.
class Fingerprint {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      state_ ^= (value >> (8 * byte)) & 0xffu;
      state_ *= kPrime;
    }
  }
  void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(state_ >> 64),
                       static_cast<std::uint64_t>(state_));
  }

 private:
  using Word = unsigned __int128;
  static constexpr Word kPrime = (Word{1} << 88) + 0x13b;
  Word state_ = (Word{0x6c62272e07bb0142u} << 64) | 0x62b821756295c58du;
};

std::string fingerprint_of(const PlanSpec& spec) {
  Fingerprint print;
  print.add(spec.head_dim);
  print.add(spec.window.offset);
  print.add(spec.window.width);
  print.add(static_cast<std::uint64_t>(spec.pairing));
  print.add(spec.block_width);
  print.add(static_cast<std::uint64_t>(spec.frequencies.size()));
  for (const double omega : spec.frequencies) print.add(omega);
  for (const float omega : spec.model_frequencies) print.add(static_cast<double>(omega));
  print.add(static_cast<std::uint64_t>(spec.frequency_precision));
  print.add(static_cast<std::int64_t>(spec.axes));
  for (const std::uint8_t axis : spec.axis) print.add(static_cast<std::uint64_t>(axis));
  print.add(spec.amplitude);
  print.add(static_cast<std::int64_t>(spec.sign));
  print.add(static_cast<std::uint64_t>(spec.arithmetic));
  print.add(static_cast<std::uint64_t>(spec.length_policy));
  print.add(spec.length);
  print.add(spec.softmax_multiplier);
  print.add(std::string_view(spec.query_scaling.rule));
  print.add(static_cast<std::uint64_t>(spec.rotates));
  print.add(std::string_view(spec.scaling));
  print.add(static_cast<std::uint64_t>(spec.channels));
  print.add(std::string_view(spec.position_recipe));
  print.add(std::string_view(spec.rotated));
  return print.text();
}

}  // namespace

RotaryPlan::RotaryPlan(PlanSpec spec) : spec_(normalised(std::move(spec))) {
  turns_.reserve(spec_.frequencies.size());
  for (const double omega : spec_.frequencies) turns_.push_back(turns_from_frequency(omega));
  fractions_.reserve(turns_.size());
  for (const Turns& turns : turns_) fractions_.push_back(turns.fraction);
  fingerprint_ = fingerprint_of(spec_);
}

RotaryPlan::Channels RotaryPlan::channels_read(std::int64_t pair) const noexcept {
  const std::int64_t start = spec_.window.offset;
  if (spec_.pairing != Pairing::half) return {start + 2 * pair, start + 2 * pair + 1};
  const std::int64_t distance = (spec_.block_width == 0 ? rotary_dim() : spec_.block_width) / 2;
  const std::int64_t first = start + pair / distance * 2 * distance + pair % distance;
  return {first, first + distance};
}

RotaryPlan::Channels RotaryPlan::channels_written(std::int64_t pair) const noexcept {
  if (spec_.pairing != Pairing::interleaved_to_half) return channels_read(pair);
  return {spec_.window.offset + pair, spec_.window.offset + pair + pairs()};
}

std::string to_string(const RotaryPlan& plan) {
  if (!plan.rotates()) return fmt::format("no rotation, head_dim {}", plan.head_dim());
  const PlanSpec& spec = plan.spec();
  std::string text =
      fmt::format("{} pairing, {} of {} channels from {}, {} scaling", name_of(spec.pairing),
                  spec.window.width, spec.head_dim, spec.window.offset, spec.scaling);
  if (spec.block_width != 0) text += fmt::format(", blocks of {}", spec.block_width);
  if (spec.axes > 1) text += fmt::format(", {} axes", spec.axes);
  if (spec.amplitude != 1.0) text += fmt::format(", amplitude {}", spec.amplitude);
  if (spec.sign < 0) text += ", negative sign";
  if (spec.channels != PairChannels::both) {
    text += fmt::format(", right for the {} channel of each pair", name_of(spec.channels));
  }
  if (spec.length_policy != LengthPolicy::none) {
    text += fmt::format(", {} at length {}", name_of(spec.length_policy), spec.length);
  }
  return text + fmt::format(", {} arithmetic on {} frequencies", name_of(spec.arithmetic),
                            name_of(spec.frequency_precision));
}

}  // namespace ropewalk
