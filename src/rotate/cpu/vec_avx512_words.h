// AVX-512 lanes of 16-bit data: two registers of 16 floats, loaded and stored 64 bytes at a time.
// With kHardwareBf16 the conversion to bfloat16 is the instruction's.
#pragma once

#include <type_traits>

#include "base/half.h"
#include "rotate/cpu/vec_avx512.h"

namespace ropewalk::cpu::avx512 {

struct Float16x2 {
  __m512 a, b;
};

template <class L, class Storage_>
struct SixteenBit {
  using Storage = Storage_;
  using Compute = float;
  using Real = Float16x2;
  static constexpr std::int64_t kLanes = 32;
  static constexpr int kAngleChunks = 4;

  ROPEWALK_LANES Real load_real(const float* p) {
    return {_mm512_loadu_ps(p), _mm512_loadu_ps(p + 16)};
  }
  ROPEWALK_LANES Real add(Real x, Real y) {
    return {_mm512_add_ps(x.a, y.a), _mm512_add_ps(x.b, y.b)};
  }
  ROPEWALK_LANES Real sub(Real x, Real y) {
    return {_mm512_sub_ps(x.a, y.a), _mm512_sub_ps(x.b, y.b)};
  }
  ROPEWALK_LANES Real mul(Real x, Real y) {
    return {_mm512_mul_ps(x.a, y.a), _mm512_mul_ps(x.b, y.b)};
  }
  ROPEWALK_LANES Real fma(Real x, Real y, Real z) {
    return {_mm512_fmadd_ps(x.a, y.a, z.a), _mm512_fmadd_ps(x.b, y.b, z.b)};
  }
  ROPEWALK_LANES Real fms(Real x, Real y, Real z) {
    return {_mm512_fmsub_ps(x.a, y.a, z.a), _mm512_fmsub_ps(x.b, y.b, z.b)};
  }

  ROPEWALK_LANES __mmask32 mask(std::int64_t n) { return static_cast<__mmask32>(first_bits(n)); }
  ROPEWALK_LANES __m512i words(const Storage* p) { return _mm512_loadu_si512(p); }
  ROPEWALK_LANES __m512i words(const Storage* p, std::int64_t n) {
    return _mm512_maskz_loadu_epi16(mask(n), p);
  }
  ROPEWALK_LANES void put(Storage* p, __m512i x) { _mm512_storeu_si512(p, x); }
  ROPEWALK_LANES void put(Storage* p, std::int64_t n, __m512i x) {
    _mm512_mask_storeu_epi16(p, mask(n), x);
  }
  ROPEWALK_LANES void put_streaming(Storage* p, __m512i x) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), x);
  }

  ROPEWALK_LANES Real load(const Storage* p) { return L::unpack(words(p)); }
  ROPEWALK_LANES Real load_part(const Storage* p, std::int64_t n) { return L::unpack(words(p, n)); }
  ROPEWALK_LANES void store(Storage* p, Real x) { put(p, L::pack(x)); }
  ROPEWALK_LANES void store_part(Storage* p, std::int64_t n, Real x) { put(p, n, L::pack(x)); }
  ROPEWALK_LANES void stream(Storage* p, Real x) { put_streaming(p, L::pack(x)); }
  ROPEWALK_LANES void load_pairs(const Storage* p, Real& x0, Real& x1) {
    L::split(words(p), words(p + 32), x0, x1);
  }
  ROPEWALK_LANES void load_pairs_part(const Storage* p, std::int64_t n, Real& x0, Real& x1) {
    L::split(words(p, 2 * n), words(p + 32, 2 * n - 32), x0, x1);
  }
  ROPEWALK_LANES void store_pairs(Storage* p, Real y0, Real y1) {
    put(p, L::joined(y0.a, y1.a));
    put(p + 32, L::joined(y0.b, y1.b));
  }
  ROPEWALK_LANES void store_pairs_part(Storage* p, std::int64_t n, Real y0, Real y1) {
    put(p, 2 * n, L::joined(y0.a, y1.a));
    put(p + 32, 2 * n - 32, L::joined(y0.b, y1.b));
  }
  ROPEWALK_LANES void stream_pairs(Storage* p, Real y0, Real y1) {
    put_streaming(p, L::joined(y0.a, y1.a));
    put_streaming(p + 32, L::joined(y0.b, y1.b));
  }
};

