// Instantiates the kernels of one dtype from the lists in shapes.h.
#pragma once

#include <array>
#include <utility>

#include "rotate/cuda/kernels.h"
#include "rotate/cuda/narrow_kernel.h"
#include "rotate/cuda/vector_kernel.h"
#include "rotate/cuda/warp_kernel.h"

namespace ropewalk::cuda {

template <class Storage, Order kRead, Order kWrite, const auto& kShapes, std::size_t... kIndex>
constexpr auto vector_kernels(std::index_sequence<kIndex...>) {
  return std::array{VectorKernel{
      kRead, kWrite, kShapes[kIndex],
      &rotate_vectors<VectorTraits<Storage, kRead, kWrite, kShapes[kIndex].source,
                                   kShapes[kIndex].map, kShapes[kIndex].pairs,
                                   kShapes[kIndex].heads, kShapes[kIndex].full_row>>}...};
}

template <class Storage, Order kRead, Order kWrite, const auto& kShapes>
constexpr auto vector_kernels() {
  return vector_kernels<Storage, kRead, kWrite, kShapes>(
      std::make_index_sequence<std::size(kShapes)>{});
}

template <class Storage, Order kOrder, const auto& kShapes, std::size_t... kIndex>
auto warp_kernels(std::index_sequence<kIndex...>) {
  return std::array{
      WarpKernel{kOrder, kShapes[kIndex],
                 reinterpret_cast<const void*>(
                     &rotate_by_warps<WarpTraits<Storage, kOrder, kShapes[kIndex]>>)}...};
}

template <class Storage, Order kOrder, const auto& kShapes>
auto warp_kernels() {
  return warp_kernels<Storage, kOrder, kShapes>(std::make_index_sequence<std::size(kShapes)>{});
}

template <class First, class... Rest>
auto joined(const First& first, const Rest&... rest) {
  std::array<typename First::value_type, std::tuple_size_v<First> + (std::tuple_size_v<Rest> + ...)>
      all;
  auto at = std::copy(first.begin(), first.end(), all.begin());
  ((at = std::copy(rest.begin(), rest.end(), at)), ...);
  return all;
}

/// Every kernel of a dtype.
template <class Storage, const auto& kHalf, const auto& kInterleaved, const auto& kMixed,
          const auto& kWarps>
DtypeKernels make_kernels() {
  using Compute = std::conditional_t<sizeof(Storage) == 8, double, float>;
  constexpr Order half = Order::half;
  constexpr Order interleaved = Order::interleaved;
  static const auto vectors =
      joined(vector_kernels<Storage, half, half, kHalf>(),
             vector_kernels<Storage, interleaved, interleaved, kInterleaved>(),
             vector_kernels<Storage, interleaved, half, kMixed>(),
             vector_kernels<Storage, half, interleaved, kMixed>());
  static const auto warps =
      joined(warp_kernels<Storage, half, kWarps>(), warp_kernels<Storage, interleaved, kWarps>());
  return {vectors,
          warps,
          &rotate_channels<Storage, Compute, false>,
          &rotate_channels<Storage, Compute, true>,
          &rotate_channels<Storage, double, true>,
          &copy_rows<Storage>};
}

}  // namespace ropewalk::cuda
