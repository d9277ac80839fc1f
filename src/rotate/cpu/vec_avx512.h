// AVX-512 (F, BW, DQ, VL) lanes: 16 floats, 8 doubles. 16-bit data: vec_avx512_words.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <limits>

#include "phase/sincos.h"

#define ROPEWALK_LANES static inline __attribute__((always_inline))

namespace ropewalk::cpu::avx512 {

ROPEWALK_LANES std::uint64_t first_bits(std::int64_t n) {
  return n <= 0 ? 0 : n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}

// Lane numbers that take the even or odd elements of two registers, and that zip two registers.
ROPEWALK_LANES __m512i even_lanes32() {
  return _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
ROPEWALK_LANES __m512i odd_lanes32() {
  return _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
ROPEWALK_LANES __m512i zip_low32() {
  return _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
ROPEWALK_LANES __m512i zip_high32() {
  return _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// ---- float32 ----------------------------------------------------------------------------------
struct Float32 {
  using Storage = float;
  using Compute = float;
  using Real = __m512;
  using Quadrant = __m512i;
  static constexpr std::int64_t kLanes = 16;
  static constexpr int kAngleChunks = 8;

  ROPEWALK_LANES __mmask16 mask(std::int64_t n) { return static_cast<__mmask16>(first_bits(n)); }
  ROPEWALK_LANES Real load(const float* p) { return _mm512_loadu_ps(p); }
  ROPEWALK_LANES Real load_part(const float* p, std::int64_t n) {
    return _mm512_maskz_loadu_ps(mask(n), p);
  }
  ROPEWALK_LANES void store(float* p, Real x) { _mm512_storeu_ps(p, x); }
  ROPEWALK_LANES void store_part(float* p, std::int64_t n, Real x) {
    _mm512_mask_storeu_ps(p, mask(n), x);
  }
  ROPEWALK_LANES void stream(float* p, Real x) { _mm512_stream_ps(p, x); }
  ROPEWALK_LANES void split(Real a, Real b, Real& x0, Real& x1) {
    x0 = _mm512_permutex2var_ps(a, even_lanes32(), b);
    x1 = _mm512_permutex2var_ps(a, odd_lanes32(), b);
  }
  ROPEWALK_LANES void join(Real y0, Real y1, Real& a, Real& b) {
    a = _mm512_permutex2var_ps(y0, zip_low32(), y1);
    b = _mm512_permutex2var_ps(y0, zip_high32(), y1);
  }
  ROPEWALK_LANES void load_pairs(const float* p, Real& x0, Real& x1) {
    split(load(p), load(p + 16), x0, x1);
  }
  ROPEWALK_LANES void load_pairs_part(const float* p, std::int64_t n, Real& x0, Real& x1) {
    split(load_part(p, 2 * n), load_part(p + 16, 2 * n - 16), x0, x1);
  }
  ROPEWALK_LANES void store_pairs(float* p, Real y0, Real y1) {
    Real a, b;
    join(y0, y1, a, b);
    store(p, a);
    store(p + 16, b);
  }
  ROPEWALK_LANES void store_pairs_part(float* p, std::int64_t n, Real y0, Real y1) {
    Real a, b;
    join(y0, y1, a, b);
    store_part(p, 2 * n, a);
    store_part(p + 16, 2 * n - 16, b);
  }
  ROPEWALK_LANES void stream_pairs(float* p, Real y0, Real y1) {
    Real a, b;
    join(y0, y1, a, b);
    stream(p, a);
    stream(p + 16, b);
  }
  ROPEWALK_LANES void fence() { _mm_sfence(); }

  ROPEWALK_LANES Real load_real(const float* p) { return _mm512_loadu_ps(p); }
  ROPEWALK_LANES void store_real(float* p, Real x) { _mm512_storeu_ps(p, x); }
  ROPEWALK_LANES Real set(float x) { return _mm512_set1_ps(x); }
  ROPEWALK_LANES Real add(Real a, Real b) { return _mm512_add_ps(a, b); }
  ROPEWALK_LANES Real sub(Real a, Real b) { return _mm512_sub_ps(a, b); }
  ROPEWALK_LANES Real mul(Real a, Real b) { return _mm512_mul_ps(a, b); }
  ROPEWALK_LANES Real fma(Real a, Real b, Real c) { return _mm512_fmadd_ps(a, b, c); }
  ROPEWALK_LANES Real fms(Real a, Real b, Real c) { return _mm512_fmsub_ps(a, b, c); }

  ROPEWALK_LANES void split_phase(const std::uint64_t* phase, Real& t, Quadrant& q) {
    split_phases(_mm512_loadu_si512(phase), _mm512_loadu_si512(phase + 8), t, q);
  }
  /// The phases of one position, without a way through memory.
  ROPEWALK_LANES void split_product(std::int64_t position, const std::uint64_t* fractions, Real& t,
                                    Quadrant& q) {
    const __m512i p = _mm512_set1_epi64(position);
    split_phases(_mm512_mullo_epi64(p, _mm512_loadu_si512(fractions)),
                 _mm512_mullo_epi64(p, _mm512_loadu_si512(fractions + 8)), t, q);
  }
  /// The quadrant stays in the top two bits of its lane, where signs are.
  ROPEWALK_LANES void split_phases(__m512i a, __m512i b, Real& t, Quadrant& q) {
    const __m512i eighth = _mm512_set1_epi64(std::int64_t{1} << 61);
    const __m512i r = _mm512_permutex2var_epi32(_mm512_srli_epi64(a, 30), even_lanes32(),
                                                _mm512_srli_epi64(b, 30));
    q = _mm512_permutex2var_epi32(_mm512_add_epi64(a, eighth), odd_lanes32(),
                                  _mm512_add_epi64(b, eighth));
    t = mul(_mm512_cvtepi32_ps(r), set(kHalfTurns32));
  }
  /// The sine is negative where the upper bit is set, the cosine where the two bits differ.
  ROPEWALK_LANES void by_quadrant(Quadrant q, Real cosine, Real sine, Real& c, Real& s) {
    const __mmask16 swap = _mm512_test_epi32_mask(q, _mm512_set1_epi32(1 << 30));
    const __m512i differ = _mm512_xor_si512(q, _mm512_add_epi32(q, q));
    const auto with_sign = [](__m512 x, __m512i sign) {
      constexpr int kXorAnd = 0x78;  // first ^ (second & third)
      return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
          _mm512_castps_si512(x), sign, _mm512_set1_epi32(std::numeric_limits<std::int32_t>::min()),
          kXorAnd));
    };
    s = with_sign(_mm512_mask_blend_ps(swap, sine, cosine), q);
    c = with_sign(_mm512_mask_blend_ps(swap, cosine, sine), differ);
  }
};

// ---- float64 ----------------------------------------------------------------------------------
struct Float64 {
  using Storage = double;
  using Compute = double;
  using Real = __m512d;
  using Quadrant = __m512i;
  static constexpr std::int64_t kLanes = 8;
  static constexpr int kAngleChunks = 8;

  ROPEWALK_LANES __mmask8 mask(std::int64_t n) { return static_cast<__mmask8>(first_bits(n)); }
  ROPEWALK_LANES Real load(const double* p) { return _mm512_loadu_pd(p); }
  ROPEWALK_LANES Real load_part(const double* p, std::int64_t n) {
    return _mm512_maskz_loadu_pd(mask(n), p);
  }
  ROPEWALK_LANES void store(double* p, Real x) { _mm512_storeu_pd(p, x); }
  ROPEWALK_LANES void store_part(double* p, std::int64_t n, Real x) {
    _mm512_mask_storeu_pd(p, mask(n), x);
  }
  ROPEWALK_LANES void stream(double* p, Real x) { _mm512_stream_pd(p, x); }
  ROPEWALK_LANES void split(Real a, Real b, Real& x0, Real& x1) {
    x0 = _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b);
    x1 = _mm512_permutex2var_pd(a, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), b);
  }
  ROPEWALK_LANES void join(Real y0, Real y1, Real& a, Real& b) {
    a = _mm512_permutex2var_pd(y0, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), y1);
    b = _mm512_permutex2var_pd(y0, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), y1);
  }
  ROPEWALK_LANES void load_pairs(const double* p, Real& x0, Real& x1) {
    split(load(p), load(p + 8), x0, x1);
  }
  ROPEWALK_LANES void load_pairs_part(const double* p, std::int64_t n, Real& x0, Real& x1) {
    split(load_part(p, 2 * n), load_part(p + 8, 2 * n - 8), x0, x1);
  }
  ROPEWALK_LANES void store_pairs(double* p, Real y0, Real y1) {
    Real a, b;
    join(y0, y1, a, b);
    store(p, a);
    store(p + 8, b);
  }
  ROPEWALK_LANES void store_pairs_part(double* p, std::int64_t n, Real y0, Real y1) {
    Real a, b;
    join(y0, y1, a, b);
    store_part(p, 2 * n, a);
    store_part(p + 8, 2 * n - 8, b);
  }
  ROPEWALK_LANES void stream_pairs(double* p, Real y0, Real y1) {
    Real a, b;
    join(y0, y1, a, b);
    stream(p, a);
    stream(p + 8, b);
  }

  ROPEWALK_LANES Real load_real(const double* p) { return _mm512_loadu_pd(p); }
  ROPEWALK_LANES void store_real(double* p, Real x) { _mm512_storeu_pd(p, x); }
  ROPEWALK_LANES Real set(double x) { return _mm512_set1_pd(x); }
  ROPEWALK_LANES Real add(Real a, Real b) { return _mm512_add_pd(a, b); }
  ROPEWALK_LANES Real sub(Real a, Real b) { return _mm512_sub_pd(a, b); }
  ROPEWALK_LANES Real mul(Real a, Real b) { return _mm512_mul_pd(a, b); }
  ROPEWALK_LANES Real fma(Real a, Real b, Real c) { return _mm512_fmadd_pd(a, b, c); }
  ROPEWALK_LANES Real fms(Real a, Real b, Real c) { return _mm512_fmsub_pd(a, b, c); }

  ROPEWALK_LANES void split_phase(const std::uint64_t* phase, Real& t, Quadrant& q) {
    const __m512i p = _mm512_loadu_si512(phase);
    q = _mm512_srli_epi64(_mm512_add_epi64(p, _mm512_set1_epi64(std::int64_t{1} << 61)), 62);
    t = mul(_mm512_cvtepi64_pd(_mm512_slli_epi64(p, 2)), set(kHalfTurns64));
  }
  ROPEWALK_LANES void by_quadrant(Quadrant q, Real cosine, Real sine, Real& c, Real& s) {
    const __m512i two = _mm512_set1_epi64(2);
    const __mmask8 swap = _mm512_test_epi64_mask(q, _mm512_set1_epi64(1));
    const __m512i next = _mm512_add_epi64(q, _mm512_set1_epi64(1));
    const __m512d sine_sign = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_and_si512(q, two), 62));
    const __m512d cosine_sign =
        _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_and_si512(next, two), 62));
    s = _mm512_xor_pd(_mm512_mask_blend_pd(swap, sine, cosine), sine_sign);
    c = _mm512_xor_pd(_mm512_mask_blend_pd(swap, cosine, sine), cosine_sign);
  }
};

}  // namespace ropewalk::cpu::avx512
