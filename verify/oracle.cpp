#include "verify/oracle.h"

#include <utility>

namespace ropewalk::verify {
namespace {

Quad element(const void* data, Positions::Type type, std::int64_t index) noexcept {
  switch (type) {
    case Positions::Type::int32: return static_cast<const std::int32_t*>(data)[index];
    case Positions::Type::int64: return static_cast<const std::int64_t*>(data)[index];
    case Positions::Type::float32: return static_cast<const float*>(data)[index];
    case Positions::Type::float64: return static_cast<const double*>(data)[index];
  }
  return 0;
}

Quad packed_position(const Positions& p, std::int64_t t) noexcept {
  std::int64_t sequence = 0;
  while (sequence + 1 < p.sequences && element(p.cu_seqlens, p.cu_type, sequence + 1) <= t) {
    ++sequence;
  }
  const Quad within = t - element(p.cu_seqlens, p.cu_type, sequence);
  if (p.data == nullptr) return within;
  return within + element(p.data, p.type, sequence);
}

}  // namespace

// Why this is exact enough: a position has at most 53 significant bits (|integer| < 2^53, or a
// double) and omega 53, so their product has at most 106 and the quad product is exact. sinq and
// cosq (sinl and cosl where long double is quad) reduce it by pi/2 with as many bits of 2/pi as its
// exponent asks for, and are right to about one unit in the last of 113 bits. What remains is near
// 2^-112 ≈ 2e-34, seventeen orders below the tightest tolerance.
CosSin exact_cos_sin(Quad position, double omega) noexcept {
  const Quad angle = position * Quad(omega);
  return {cosine(angle), sine(angle)};
}

Quad position_component(const Positions& p, std::int64_t axis, std::int64_t b, std::int64_t t) {
  const std::int64_t component = p.axes == 1 ? 0 : axis;
  switch (p.kind) {
    case Positions::Kind::offset: return Quad(p.start) + t;
    case Positions::Kind::per_batch: return element(p.data, p.type, b * p.batch_stride) + t;
    case Positions::Kind::per_token:
      return element(p.data, p.type,
                     component * p.axis_stride + b * p.batch_stride + t * p.token_stride);
    case Positions::Kind::packed: return packed_position(p, t);
  }
  return 0;
}

Oracle::Oracle(const PlanSpec& spec, const Positions& positions, Direction direction)
    : spec_(spec), positions_(positions), direction_(direction) {
  if (spec_.window.width == 0) spec_.window.width = spec_.head_dim;
  angles_.resize(static_cast<std::size_t>(spec_.window.width / 2));
}

Oracle::PairChannels Oracle::channels_of(std::int64_t pair) const noexcept {
  const auto [offset, width] = spec_.window;
  const std::int64_t block = spec_.block_width == 0 ? width : spec_.block_width;
  const std::int64_t half = block / 2;
  const std::int64_t half_first = offset + (pair / half) * block + pair % half;
  const std::int64_t even = offset + 2 * pair;
  PairChannels channels{};
  switch (spec_.pairing) {
    case Pairing::half:
      channels = {half_first, half_first + half, half_first, half_first + half};
      break;
    case Pairing::interleaved: channels = {even, even + 1, even, even + 1}; break;
    case Pairing::interleaved_to_half:
      channels = {even, even + 1, half_first, half_first + half};
      break;
  }
  // The inverse is the transposed map: it reads what forward writes and writes what forward reads.
  if (direction_ == Direction::inverse) {
    std::swap(channels.in0, channels.out0);
    std::swap(channels.in1, channels.out1);
  }
  return channels;
}

bool Oracle::is_padding(std::int64_t b, std::int64_t t) const {
  if (!positions_.padding) return false;
  for (std::int64_t axis = 0; axis < positions_.axes; ++axis) {
    if (position_component(positions_, axis, b, t) != Quad(*positions_.padding)) return false;
  }
  return true;
}

void Oracle::seek(std::int64_t b, std::int64_t t) {
  passes_through_ = !spec_.rotates || is_padding(b, t);
  if (passes_through_) return;
  const Quad turn_sense = spec_.sign * (direction_ == Direction::inverse ? -1 : 1);
  for (std::size_t pair = 0; pair < angles_.size(); ++pair) {
    const std::int64_t axis = spec_.axis.empty() ? 0 : spec_.axis[pair];
    const Quad position = position_component(positions_, axis, b, t);
    angles_[pair] = exact_cos_sin(position, spec_.frequencies[pair]);
    angles_[pair].s *= turn_sense;
  }
}

void Oracle::row(std::span<const Quad> in, std::span<Expected> out) const {
  for (std::size_t channel = 0; channel < out.size(); ++channel) {
    out[channel] = {.exact = {.y = in[channel]}, .copied_from = static_cast<std::int64_t>(channel)};
  }
  if (passes_through_) return;
  const Quad amplitude = spec_.amplitude;
  for (std::size_t pair = 0; pair < angles_.size(); ++pair) {
    const PairChannels channels = channels_of(static_cast<std::int64_t>(pair));
    const Quad x0 = in[static_cast<std::size_t>(channels.in0)];
    const Quad x1 = in[static_cast<std::size_t>(channels.in1)];
    const auto [c, s] = angles_[pair];
    out[static_cast<std::size_t>(channels.out0)] = {
        .exact = {.y = amplitude * (x0 * c - x1 * s), .x_cos = x0, .x_sin = x1, .c = c, .s = s}};
    out[static_cast<std::size_t>(channels.out1)] = {
        .exact = {.y = amplitude * (x1 * c + x0 * s), .x_cos = x1, .x_sin = x0, .c = c, .s = s}};
  }
}

}  // namespace ropewalk::verify
