// One lane: the reference that every other instruction set equals bit for bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "phase/sincos.h"

namespace ropewalk {

/// Compute differs from the storage's own (float, or double for double) only for parity P4.
template <class Storage_, class Compute_ = std::conditional_t<sizeof(Storage_) == 8, double, float>>
struct ScalarLanes {
  using Storage = Storage_;
  using Compute = Compute_;
  using Real = Compute;
  using Quadrant = std::uint32_t;
  static constexpr std::int64_t kLanes = 1;
  static constexpr int kAngleChunks = 0;  // of angles that fit in registers (rotate/cpu/tile.h)

  // Rows may start at any byte address (odd strides in bytes are refused, odd bases are not).
  static Storage read(const Storage* p) {
    Storage value;
    memcpy(&value, p, sizeof value);
    return value;
  }
  static void write(Storage* p, Storage value) { memcpy(p, &value, sizeof value); }

  static Real load(const Storage* p) { return widen<Compute>(read(p)); }
  static Real load_part(const Storage* p, std::int64_t) { return load(p); }
  static void store(Storage* p, Real x) { write(p, Round<Storage>::from(x)); }
  static void store_part(Storage* p, std::int64_t, Real x) { store(p, x); }
  static void stream(Storage* p, Real x) { store(p, x); }
  static void load_pairs(const Storage* p, Real& x0, Real& x1) {
    x0 = load(p);
    x1 = load(p + 1);
  }
  static void load_pairs_part(const Storage* p, std::int64_t, Real& x0, Real& x1) {
    load_pairs(p, x0, x1);
  }
  static void store_pairs(Storage* p, Real y0, Real y1) {
    store(p, y0);
    store(p + 1, y1);
  }
  static void store_pairs_part(Storage* p, std::int64_t, Real y0, Real y1) {
    store_pairs(p, y0, y1);
  }
  static void stream_pairs(Storage* p, Real y0, Real y1) { store_pairs(p, y0, y1); }
  static void fence() {}

  static Real load_real(const Compute* p) { return *p; }
  static void store_real(Compute* p, Real x) { *p = x; }
  static Real set(Compute x) { return x; }
  static Real add(Real a, Real b) { return a + b; }
  static Real sub(Real a, Real b) { return a - b; }
  static Real mul(Real a, Real b) { return a * b; }
  static Real fma(Real a, Real b, Real c) { return std::fma(a, b, c); }
  static Real fms(Real a, Real b, Real c) { return std::fma(a, b, -c); }
  static Real round(Real x) { return widen<Compute>(Round<Storage>::from(x)); }

  static void split_phase(const std::uint64_t* phase, Real& t, Quadrant& q) {
    q = quadrant_of(*phase);
    if constexpr (sizeof(Compute) == 4) {
      t = static_cast<float>(remainder32(*phase)) * kHalfTurns32;
    } else {
      t = static_cast<double>(remainder64(*phase)) * kHalfTurns64;
    }
  }
  static void by_quadrant(Quadrant q, Real cosine, Real sine, Real& c, Real& s) {
    const Real s0 = (q & 1) != 0 ? cosine : sine;
    const Real c0 = (q & 1) != 0 ? sine : cosine;
    s = (q & 2) != 0 ? -s0 : s0;
    c = ((q + 1) & 2) != 0 ? -c0 : c0;
  }
};

}  // namespace ropewalk
