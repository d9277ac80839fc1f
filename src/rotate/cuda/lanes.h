// The arithmetic of one CUDA thread for rotate/pair.h and phase/sincos.h, and the conversions of
// whole chunks of memory. Bits equal the CPU's: compiled with -fmad=false, fused only where
// written.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "base/half.h"
#include "phase/sincos.h"

namespace ropewalk::cuda {

/// One value of the storage type from one of the computing type, rounded to nearest even.
template <class Storage, class Compute>
__device__ __forceinline__ Storage round_to(Compute x) {
  if constexpr (sizeof(Storage) >= 4) {
    return static_cast<Storage>(x);
  } else if constexpr (sizeof(Compute) == 8) {
    return Round<Storage>::from(x);
  } else if constexpr (std::is_same_v<Storage, BFloat16>) {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
  } else {
    return {__half_as_ushort(__float2half_rn(x))};
  }
}

template <class Compute, class Storage>
__device__ __forceinline__ Compute widen_to(Storage x) {
  if constexpr (std::is_same_v<Storage, Float16>) {
    return static_cast<Compute>(__half2float(__ushort_as_half(x.bits)));
  } else if constexpr (std::is_same_v<Storage, BFloat16>) {
    return static_cast<Compute>(to_float(x));
  } else {
    return static_cast<Compute>(x);
  }
}

template <class Storage_, class Compute_>
struct Lanes {
  using Storage = Storage_;
  using Compute = Compute_;
  using Real = Compute;
  using Quadrant = std::uint32_t;

  ROPEWALK_HD static Real set(Compute x) { return x; }
  ROPEWALK_HD static Real add(Real a, Real b) { return a + b; }
  ROPEWALK_HD static Real sub(Real a, Real b) { return a - b; }
  ROPEWALK_HD static Real mul(Real a, Real b) { return a * b; }
  ROPEWALK_HD static Real fma(Real a, Real b, Real c) { return ::fma(a, b, c); }
  ROPEWALK_HD static Real fms(Real a, Real b, Real c) { return ::fma(a, b, -c); }
  __device__ __forceinline__ static Real round(Real x) {
    return widen_to<Compute>(round_to<Storage>(x));
  }
  __device__ __forceinline__ static void by_quadrant(Quadrant q, Real cosine, Real sine, Real& c,
                                                     Real& s) {
    const Real s0 = (q & 1) != 0 ? cosine : sine;
    const Real c0 = (q & 1) != 0 ? sine : cosine;
    s = negate_if(s0, q << 30);
    c = negate_if(c0, (q + 1) << 30);
  }
  /// Flips the sign where the top bit is set: an and-xor, cheaper than a selection.
  __device__ __forceinline__ static float negate_if(float x, std::uint32_t bit) {
    return __uint_as_float(__float_as_uint(x) ^ (bit & 0x80000000u));
  }
  __device__ __forceinline__ static double negate_if(double x, std::uint32_t bit) {
    return __hiloint2double(__double2hiint(x) ^ static_cast<int>(bit & 0x80000000u),
                            __double2loint(x));
  }

  /// Cosine and sine of a phase, in the precision of Compute.
  __device__ __forceinline__ static void sincos(std::uint64_t phase, Real& c, Real& s) {
    Real t;
    if constexpr (sizeof(Compute) == 4) {
      t = static_cast<float>(remainder32(phase)) * kHalfTurns32;
    } else {
      t = static_cast<double>(remainder64(phase)) * kHalfTurns64;
    }
    sincos_of_turn<Lanes>(t, quadrant_of(phase), c, s);
  }
};

/// Bytes that one instruction loads or stores.
template <int kBytes>
struct alignas(kBytes) Chunk {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  std::uint32_t word[kBytes / 4];
};
template <>
struct alignas(2) Chunk<2> {
  std::uint16_t word[1];
};

template <int kBytes>
__device__ __forceinline__ Chunk<kBytes> load_chunk(const char* p) {
  return *reinterpret_cast<const Chunk<kBytes>*>(p);
}
template <int kBytes>
__device__ __forceinline__ void store_chunk(char* p, const Chunk<kBytes>& chunk) {
  *reinterpret_cast<Chunk<kBytes>*>(p) = chunk;
}

template <class Storage, class Compute, int kBytes>
__device__ __forceinline__ void unpack(const Chunk<kBytes>& chunk, Compute* out) {
  if constexpr (kBytes == 2) {
    out[0] = widen_to<Compute>(Storage{chunk.word[0]});
    return;
  }
#pragma unroll
  for (int i = 0; i < kBytes / static_cast<int>(sizeof(Storage)); ++i) {
    if constexpr (std::is_same_v<Storage, BFloat16>) {
      const std::uint32_t word = chunk.word[i / 2];
      out[i] = __uint_as_float((i & 1) != 0 ? word & 0xffff0000u : word << 16);
    } else if constexpr (std::is_same_v<Storage, Float16>) {
      const auto bits = static_cast<unsigned short>(chunk.word[i / 2] >> (16 * (i & 1)));
      out[i] = __half2float(__ushort_as_half(bits));
    } else if constexpr (std::is_same_v<Storage, float>) {
      out[i] = __uint_as_float(chunk.word[i]);
    } else {
      out[i] = __hiloint2double(static_cast<int>(chunk.word[2 * i + 1]),
                                static_cast<int>(chunk.word[2 * i]));
    }
  }
}

template <class Storage, int kBytes, class Compute>
__device__ __forceinline__ Chunk<kBytes> pack(const Compute* in) {
  Chunk<kBytes> chunk;
  if constexpr (kBytes == 2) {
    chunk.word[0] = round_to<Storage>(in[0]).bits;
    return chunk;
  }
#pragma unroll
  for (int w = 0; w < kBytes / 4; ++w) {
    if constexpr (std::is_same_v<Storage, BFloat16>) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(in[2 * w], in[2 * w + 1]);
      chunk.word[w] = static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.x)) |
                      static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.y)) << 16;
    } else if constexpr (std::is_same_v<Storage, Float16>) {
      const __half2 pair = __floats2half2_rn(in[2 * w], in[2 * w + 1]);
      chunk.word[w] = static_cast<std::uint32_t>(__half_as_ushort(pair.x)) |
                      static_cast<std::uint32_t>(__half_as_ushort(pair.y)) << 16;
    } else if constexpr (std::is_same_v<Storage, float>) {
      chunk.word[w] = __float_as_uint(in[w]);
    } else {
      chunk.word[w] = static_cast<std::uint32_t>((w & 1) != 0 ? __double2hiint(in[w / 2])
                                                              : __double2loint(in[w / 2]));
    }
  }
  return chunk;
}

}  // namespace ropewalk::cuda
