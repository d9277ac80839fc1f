// The row loop, once: V supplies lanes (vec_<isa>.h), A the arithmetic (rotate/pair.h).
#pragma once

#include <cstring>

#include "rotate/cpu/kernel.h"
#include "rotate/pair.h"

namespace ropewalk::cpu {

template <class V_, class A_, Order kRead_, Order kWrite_, Store kStore_>
struct TileTraits {
  using V = V_;
  using A = A_;
  static constexpr Order kRead = kRead_;
  static constexpr Order kWrite = kWrite_;
  static constexpr Store kStore = kStore_;
};

/// V::kLanes pairs, or the `rest` that are left of a row. `first` and `second` are where a half
/// pairing finds its two channels; an interleaved one runs on from `first`.
template <class T, bool kWhole>
inline void rotate_lanes(const typename T::V::Storage* in, typename T::V::Storage* out,
                         typename T::V::Real cos, typename T::V::Real sin, std::int64_t pairs,
                         std::int64_t i, std::int64_t rest) {
  using V = typename T::V;
  typename V::Real x0, x1, y0, y1;
  if constexpr (T::kRead == Order::half) {
    if constexpr (kWhole) {
      x0 = V::load(in + i);
      x1 = V::load(in + pairs + i);
    } else {
      x0 = V::load_part(in + i, rest);
      x1 = V::load_part(in + pairs + i, rest);
    }
  } else if constexpr (kWhole) {
    V::load_pairs(in + 2 * i, x0, x1);
  } else {
    V::load_pairs_part(in + 2 * i, rest, x0, x1);
  }
  rotate_pair<typename T::A>(x0, x1, cos, sin, y0, y1);
  if constexpr (T::kWrite == Order::half) {
    if constexpr (!kWhole) {
      V::store_part(out + i, rest, y0);
      V::store_part(out + pairs + i, rest, y1);
    } else if constexpr (T::kStore == Store::streaming) {
      V::stream(out + i, y0);
      V::stream(out + pairs + i, y1);
    } else {
      V::store(out + i, y0);
      V::store(out + pairs + i, y1);
    }
  } else if constexpr (!kWhole) {
    V::store_pairs_part(out + 2 * i, rest, y0, y1);
  } else if constexpr (T::kStore == Store::streaming) {
    V::stream_pairs(out + 2 * i, y0, y1);
  } else {
    V::store_pairs(out + 2 * i, y0, y1);
  }
}

/// One half-paired block, or one whole window, of a row with channels side by side.
template <class T>
inline void rotate_block(const typename T::V::Storage* in, typename T::V::Storage* out,
                         const typename T::V::Compute* cos, const typename T::V::Compute* sin,
                         std::int64_t pairs) {
  using V = typename T::V;
  constexpr std::int64_t kLanes = V::kLanes;
  std::int64_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    rotate_lanes<T, true>(in, out, V::load_real(cos + i), V::load_real(sin + i), pairs, i, kLanes);
  }
  if (i < pairs) {
    rotate_lanes<T, false>(in, out, V::load_real(cos + i), V::load_real(sin + i), pairs, i,
                           pairs - i);
  }
}

/// Parameterised by the lanes, so that each instruction set has a copy of its own.
template <class V>
inline void copy_channels(const char* in, std::int64_t in_stride, char* out,
                          std::int64_t out_stride, std::int64_t count) {
  using Storage = typename V::Storage;
  if (count == 0) return;
  if (in_stride == sizeof(Storage) && out_stride == sizeof(Storage)) {
    __builtin_memcpy(out, in, static_cast<std::size_t>(count) * sizeof(Storage));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    __builtin_memcpy(out + i * out_stride, in + i * in_stride, sizeof(Storage));
  }
}

