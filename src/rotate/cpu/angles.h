// Cosines and sines of a run of tokens, from positions: phase, polynomial, amplitude. Written
// once; L supplies the lanes of one instruction set (vec_<isa>.h).
#pragma once

#include "phase/phase.h"
#include "phase/sincos.h"
#include "rotate/cpu/kernel.h"

namespace ropewalk::cpu {

/// The phases of one token. float64 data uses the second word of F.
template <class L>
inline void phases_of_token(const AngleArgs& args, const FixedPosition* position,
                            std::uint64_t* phases) {
  constexpr bool kPrecise = sizeof(typename L::Compute) == 8;
  if (!kPrecise && !args.fractional && args.axis == nullptr) {
    const std::int64_t p = position->whole;
    for (std::int64_t i = 0; i < args.pairs; ++i) phases[i] = phase_of(p, args.fractions[i]);
    return;
  }
  for (std::int64_t i = 0; i < args.pairs; ++i) {
    const FixedPosition& p = position[args.axis == nullptr ? 0 : args.axis[i]];
    const Turns& turns = args.turns[i];
    const std::uint64_t low = kPrecise ? turns.low : 0;
    phases[i] = args.fractional ? phase_of(p, turns.fraction, low, turns.whole)
                                : phase_of(p.whole, turns.fraction, low);
  }
}

/// Lanes that multiply a position by their frequencies and split the phases in registers.
template <class L>
concept SplitsProducts = requires(typename L::Real& t, typename L::Quadrant& q) {
  L::split_product(std::int64_t{}, static_cast<const std::uint64_t*>(nullptr), t, q);
};

template <class L>
void fill_angles(const AngleArgs& args) {
  using Compute = typename L::Compute;
  alignas(64) std::uint64_t phases[kMaxPairs + L::kLanes];
  for (std::int64_t i = 0; i < L::kLanes; ++i) phases[args.pairs + i] = 0;  // lanes past the last
  const std::int64_t stride = padded_pairs(args.pairs);
  const bool in_registers =
      SplitsProducts<L> && !args.fractional && args.axis == nullptr && args.pairs % L::kLanes == 0;
  const typename L::Real cos_amplitude = L::set(static_cast<Compute>(args.amplitude));
  const typename L::Real sin_amplitude = L::set(static_cast<Compute>(args.sine_amplitude));
  const auto fill_token = [&](std::int64_t token, auto split) {
    Compute* cos = static_cast<Compute*>(args.cos) + token * stride;
    Compute* sin = static_cast<Compute*>(args.sin) + token * stride;
    for (std::int64_t i = 0; i < args.pairs; i += L::kLanes) {
      typename L::Real t, c, s;
      typename L::Quadrant q;
      split(i, t, q);
      sincos_of_turn<L>(t, q, c, s);
      L::store_real(cos + i, L::mul(c, cos_amplitude));
      L::store_real(sin + i, L::mul(s, sin_amplitude));
    }
  };
  for (std::int64_t token = 0; token < args.tokens; ++token) {
    const FixedPosition* position = args.positions + token * args.axes;
    if constexpr (SplitsProducts<L>) {
      if (in_registers) {
        fill_token(token, [&](std::int64_t i, auto& t, auto& q) {
          L::split_product(position->whole, args.fractions + i, t, q);
        });
        continue;
      }
    }
    phases_of_token<L>(args, position, phases);
    fill_token(token, [&](std::int64_t i, auto& t, auto& q) { L::split_phase(phases + i, t, q); });
  }
}

}  // namespace ropewalk::cpu
