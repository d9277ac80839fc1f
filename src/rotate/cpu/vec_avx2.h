// AVX2 + FMA lanes: 8 floats, 4 doubles. 16-bit data: vec_avx2_words.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "phase/sincos.h"

#define ROPEWALK_LANES static inline __attribute__((always_inline))

namespace ropewalk::cpu::avx2 {

/// Part rows go through a buffer, so that nothing beyond the row is touched.
template <class L>
struct Parts {
  template <class Storage, class Real>
  ROPEWALK_LANES Real load(const Storage* p, std::int64_t n) {
    alignas(64) Storage buffer[L::kLanes] = {};
    __builtin_memcpy(buffer, p, static_cast<std::size_t>(n) * sizeof(Storage));
    return L::load(buffer);
  }
  template <class Storage, class Real>
  ROPEWALK_LANES void store(Storage* p, std::int64_t n, Real x) {
    alignas(64) Storage buffer[L::kLanes];
    L::store(buffer, x);
    __builtin_memcpy(p, buffer, static_cast<std::size_t>(n) * sizeof(Storage));
  }
  template <class Storage, class Real>
  ROPEWALK_LANES void load_pairs(const Storage* p, std::int64_t n, Real& x0, Real& x1) {
    alignas(64) Storage buffer[2 * L::kLanes] = {};
    __builtin_memcpy(buffer, p, 2 * static_cast<std::size_t>(n) * sizeof(Storage));
    L::load_pairs(buffer, x0, x1);
  }
  template <class Storage, class Real>
  ROPEWALK_LANES void store_pairs(Storage* p, std::int64_t n, Real y0, Real y1) {
    alignas(64) Storage buffer[2 * L::kLanes];
    L::store_pairs(buffer, y0, y1);
    __builtin_memcpy(p, buffer, 2 * static_cast<std::size_t>(n) * sizeof(Storage));
  }
};

/// What all lanes share: partial rows and the fence after streaming stores.
template <class L, class Storage, class Real>
struct Common {
  ROPEWALK_LANES Real load_part(const Storage* p, std::int64_t n) {
    return Parts<L>::template load<Storage, Real>(p, n);
  }
  ROPEWALK_LANES void store_part(Storage* p, std::int64_t n, Real x) { Parts<L>::store(p, n, x); }
  ROPEWALK_LANES void load_pairs_part(const Storage* p, std::int64_t n, Real& x0, Real& x1) {
    Parts<L>::load_pairs(p, n, x0, x1);
  }
  ROPEWALK_LANES void store_pairs_part(Storage* p, std::int64_t n, Real y0, Real y1) {
    Parts<L>::store_pairs(p, n, y0, y1);
  }
  ROPEWALK_LANES void fence() { _mm_sfence(); }
};

// ---- float32 ----------------------------------------------------------------------------------
ROPEWALK_LANES void split_pairs(__m256 a, __m256 b, __m256& even, __m256& odd) {
  const auto sorted = [](__m256 x) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
  };
  even = sorted(_mm256_shuffle_ps(a, b, 0x88));
  odd = sorted(_mm256_shuffle_ps(a, b, 0xdd));
}
ROPEWALK_LANES void join_pairs(__m256 even, __m256 odd, __m256& a, __m256& b) {
  const __m256 low = _mm256_unpacklo_ps(even, odd);
  const __m256 high = _mm256_unpackhi_ps(even, odd);
  a = _mm256_permute2f128_ps(low, high, 0x20);
  b = _mm256_permute2f128_ps(low, high, 0x31);
}

struct Float32 : Common<Float32, float, __m256> {
  using Storage = float;
  using Compute = float;
  using Real = __m256;
  using Quadrant = __m256i;
  static constexpr std::int64_t kLanes = 8;
  static constexpr int kAngleChunks = 4;

