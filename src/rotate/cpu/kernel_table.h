// From the lanes of one instruction set to its kernel: every (dtype, order, step, store) once.
// Isa supplies Lanes<Storage>, and float and double lanes for angles.
#pragma once

#include <type_traits>

#include "base/half.h"
#include "rotate/cpu/angles.h"
#include "rotate/cpu/kernel.h"
#include "rotate/cpu/tile.h"

namespace ropewalk::cpu {

/// Half to half each channel keeps its place, so lanes may hold them in any order.
template <class V>
struct HalfToHalfLanes : std::type_identity<V> {};
template <class V>
  requires requires { typename V::HalfToHalf; }
struct HalfToHalfLanes<V> : std::type_identity<typename V::HalfToHalf> {};

template <class V, template <class> class A, Store kStore>
TileFunction tile_in_order(Order read, Order write) {
  using enum Order;
  using H = typename HalfToHalfLanes<V>::type;
  if (read == half) {
    return write == half ? &rotate_tile<TileTraits<H, A<H>, half, half, kStore>>
                         : &rotate_tile<TileTraits<V, A<V>, half, interleaved, kStore>>;
  }
  return write == half ? &rotate_tile<TileTraits<V, A<V>, interleaved, half, kStore>>
                       : &rotate_tile<TileTraits<V, A<V>, interleaved, interleaved, kStore>>;
}

/// Streaming stores are worth their alignment rules in the exact arithmetic alone; parity takes
/// the cached ones.
template <class Isa, class Storage>
TileFunction tile_of_storage(const TileKey& key) {
  using V = typename Isa::template Lanes<Storage>;
  switch (key.step) {
    case Step::fused:
      return key.store == Store::streaming
                 ? tile_in_order<V, Fused, Store::streaming>(key.read, key.write)
                 : tile_in_order<V, Fused, Store::cached>(key.read, key.write);
    case Step::separate: return tile_in_order<V, Separate, Store::cached>(key.read, key.write);
    case Step::stepwise:
      if constexpr (sizeof(Storage) == 2) {
        return tile_in_order<V, Stepwise, Store::cached>(key.read, key.write);
      } else {
        return tile_in_order<V, Separate, Store::cached>(key.read, key.write);
      }
    case Step::separate64: return nullptr;
  }
  return nullptr;
}

template <class Isa>
TileFunction tile_of(const TileKey& key) {
  switch (key.dtype) {
    case Dtype::float64: return tile_of_storage<Isa, double>(key);
    case Dtype::float32: return tile_of_storage<Isa, float>(key);
    case Dtype::float16: return tile_of_storage<Isa, Float16>(key);
    case Dtype::bfloat16: return tile_of_storage<Isa, BFloat16>(key);
  }
  return nullptr;
}

}  // namespace ropewalk::cpu
