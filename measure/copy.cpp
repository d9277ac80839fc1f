#include "measure/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/cpu_features.h"
#include "base/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define ROPEWALK_TARGET(isa) __attribute__((target(isa)))
#endif

namespace ropewalk::measure {
namespace {

// Work is split in blocks, so that every block starts on a cache line.
constexpr std::size_t kBlock = 4096;
[[maybe_unused]] constexpr std::size_t kAhead = 4096;
// As rotate splits its work: waking a thread for less costs more than it brings.
constexpr std::int64_t kGrainBlocks = 64;

using CopyBody = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);
using PassBody = void (*)(std::byte* data, std::size_t bytes);

void copy_memcpy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void flip_words(std::byte* data, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, data + at, 8);
    word = ~word;
    std::memcpy(data + at, &word, 8);
  }
  for (; at < bytes; ++at) data[at] = ~data[at];
}

#if defined(__x86_64__)

// The tail of a buffer that is not a whole number of vectors goes through memcpy.
ROPEWALK_TARGET("avx2")
void copy_avx2(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at + 32));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + at), a);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + at + 32), b);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

template <bool kPrefetch>
ROPEWALK_TARGET("avx2")
void stream_avx2(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at + 32));
    if constexpr (kPrefetch) __builtin_prefetch(from + at + kAhead);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + 32), b);
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();
}

template <bool kPrefetch>
ROPEWALK_TARGET("avx2")
void flip_avx2(std::byte* data, std::size_t bytes) {
  const __m256i ones = _mm256_set1_epi32(-1);
  std::size_t at = 0;
  for (; at + 32 <= bytes; at += 32) {
    auto* vector = reinterpret_cast<__m256i*>(data + at);
    if constexpr (kPrefetch) __builtin_prefetch(data + at + kAhead);
    _mm256_store_si256(vector, _mm256_xor_si256(_mm256_load_si256(vector), ones));
  }
  flip_words(data + at, bytes - at);
}

ROPEWALK_TARGET("avx512f")
void copy_avx512(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    _mm512_store_si512(to + at, _mm512_load_si512(from + at));
  }
  std::memcpy(to + at, from + at, bytes - at);
}

template <bool kPrefetch>
ROPEWALK_TARGET("avx512f")
void stream_avx512(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    if constexpr (kPrefetch) __builtin_prefetch(from + at + kAhead);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_load_si512(from + at));
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();
}

template <bool kPrefetch>
ROPEWALK_TARGET("avx512f")
void flip_avx512(std::byte* data, std::size_t bytes) {
  const __m512i ones = _mm512_set1_epi32(-1);
  std::size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    if constexpr (kPrefetch) __builtin_prefetch(data + at + kAhead);
    _mm512_store_si512(data + at, _mm512_xor_si512(_mm512_load_si512(data + at), ones));
  }
  flip_words(data + at, bytes - at);
}

CopyBody ordinary_copy() {
  return cpu_features().avx512 ? copy_avx512
                               : (cpu_features().avx2_fma_f16c ? copy_avx2 : copy_memcpy);
}
template <bool kPrefetch>
CopyBody streaming_copy() {
  return cpu_features().avx512 ? stream_avx512<kPrefetch> : stream_avx2<kPrefetch>;
}
template <bool kPrefetch>
PassBody flip() {
  return cpu_features().avx512 ? flip_avx512<kPrefetch>
                               : (cpu_features().avx2_fma_f16c ? flip_avx2<kPrefetch> : flip_words);
}

#else

/// Elsewhere the compiler vectorises these for the baseline.
void copy_words(std::byte* __restrict to, const std::byte* __restrict from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; ++at) to[at] = from[at];
}
CopyBody ordinary_copy() { return copy_words; }
template <bool>
CopyBody streaming_copy() {
  return copy_words;
}
template <bool>
PassBody flip() {
  return flip_words;
}

#endif

template <class Body>
void over_blocks(std::size_t bytes, int threads, const Body& body) {
  const auto blocks = static_cast<std::int64_t>((bytes + kBlock - 1) / kBlock);
  parallel_for(blocks, kGrainBlocks, threads, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t from = static_cast<std::size_t>(begin) * kBlock;
    const std::size_t to = std::min(bytes, static_cast<std::size_t>(end) * kBlock);
    body(from, to - from);
  });
}

}  // namespace

std::string_view name_of(CopyKind kind) noexcept {
  switch (kind) {
    case CopyKind::memcpy: return "memcpy";
    case CopyKind::ordinary: return "ordinary stores";
    case CopyKind::streaming: return "streaming stores";
    case CopyKind::streaming_prefetch: return "streaming stores, prefetch";
  }
  return "";
}

std::string_view name_of(PassKind kind) noexcept {
  return kind == PassKind::plain ? "read-modify-write" : "read-modify-write, prefetch";
}

std::span<const CopyKind> copy_kinds() noexcept {
  static constexpr CopyKind kKinds[] = {CopyKind::memcpy, CopyKind::ordinary, CopyKind::streaming,
                                        CopyKind::streaming_prefetch};
#if defined(__x86_64__)
  const std::size_t known = cpu_features().avx2_fma_f16c ? 4 : 2;
#else
  const std::size_t known = 2;
#endif
  return std::span(kKinds).first(known);
}

std::span<const PassKind> pass_kinds() noexcept {
  static constexpr PassKind kKinds[] = {PassKind::plain, PassKind::prefetch};
#if defined(__x86_64__)
  return std::span(kKinds).first(cpu_features().avx2_fma_f16c ? 2 : 1);
#else
  return std::span(kKinds).first(1);
#endif
}

void copy(CopyKind kind, std::byte* to, const std::byte* from, std::size_t bytes, int threads) {
  const CopyBody body = kind == CopyKind::memcpy      ? copy_memcpy
                        : kind == CopyKind::ordinary  ? ordinary_copy()
                        : kind == CopyKind::streaming ? streaming_copy<false>()
                                                      : streaming_copy<true>();
  over_blocks(bytes, threads, [&](std::size_t offset, std::size_t length) {
    body(to + offset, from + offset, length);
  });
}

void read_modify_write(PassKind kind, std::byte* data, std::size_t bytes, int threads) {
  const PassBody body = kind == PassKind::plain ? flip<false>() : flip<true>();
  over_blocks(bytes, threads,
              [&](std::size_t offset, std::size_t length) { body(data + offset, length); });
}

}  // namespace ropewalk::measure
