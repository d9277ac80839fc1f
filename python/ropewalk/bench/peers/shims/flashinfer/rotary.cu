// FlashInfer's header-only launchers behind a C function: its kernels and its launch.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <flashinfer/pos_enc.cuh>

namespace {

struct Sizes {
  uint32_t tokens, q_heads, k_heads, head_dim;
};

template <typename T>
cudaError_t rotate(void* q, void* k, void* q_out, void* k_out, float* table, void* positions,
                   const Sizes& s, bool interleave, float base, cudaStream_t stream) {
  const size_t head = s.head_dim, q_row = head * s.q_heads, k_row = head * s.k_heads;
  auto* const q_in = static_cast<T*>(q);
  auto* const k_in = static_cast<T*>(k);
  auto* const q_to = static_cast<T*>(q_out);
  auto* const k_to = static_cast<T*>(k_out);
  if (table != nullptr) {
    return flashinfer::BatchQKApplyRotaryPosIdsCosSinCache(
        q_in, k_in, q_to, k_to, table, static_cast<int64_t*>(positions), s.tokens, s.q_heads,
        s.k_heads, s.head_dim, s.head_dim, q_row, head, k_row, head, q_row, head, k_row, head,
        interleave, stream);
  }
  return flashinfer::BatchQKApplyRotaryPosIds(
      q_in, k_in, q_to, k_to, static_cast<int32_t*>(positions), s.tokens, s.q_heads, s.k_heads,
      s.head_dim, s.head_dim, q_row, head, k_row, head, q_row, head, k_row, head, interleave, 1.0f,
      base, stream);
}

}  // namespace

/// Rotates contiguous (tokens, heads, head_dim). `sizes`: tokens, q heads, k heads, head_dim. With
/// a table (rows, head_dim: cosines, then sines) positions are int64, without one int32.
extern "C" int shim_flashinfer(void* q, void* k, void* q_out, void* k_out, void* table,
                               void* positions, const uint32_t* sizes, int is_bfloat16,
                               int interleave, float base, void* stream) {
  const Sizes s{sizes[0], sizes[1], sizes[2], sizes[3]};
  const auto rotation = is_bfloat16 != 0 ? rotate<__nv_bfloat16> : rotate<__half>;
  try {
    return rotation(q, k, q_out, k_out, static_cast<float*>(table), positions, s, interleave != 0,
                    base, static_cast<cudaStream_t>(stream));
  } catch (const std::exception&) {
    return -1;
  }
}