/// One row: the window rotated, the rest copied where the call is out of place.
template <class T>
inline void rotate_row(const TileArgs& args, const char* in, char* out,
                       const typename T::V::Compute* cos, const typename T::V::Compute* sin) {
  using Storage = typename T::V::Storage;
  constexpr std::int64_t kSize = sizeof(Storage);
  const std::int64_t width = 2 * args.pairs;
  const char* window_in = in + args.offset * args.in_channel;
  char* window_out = out + args.offset * args.out_channel;
  if (!args.in_place) {
    copy_channels<typename T::V>(in, args.in_channel, out, args.out_channel, args.offset);
    const std::int64_t tail = args.offset + width;
    copy_channels<typename T::V>(in + tail * args.in_channel, args.in_channel,
                                 out + tail * args.out_channel, args.out_channel,
                                 args.head_dim - tail);
  }
  // Channels apart are gathered first and scattered last; so is a row that is read in one order
  // and written, perhaps over itself, in the other.
  alignas(64) Storage gathered[kMaxRotaryDim];
  alignas(64) Storage scattered[kMaxRotaryDim];
  const bool gather = args.in_channel != kSize || (T::kRead != T::kWrite && args.in_place);
  const bool scatter = args.out_channel != kSize;
  if (gather) {
    copy_channels<typename T::V>(window_in, args.in_channel, reinterpret_cast<char*>(gathered),
                                 kSize, width);
  }
  const Storage* source = gather ? gathered : reinterpret_cast<const Storage*>(window_in);
  Storage* target = scatter ? scattered : reinterpret_cast<Storage*>(window_out);
  if constexpr (T::kRead == Order::half && T::kWrite == Order::half) {
    for (std::int64_t first = 0; first < args.pairs; first += args.block_pairs) {
      rotate_block<T>(source + 2 * first, target + 2 * first, cos + first, sin + first,
                      args.block_pairs);
    }
  } else {
    rotate_block<T>(source, target, cos, sin, args.pairs);
  }
  if (scatter) {
    copy_channels<typename T::V>(reinterpret_cast<const char*>(scattered), kSize, window_out,
                                 args.out_channel, width);
  }
}

template <class T>
inline void rotate_token_head(const TileArgs& args, std::int64_t token, std::int64_t head) {
  using Compute = typename T::V::Compute;
  const char* in = args.in + token * args.in_token + head * args.in_head;
  char* out = args.out + token * args.out_token + head * args.out_head;
  if (args.pass != nullptr && args.pass[token]) {
    if (!args.in_place) {
      copy_channels<typename T::V>(in, args.in_channel, out, args.out_channel, args.head_dim);
    }
    return;
  }
  const std::int64_t angles = token * padded_pairs(args.pairs);
  rotate_row<T>(args, in, out, static_cast<const Compute*>(args.cos) + angles,
                static_cast<const Compute*>(args.sin) + angles);
}

/// The common case without a question per row: channels side by side, one block, every channel
/// rotated or the call in place, no padding.
template <class T>
inline bool rows_are_plain(const TileArgs& args) {
  constexpr std::int64_t kSize = sizeof(typename T::V::Storage);
  return args.in_channel == kSize && args.out_channel == kSize && args.pass == nullptr &&
         (T::kRead == T::kWrite || !args.in_place) && args.block_pairs == args.pairs &&
         (args.in_place || args.head_dim == 2 * args.pairs);
}

template <class T>
inline const typename T::V::Storage* window_in(const TileArgs& args, std::int64_t token,
                                               std::int64_t head) {
  using Storage = typename T::V::Storage;
  return reinterpret_cast<const Storage*>(args.in + token * args.in_token + head * args.in_head) +
         args.offset;
}

template <class T>
inline typename T::V::Storage* window_out(const TileArgs& args, std::int64_t token,
                                          std::int64_t head) {
  using Storage = typename T::V::Storage;
  return reinterpret_cast<Storage*>(args.out + token * args.out_token + head * args.out_head) +
         args.offset;
}

template <class T>
inline const typename T::V::Compute* angles_of(const void* angles, const TileArgs& args,
                                               std::int64_t token) {
  return static_cast<const typename T::V::Compute*>(angles) + token * padded_pairs(args.pairs);
}

template <class T>
inline void rotate_plain_row(const TileArgs& args, std::int64_t token, std::int64_t head) {
  rotate_block<T>(window_in<T>(args, token, head), window_out<T>(args, token, head),
                  angles_of<T>(args.cos, args, token), angles_of<T>(args.sin, args, token),
                  args.pairs);
}

