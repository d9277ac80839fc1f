// AVX2 + F16C lanes of 16-bit data: two registers of 8 floats.
#pragma once

#include <type_traits>

#include "base/half.h"
#include "rotate/cpu/vec_avx2.h"

namespace ropewalk::cpu::avx2 {

struct Float8x2 {
  __m256 a, b;
};

template <class L, class Storage_>
struct SixteenBit : Common<L, Storage_, Float8x2> {
  using Storage = Storage_;
  using Compute = float;
  using Real = Float8x2;
  static constexpr std::int64_t kLanes = 16;
  static constexpr int kAngleChunks = 2;

  ROPEWALK_LANES Real load_real(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  ROPEWALK_LANES Real add(Real x, Real y) {
    return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
  }
  ROPEWALK_LANES Real sub(Real x, Real y) {
    return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
  }
  ROPEWALK_LANES Real mul(Real x, Real y) {
    return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
  }
  ROPEWALK_LANES Real fma(Real x, Real y, Real z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  ROPEWALK_LANES Real fms(Real x, Real y, Real z) {
    return {_mm256_fmsub_ps(x.a, y.a, z.a), _mm256_fmsub_ps(x.b, y.b, z.b)};
  }
  ROPEWALK_LANES __m256i words(const Storage* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  ROPEWALK_LANES void put(Storage* p, __m256i x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  ROPEWALK_LANES void put_streaming(Storage* p, __m256i x) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), x);
  }
};

/// The bfloat16 bits of 8 floats, in the upper half of each lane, lower half undefined.
ROPEWALK_LANES __m256i bfloat16_upper(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_castps_si256(
      _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan));
}

/// bfloat16 in the lower and in the upper half of each lane, as floats.
ROPEWALK_LANES __m256 lower(__m256i w) { return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16)); }
ROPEWALK_LANES __m256 upper(__m256i w) {
  return _mm256_castsi256_ps(_mm256_and_si256(w, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}
/// Two registers rounded to alternating words.
ROPEWALK_LANES __m256i alternating(__m256 even, __m256 odd) {
  return _mm256_blend_epi16(_mm256_srli_epi32(bfloat16_upper(even), 16), bfloat16_upper(odd), 0xaa);
}

/// Even channels in one register, odd ones in the other: a shift and a mask widen them and a shift
/// and a blend join them. For half to half, where no lane meets its neighbour.
struct BFloat16Alternating : SixteenBit<BFloat16Alternating, BFloat16> {
  ROPEWALK_LANES Real load_real(const float* p) {
    Real x;
    split_pairs(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), x.a, x.b);
    return x;
  }
  ROPEWALK_LANES Real load(const BFloat16* p) {
    const __m256i w = words(p);
    return {lower(w), upper(w)};
  }
  ROPEWALK_LANES void store(BFloat16* p, Real x) { put(p, alternating(x.a, x.b)); }
  ROPEWALK_LANES void stream(BFloat16* p, Real x) { put_streaming(p, alternating(x.a, x.b)); }
  ROPEWALK_LANES Real round(Real x) {
    return {upper(bfloat16_upper(x.a)), upper(bfloat16_upper(x.b))};
  }
};

/// Channels in the order of memory.
struct BFloat16Lanes : SixteenBit<BFloat16Lanes, BFloat16> {
  using HalfToHalf = BFloat16Alternating;

  ROPEWALK_LANES __m256i pack(Real x) {
    const __m256i a = _mm256_srli_epi32(bfloat16_upper(x.a), 16);
    const __m256i b = _mm256_srli_epi32(bfloat16_upper(x.b), 16);
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
  }
  ROPEWALK_LANES Real load(const BFloat16* p) {
    const __m256i w = words(p);
    return {lower(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(w))),
            lower(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(w, 1)))};
  }
  ROPEWALK_LANES void store(BFloat16* p, Real x) { put(p, pack(x)); }
  ROPEWALK_LANES void stream(BFloat16* p, Real x) { put_streaming(p, pack(x)); }
  ROPEWALK_LANES void load_pairs(const BFloat16* p, Real& x0, Real& x1) {
    const __m256i a = words(p), b = words(p + 16);
    x0 = {lower(a), lower(b)};
    x1 = {upper(a), upper(b)};
  }
  ROPEWALK_LANES void store_pairs(BFloat16* p, Real y0, Real y1) {
    put(p, alternating(y0.a, y1.a));
    put(p + 16, alternating(y0.b, y1.b));
  }
  ROPEWALK_LANES void stream_pairs(BFloat16* p, Real y0, Real y1) {
    put_streaming(p, alternating(y0.a, y1.a));
    put_streaming(p + 16, alternating(y0.b, y1.b));
  }
  ROPEWALK_LANES Real round(Real x) {
    return {upper(bfloat16_upper(x.a)), upper(bfloat16_upper(x.b))};
  }
};

struct Float16Lanes : SixteenBit<Float16Lanes, Float16> {
  ROPEWALK_LANES __m256i pack(Real x) {
    return _mm256_set_m128i(_mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                            _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  ROPEWALK_LANES Real unpack(__m256i w) {
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(w)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(w, 1))};
  }
  ROPEWALK_LANES void join(Real y0, Real y1, __m256i& a, __m256i& b) {
    Real first, second;
    join_pairs(y0.a, y1.a, first.a, first.b);
    join_pairs(y0.b, y1.b, second.a, second.b);
    a = pack(first);
    b = pack(second);
  }

  ROPEWALK_LANES Real load(const Float16* p) { return unpack(words(p)); }
  ROPEWALK_LANES void store(Float16* p, Real x) { put(p, pack(x)); }
  ROPEWALK_LANES void stream(Float16* p, Real x) { put_streaming(p, pack(x)); }
  ROPEWALK_LANES void load_pairs(const Float16* p, Real& x0, Real& x1) {
    const Real first = unpack(words(p)), second = unpack(words(p + 16));
    split_pairs(first.a, first.b, x0.a, x1.a);
    split_pairs(second.a, second.b, x0.b, x1.b);
  }
  ROPEWALK_LANES void store_pairs(Float16* p, Real y0, Real y1) {
    __m256i a, b;
    join(y0, y1, a, b);
    put(p, a);
    put(p + 16, b);
  }
  ROPEWALK_LANES void stream_pairs(Float16* p, Real y0, Real y1) {
    __m256i a, b;
    join(y0, y1, a, b);
    put_streaming(p, a);
    put_streaming(p + 16, b);
  }
  ROPEWALK_LANES Real round(Real x) { return unpack(pack(x)); }
};

template <class Storage>
struct LanesOf;
template <>
struct LanesOf<float> : std::type_identity<Float32> {};
template <>
struct LanesOf<double> : std::type_identity<Float64> {};
template <>
struct LanesOf<Float16> : std::type_identity<Float16Lanes> {};
template <>
struct LanesOf<BFloat16> : std::type_identity<BFloat16Lanes> {};

struct Isa {
  template <class Storage>
  using Lanes = typename LanesOf<Storage>::type;
};

}  // namespace ropewalk::cpu::avx2
