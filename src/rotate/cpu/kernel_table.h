// From the lanes of one instruction set to its kernel: every (dtype, order, step, store) once.
// Isa supplies Lanes<Storage>, and float and double lanes for angles.
#pragma once

#include "base/half.h"
#include "rotate/cpu/angles.h"
#include "rotate/cpu/kernel.h"
#include "rotate/cpu/tile.h"

namespace ropewalk::cpu {

template <class V, template <class> class A, Store kStore>
TileFunction tile_in_order(Order read, Order write) {
  using enum Order;
  if (read == half) {
    return write == half ? &rotate_tile<TileTraits<V, A<V>, half, half, kStore>>
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