  ROPEWALK_LANES Real load(const float* p) { return _mm256_loadu_ps(p); }
  ROPEWALK_LANES void store(float* p, Real x) { _mm256_storeu_ps(p, x); }
  ROPEWALK_LANES void stream(float* p, Real x) { _mm256_stream_ps(p, x); }
  ROPEWALK_LANES void load_pairs(const float* p, Real& x0, Real& x1) {
    split_pairs(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), x0, x1);
  }
  ROPEWALK_LANES void store_pairs(float* p, Real y0, Real y1) {
    __m256 a, b;
    join_pairs(y0, y1, a, b);
    store(p, a);
    store(p + 8, b);
  }
  ROPEWALK_LANES void stream_pairs(float* p, Real y0, Real y1) {
    __m256 a, b;
    join_pairs(y0, y1, a, b);
    stream(p, a);
    stream(p + 8, b);
  }

  ROPEWALK_LANES Real load_real(const float* p) { return _mm256_loadu_ps(p); }
  ROPEWALK_LANES void store_real(float* p, Real x) { _mm256_storeu_ps(p, x); }
  ROPEWALK_LANES Real set(float x) { return _mm256_set1_ps(x); }
  ROPEWALK_LANES Real add(Real a, Real b) { return _mm256_add_ps(a, b); }
  ROPEWALK_LANES Real sub(Real a, Real b) { return _mm256_sub_ps(a, b); }
  ROPEWALK_LANES Real mul(Real a, Real b) { return _mm256_mul_ps(a, b); }
  ROPEWALK_LANES Real fma(Real a, Real b, Real c) { return _mm256_fmadd_ps(a, b, c); }
  ROPEWALK_LANES Real fms(Real a, Real b, Real c) { return _mm256_fmsub_ps(a, b, c); }

  ROPEWALK_LANES void split_phase(const std::uint64_t* phase, Real& t, Quadrant& q) {
    const auto load = [&](int i) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(phase + i));
    };
    const auto low_words = [](__m256i a, __m256i b) {
      const __m256 words = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);
      return _mm256_permute4x64_epi64(_mm256_castps_si256(words), 0xd8);
    };
    const __m256i a = load(0), b = load(4);
    const __m256i eighth = _mm256_set1_epi64x(std::int64_t{1} << 61);
    const __m256i r = low_words(_mm256_srli_epi64(a, 30), _mm256_srli_epi64(b, 30));
    q = low_words(_mm256_srli_epi64(_mm256_add_epi64(a, eighth), 62),
                  _mm256_srli_epi64(_mm256_add_epi64(b, eighth), 62));
    t = mul(_mm256_cvtepi32_ps(r), set(kHalfTurns32));
  }
  ROPEWALK_LANES void by_quadrant(Quadrant q, Real cosine, Real sine, Real& c, Real& s) {
    const __m256 swap = _mm256_castsi256_ps(_mm256_slli_epi32(q, 31));
    const __m256i two = _mm256_set1_epi32(2);
    const __m256i next = _mm256_add_epi32(q, _mm256_set1_epi32(1));
    const __m256 sine_sign = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_and_si256(q, two), 30));
    const __m256 cosine_sign =
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_and_si256(next, two), 30));
    s = _mm256_xor_ps(_mm256_blendv_ps(sine, cosine, swap), sine_sign);
    c = _mm256_xor_ps(_mm256_blendv_ps(cosine, sine, swap), cosine_sign);
  }
};

// ---- float64 ----------------------------------------------------------------------------------
struct Float64 : Common<Float64, double, __m256d> {
  using Storage = double;
  using Compute = double;
  using Real = __m256d;
  using Quadrant = __m256i;
  static constexpr std::int64_t kLanes = 4;
  static constexpr int kAngleChunks = 4;