/// Fetches what the loops reach a few KiB later: in memory order that is 4 KiB further on; in runs
/// of one head, too short for the processor to foresee, the row of a later token, of the next heads
/// or of the next tile. Worth 10 to 90 % out of cache on a Zen 5 (docs/cpu.md).
/// Forced inline, because GCC drops calls of a function that does nothing but prefetch.
template <class T>
ROPEWALK_HD void prefetch_ahead(const TileArgs& args, std::int64_t token, std::int64_t head) {
  constexpr std::int64_t kLine = 64;
  constexpr std::int64_t kAhead = 4096;
  constexpr std::int64_t kAheadOfEachHead = 2048;
  const std::int64_t bytes =
      2 * args.pairs * static_cast<std::int64_t>(sizeof(typename T::V::Storage));
  const char* row = reinterpret_cast<const char*>(window_in<T>(args, token, head));
  if (!args.heads_outside) {
    row += kAhead;
  } else {
    token += bytes < kAheadOfEachHead ? kAheadOfEachHead / bytes : 1;
    if (token >= args.tokens) {
      head += kHeadsTogether;
      if (head < args.heads) {
        token -= args.tokens;
        if (token >= args.tokens) return;
      } else {
        head %= kHeadsTogether;
      }
    }
    row = reinterpret_cast<const char*>(window_in<T>(args, token, head));
  }
  for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + at);
}

/// Heads of a token with its angles, kChunks × kLanes pairs, held in registers: a third of the
/// loads in cache are cosines and sines otherwise.
template <class T, int kChunks, bool kFromMemory>
inline void rotate_heads(const TileArgs& args, std::int64_t token, std::int64_t first,
                         std::int64_t last) {
  using V = typename T::V;
  constexpr std::int64_t kLanes = V::kLanes;
  const auto* cos = angles_of<T>(args.cos, args, token);
  const auto* sin = angles_of<T>(args.sin, args, token);
  typename V::Real c[kChunks], s[kChunks];
  for (int k = 0; k < kChunks; ++k) {
    c[k] = V::load_real(cos + k * kLanes);
    s[k] = V::load_real(sin + k * kLanes);
  }
  const auto* in = window_in<T>(args, token, first);
  auto* out = window_out<T>(args, token, first);
  constexpr std::int64_t kSize = sizeof(typename V::Storage);
  const std::int64_t in_head = args.in_head / kSize, out_head = args.out_head / kSize;
  for (std::int64_t head = first; head < last; ++head) {
    if constexpr (kFromMemory) prefetch_ahead<T>(args, token, head);
    for (int k = 0; k < kChunks; ++k) {
      rotate_lanes<T, true>(in, out, c[k], s[k], kChunks * kLanes, k * kLanes, kLanes);
    }
    in += in_head;
    out += out_head;
  }
}

/// The order of the loops follows the memory: visit(token, first head, last head).
template <class Visit>
inline void for_each_token(const TileArgs& args, Visit visit) {
  if (!args.heads_outside) {
    for (std::int64_t token = 0; token < args.tokens; ++token) visit(token, 0, args.heads);
    return;
  }
  const std::int64_t together = args.from_memory ? kHeadsTogether : kHeadsTogetherInCache;
  for (std::int64_t first = 0; first < args.heads; first += together) {
    const std::int64_t beyond = first + together;
    const std::int64_t last = beyond < args.heads ? beyond : args.heads;
    for (std::int64_t token = 0; token < args.tokens; ++token) visit(token, first, last);
  }
}

template <class Row>
inline void for_each_row(const TileArgs& args, Row row) {
  for_each_token(args, [&](std::int64_t token, std::int64_t first, std::int64_t last) {
    for (std::int64_t head = first; head < last; ++head) row(token, head);
  });
}

/// rotate_heads for the number of chunks of this window; false where it does not fit.
template <class T, int kChunks = 1>
inline bool rotate_tokens_in_registers(const TileArgs& args) {
  if constexpr (kChunks > T::V::kAngleChunks) {
    return false;
  } else {
    if (args.pairs != kChunks * T::V::kLanes) {
      return rotate_tokens_in_registers<T, 2 * kChunks>(args);
    }
    const auto visit = [&](std::int64_t token, std::int64_t first, std::int64_t last) {
      if (args.from_memory) {
        rotate_heads<T, kChunks, true>(args, token, first, last);
      } else {
        rotate_heads<T, kChunks, false>(args, token, first, last);
      }
    };
    for_each_token(args, visit);
    return true;
  }
}

template <class T>
void rotate_tile(const TileArgs& args) {
  if (!rows_are_plain<T>(args)) {
    for_each_row(args, [&](std::int64_t token, std::int64_t head) {
      rotate_token_head<T>(args, token, head);
    });
  } else if (!rotate_tokens_in_registers<T>(args)) {
    for_each_row(args, [&](std::int64_t token, std::int64_t head) {
      if (args.from_memory) prefetch_ahead<T>(args, token, head);
      rotate_plain_row<T>(args, token, head);
    });
  }
}

}  // namespace ropewalk::cpu
