// The path that takes everything: a thread owns one pair, element by element, and walks over the
// heads of a group. Any stride, any alignment, any window, more rows than 2^32.
#pragma once

#include <cstdint>

#include "rotate/cuda/angles_device.h"
#include "rotate/cuda/arguments.h"
#include "rotate/cuda/lanes.h"
#include "rotate/cuda/programmatic.h"
#include "rotate/pair.h"

namespace ropewalk::cuda {

struct NarrowPlace {
  const char* in;
  char* out;
  std::int64_t position, token;
};

__device__ __forceinline__ NarrowPlace narrow_place(const ViewArgs& view, std::int64_t g) {
  std::int64_t i0, i1, i2;
  if (view.groups < (std::int64_t{1} << 31)) {
    const auto small = static_cast<std::uint32_t>(g);
    const std::uint32_t rest = view.size0.quotient(small);
    const std::uint32_t outer = view.size1.quotient(rest);
    i0 = small - rest * view.size0.divisor;
    i1 = rest - outer * view.size1.divisor;
    i2 = outer;
  } else {
    const std::int64_t rest = g / view.size[0];
    i0 = g - rest * view.size[0];
    i2 = rest / view.size[1];
    i1 = rest - i2 * view.size[1];
  }
  const auto along = [&](const std::int64_t* stride) {
    return i0 * stride[0] + i1 * stride[1] + i2 * stride[2];
  };
  return {view.in + along(view.in_stride), view.out + along(view.out_stride),
          along(view.position_stride), along(view.token_stride)};
}

template <class V>
__device__ __forceinline__ void rotate_by_step(std::uint32_t step, typename V::Real x0,
                                               typename V::Real x1, typename V::Real c,
                                               typename V::Real s, typename V::Real& y0,
                                               typename V::Real& y1) {
  if (step == kFused) {
    rotate_pair<Fused<V>>(x0, x1, c, s, y0, y1);
  } else if (step == kSeparate) {
    rotate_pair<Separate<V>>(x0, x1, c, s, y0, y1);
  } else {
    rotate_pair<Stepwise<V>>(x0, x1, c, s, y0, y1);
  }
}

/// The two channels of a pair, counted from the window's first.
struct PairChannels {
  std::int64_t first, second;
};
__device__ __forceinline__ PairChannels channels_of(bool interleaved, std::uint32_t pair,
                                                    std::uint32_t block_pairs) {
  if (interleaved)
    return {2 * static_cast<std::int64_t>(pair), 2 * static_cast<std::int64_t>(pair) + 1};
  const std::int64_t first = pair + static_cast<std::int64_t>(pair / block_pairs) * block_pairs;
  return {first, first + block_pairs};
}

/// threadIdx.x is the pair, threadIdx.y a group of heads; every pair of a row is in the block.
template <class Storage, class Compute, bool kTable>
__global__ void __launch_bounds__(512) rotate_channels(const __grid_constant__ Args a) {
  using V = Lanes<Storage, Compute>;
  if (a.programmatic != 0) {
    start_dependents();
    wait_for_predecessor();
  }
  const NarrowArgs& n = a.narrow;
  const std::uint32_t pair = threadIdx.x;
  const bool mixed = n.read_interleaved != n.write_interleaved;
  const PairChannels from = channels_of(n.read_interleaved != 0, pair, a.row.block_pairs);
  const PairChannels to = channels_of(n.write_interleaved != 0, pair, a.row.block_pairs);
  Frequencies<Compute, 1> frequencies{};
  if constexpr (!kTable) {
    frequencies.load(sizeof(Compute) == 8 ? static_cast<const void*>(a.angle.precise)
                                          : static_cast<const void*>(a.angle.fractions),
                     pair);
  }

  for (std::int64_t block = blockIdx.x; block < n.blocks; block += gridDim.x) {
    const ViewArgs& view = a.view[block < n.split_block ? 0 : 1];
    const std::int64_t of_view = block < n.split_block ? block : block - n.split_block;
    const std::int64_t g = of_view * blockDim.y + threadIdx.y;
    const bool live = g < view.groups;
    NarrowPlace place = narrow_place(view, live ? g : 0);

    RowPosition row;
    Compute c, s;
    if constexpr (kTable) {
      row = resolve_position(
          a.position, fetch_position(a.position, a.position.data, place.position), place.token);
      angles_of<V, Source::table, 1>(a.angle, a.position, a.row.pairs, row, place.position, pair,
                                     frequencies, &c, &s);
    } else if (n.general != 0) {
      row = check_components(a.position, place.position);
      angles_of<V, Source::general, 1>(a.angle, a.position, a.row.pairs, row, place.position, pair,
                                       frequencies, &c, &s);
    } else {
      row = resolve_position(
          a.position, fetch_position(a.position, a.position.data, place.position), place.token);
      angles_of<V, Source::integer, 1>(a.angle, a.position, a.row.pairs, row, place.position, pair,
                                       frequencies, &c, &s);
    }
    if (row.bad && pair == 0 && live)
      atomicAdd(a.bad_rows, static_cast<unsigned long long>(n.heads));

    for (std::uint32_t head = 0; head < n.heads; ++head) {
      const char* in = place.in + n.offset * view.in_channel;
      char* out = place.out + n.offset * view.out_channel;
      const Storage x0 = *reinterpret_cast<const Storage*>(in + from.first * view.in_channel);
      const Storage x1 = *reinterpret_cast<const Storage*>(in + from.second * view.in_channel);
      // In place and from one order to the other, all of the row must be read before it is written.
      if (mixed) __syncthreads();
      if (live) {
        if (row.pass) {
          *reinterpret_cast<Storage*>(out + from.first * view.out_channel) = x0;
          *reinterpret_cast<Storage*>(out + from.second * view.out_channel) = x1;
        } else {
          Compute y0, y1;
          rotate_by_step<V>(kTable ? a.angle.step : static_cast<std::uint32_t>(kFused),
                            widen_to<Compute>(x0), widen_to<Compute>(x1), c, s, y0, y1);
          *reinterpret_cast<Storage*>(out + to.first * view.out_channel) = round_to<Storage>(y0);
          *reinterpret_cast<Storage*>(out + to.second * view.out_channel) = round_to<Storage>(y1);
        }
        if (n.in_place == 0) {
          const std::int64_t outside = n.head_dim - 2 * static_cast<std::int64_t>(a.row.pairs);
          for (std::int64_t i = pair; i < outside; i += blockDim.x) {
            const std::int64_t channel = i < n.offset ? i : i + 2 * a.row.pairs;
            *reinterpret_cast<Storage*>(place.out + channel * view.out_channel) =
                *reinterpret_cast<const Storage*>(place.in + channel * view.in_channel);
          }
        }
      }
      place.in += view.in_head;
      place.out += view.out_head;
    }
  }
}

/// Copies whole rows, for layers without a rotary embedding.
template <class Storage>
__global__ void __launch_bounds__(128) copy_rows(const __grid_constant__ Args a) {
  if (a.programmatic != 0) {
    start_dependents();
    wait_for_predecessor();
  }
  const NarrowArgs& n = a.narrow;
  for (std::int64_t block = blockIdx.x; block < n.blocks; block += gridDim.x) {
    const ViewArgs& view = a.view[block < n.split_block ? 0 : 1];
    const std::int64_t of_view = block < n.split_block ? block : block - n.split_block;
    const std::int64_t g = of_view * blockDim.y + threadIdx.y;
    if (g >= view.groups) continue;
    const NarrowPlace place = narrow_place(view, g);
    for (std::int64_t i = threadIdx.x; i < n.head_dim; i += blockDim.x) {
      *reinterpret_cast<Storage*>(place.out + i * view.out_channel) =
          *reinterpret_cast<const Storage*>(place.in + i * view.in_channel);
    }
  }
}

}  // namespace ropewalk::cuda