  ROPEWALK_LANES Real load(const double* p) { return _mm256_loadu_pd(p); }
  ROPEWALK_LANES void store(double* p, Real x) { _mm256_storeu_pd(p, x); }
  ROPEWALK_LANES void stream(double* p, Real x) { _mm256_stream_pd(p, x); }
  ROPEWALK_LANES void load_pairs(const double* p, Real& x0, Real& x1) {
    const __m256d a = _mm256_loadu_pd(p), b = _mm256_loadu_pd(p + 4);
    x0 = _mm256_permute4x64_pd(_mm256_unpacklo_pd(a, b), 0xd8);
    x1 = _mm256_permute4x64_pd(_mm256_unpackhi_pd(a, b), 0xd8);
  }
  ROPEWALK_LANES void join(Real y0, Real y1, Real& a, Real& b) {
    const __m256d low = _mm256_unpacklo_pd(y0, y1), high = _mm256_unpackhi_pd(y0, y1);
    a = _mm256_permute2f128_pd(low, high, 0x20);
    b = _mm256_permute2f128_pd(low, high, 0x31);
  }
  ROPEWALK_LANES void store_pairs(double* p, Real y0, Real y1) {
    __m256d a, b;
    join(y0, y1, a, b);
    store(p, a);
    store(p + 4, b);
  }
  ROPEWALK_LANES void stream_pairs(double* p, Real y0, Real y1) {
    __m256d a, b;
    join(y0, y1, a, b);
    stream(p, a);
    stream(p + 4, b);
  }

  ROPEWALK_LANES Real load_real(const double* p) { return _mm256_loadu_pd(p); }
  ROPEWALK_LANES void store_real(double* p, Real x) { _mm256_storeu_pd(p, x); }
  ROPEWALK_LANES Real set(double x) { return _mm256_set1_pd(x); }
  ROPEWALK_LANES Real add(Real a, Real b) { return _mm256_add_pd(a, b); }
  ROPEWALK_LANES Real sub(Real a, Real b) { return _mm256_sub_pd(a, b); }
  ROPEWALK_LANES Real mul(Real a, Real b) { return _mm256_mul_pd(a, b); }
  ROPEWALK_LANES Real fma(Real a, Real b, Real c) { return _mm256_fmadd_pd(a, b, c); }
  ROPEWALK_LANES Real fms(Real a, Real b, Real c) { return _mm256_fmsub_pd(a, b, c); }

  ROPEWALK_LANES void split_phase(const std::uint64_t* phase, Real& t, Quadrant& q) {
    const __m256i p = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(phase));
    q = _mm256_srli_epi64(_mm256_add_epi64(p, _mm256_set1_epi64x(std::int64_t{1} << 61)), 62);
    // Signed 64-bit to double with one rounding: the high word (signed, exact) plus the low word
    // (unsigned, exact), each placed by the exponent of a constant; the constants, 2^84 + 2^63 and
    // 2^52, are taken off again in one exact difference.
    const __m256i r = _mm256_slli_epi64(p, 2);
    const __m256i flipped =
        _mm256_xor_si256(_mm256_srli_epi64(r, 32), _mm256_set1_epi64x(0x4530000080000000));
    const __m256i low = _mm256_blend_epi32(r, _mm256_set1_epi64x(0x4330000000000000), 0xaa);
    const __m256d high = _mm256_sub_pd(_mm256_castsi256_pd(flipped), set(0x1.00000801p84));
    t = mul(add(high, _mm256_castsi256_pd(low)), set(kHalfTurns64));
  }
  ROPEWALK_LANES void by_quadrant(Quadrant q, Real cosine, Real sine, Real& c, Real& s) {
    const __m256d swap = _mm256_castsi256_pd(_mm256_slli_epi64(q, 63));
    const __m256i two = _mm256_set1_epi64x(2);
    const __m256i next = _mm256_add_epi64(q, _mm256_set1_epi64x(1));
    const __m256d sine_sign = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_and_si256(q, two), 62));
    const __m256d cosine_sign =
        _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_and_si256(next, two), 62));
    s = _mm256_xor_pd(_mm256_blendv_pd(sine, cosine, swap), sine_sign);
    c = _mm256_xor_pd(_mm256_blendv_pd(cosine, sine, swap), cosine_sign);
  }
};

}  // namespace ropewalk::cpu::avx2