/// The bfloat16 bits of 16 floats, in the upper half of each lane, lower half undefined.
ROPEWALK_LANES __m512i bfloat16_upper(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  return _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits,
                              _mm512_set1_epi32(0x400000));
}
/// 16 words, then 16 more, to alternating words.
ROPEWALK_LANES __m512i zip_halves(__m512i w) {
  alignas(64) static constexpr std::uint16_t kZip[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                         21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                         11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kZip), w);
}
/// The even 16-bit words of a, then of b.
ROPEWALK_LANES __m512i lower_words(__m512i a, __m512i b) {
  alignas(64) static constexpr std::uint16_t kEven[32] = {
      0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
      32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
  return _mm512_permutex2var_epi16(a, _mm512_load_si512(kEven), b);
}
/// The odd 16-bit words of a, then of b: the upper halves of their lanes.
ROPEWALK_LANES __m512i upper_words(__m512i a, __m512i b) {
  alignas(64) static constexpr std::uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                         23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                         45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(a, _mm512_load_si512(kOdd), b);
}

/// bfloat16 in the lower and in the upper half of each lane, as floats.
ROPEWALK_LANES __m512 lower(__m512i w) { return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)); }
ROPEWALK_LANES __m512 upper(__m512i w) {
  return _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

/// Rounding of two registers at once: in order (pack), or to alternating words (joined).
template <bool kHardwareBf16>
struct BFloat16Rounding {
#if defined(__AVX512BF16__)
  /// The instruction takes subnormals for zero; such lanes are rare and go the long way.
  ROPEWALK_LANES bool has_subnormal(__m512 x, __m512 y) {
    constexpr int kSubnormal = 0x20;
    return (_mm512_fpclass_ps_mask(x, kSubnormal) | _mm512_fpclass_ps_mask(y, kSubnormal)) != 0;
  }
  ROPEWALK_LANES __m512i convert(__m512 low, __m512 high) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
  }
#endif
  ROPEWALK_LANES __m512i in_order(__m512 low, __m512 high) {
#if defined(__AVX512BF16__)
    if constexpr (kHardwareBf16) {
      if (!has_subnormal(low, high)) [[likely]]
        return convert(low, high);
    }
#endif
    return upper_words(bfloat16_upper(low), bfloat16_upper(high));
  }
  ROPEWALK_LANES __m512i alternating(__m512 even, __m512 odd) {
#if defined(__AVX512BF16__)
    if constexpr (kHardwareBf16) {
      if (!has_subnormal(even, odd)) [[likely]]
        return zip_halves(convert(even, odd));
    }
#endif
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(bfloat16_upper(even), 16),
                                   bfloat16_upper(odd));
  }
};

/// Even channels in one register, odd ones in the other: a shift and a mask widen them, where the
/// order of memory takes two permutations. For half to half, where no lane meets its neighbour.
template <bool kHardwareBf16>
struct BFloat16Alternating : SixteenBit<BFloat16Alternating<kHardwareBf16>, BFloat16> {
  using Real = Float16x2;

  ROPEWALK_LANES Real load_real(const float* p) {
    Real x;
    Float32::split(Float32::load(p), Float32::load(p + 16), x.a, x.b);
    return x;
  }
  ROPEWALK_LANES __m512i pack(Real x) {
    return BFloat16Rounding<kHardwareBf16>::alternating(x.a, x.b);
  }
  ROPEWALK_LANES Real unpack(__m512i w) { return {lower(w), upper(w)}; }
  ROPEWALK_LANES Real round(Real x) {
    return {upper(bfloat16_upper(x.a)), upper(bfloat16_upper(x.b))};
  }
};

/// Channels in the order of memory.
template <bool kHardwareBf16>
struct BFloat16Lanes : SixteenBit<BFloat16Lanes<kHardwareBf16>, BFloat16> {
  using Real = Float16x2;
  using HalfToHalf = BFloat16Alternating<kHardwareBf16>;

  ROPEWALK_LANES __m512i pack(Real x) {
    return BFloat16Rounding<kHardwareBf16>::in_order(x.a, x.b);
  }
  /// Each word to the upper half of its lane: one permutation does the widening and the shift.
  ROPEWALK_LANES Real unpack(__m512i w) {
    alignas(64) static constexpr std::uint16_t kLow[32] = {0, 0,  0, 1,  0, 2,  0, 3,  0, 4, 0,
                                                           5, 0,  6, 0,  7, 0,  8, 0,  9, 0, 10,
                                                           0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    const __m512i low = _mm512_load_si512(kLow);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    constexpr __mmask32 kUpper = 0xaaaaaaaau;
    return {_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(kUpper, low, w)),
            _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(kUpper, high, w))};
  }
  ROPEWALK_LANES void split(__m512i a, __m512i b, Real& x0, Real& x1) {
    x0 = {lower(a), lower(b)};
    x1 = {upper(a), upper(b)};
  }
  ROPEWALK_LANES __m512i joined(__m512 even, __m512 odd) {
    return BFloat16Rounding<kHardwareBf16>::alternating(even, odd);
  }
  ROPEWALK_LANES Real round(Real x) {
    return {upper(bfloat16_upper(x.a)), upper(bfloat16_upper(x.b))};
  }
};

struct Float16Lanes : SixteenBit<Float16Lanes, Float16> {
  ROPEWALK_LANES __m512i pack(Real x) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(x.a, kNearest)),
                              _mm512_cvtps_ph(x.b, kNearest), 1);
  }
  ROPEWALK_LANES Real unpack(__m512i w) {
    return {_mm512_cvtph_ps(_mm512_castsi512_si256(w)),
            _mm512_cvtph_ps(_mm512_extracti64x4_epi64(w, 1))};
  }
  ROPEWALK_LANES void split(__m512i a, __m512i b, Real& x0, Real& x1) {
    x0 = unpack(lower_words(a, b));
    x1 = unpack(upper_words(a, b));
  }
  ROPEWALK_LANES __m512i joined(__m512 even, __m512 odd) { return zip_halves(pack({even, odd})); }
  ROPEWALK_LANES Real round(Real x) { return unpack(pack(x)); }
};

template <class Storage, bool kHardwareBf16>
struct LanesOf;
template <bool kHardwareBf16>
struct LanesOf<float, kHardwareBf16> : std::type_identity<Float32> {};
template <bool kHardwareBf16>
struct LanesOf<double, kHardwareBf16> : std::type_identity<Float64> {};
template <bool kHardwareBf16>
struct LanesOf<Float16, kHardwareBf16> : std::type_identity<Float16Lanes> {};
template <bool kHardwareBf16>
struct LanesOf<BFloat16, kHardwareBf16> : std::type_identity<BFloat16Lanes<kHardwareBf16>> {};

template <bool kHardwareBf16>
struct Isa {
  template <class Storage>
  using Lanes = typename LanesOf<Storage, kHardwareBf16>::type;
};

}  // namespace ropewalk::cpu::avx512
