// vLLM's rotary_embedding behind a C function: its kernels and its launch, our tensors.
#include "pos_encoding_kernels.cu"

namespace {

torch::stable::Tensor tensor(void* data, int dtype, int64_t dims, const int64_t* shape) {
  return {data, static_cast<torch::stable::Dtype>(dtype), dims, shape, shape + dims};
}

}  // namespace

/// Rotates q and k in place. `*_shape`: sizes, then strides, of (tokens, heads, head_dim).
/// dtype: 0 float32, 1 float16, 2 bfloat16. 0, or 1 where vLLM refuses the arguments.
extern "C" int shim_rotary_embedding(void* positions, int64_t tokens, void* q,
                                     const int64_t* q_shape, void* k, const int64_t* k_shape,
                                     int dtype, void* cache, int cache_dtype,
                                     const int64_t* cache_shape, int64_t head_size, int is_neox,
                                     void* stream) {
  shim_stream = static_cast<cudaStream_t>(stream);
  const int64_t positions_shape[2] = {tokens, 1};
  auto position_tensor = tensor(positions, 0, 1, positions_shape);
  auto q_tensor = tensor(q, dtype, 3, q_shape);
  auto cache_tensor = tensor(cache, cache_dtype, 2, cache_shape);
  try {
    rotary_embedding(position_tensor, q_tensor, tensor(k, dtype, 3, k_shape), head_size,
                     cache_tensor, is_neox != 0, 0, false);
  } catch (const std::exception&) {
    return 1;
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
