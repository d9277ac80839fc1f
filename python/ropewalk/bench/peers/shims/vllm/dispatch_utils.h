// Stands in for vLLM's dispatch macros.
#pragma once

#include "torch_utils.h"

#define VLLM_STABLE_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  switch (TYPE) {                                            \
    case torch::stable::Dtype::float32: {                    \
      using scalar_t = float;                                \
      __VA_ARGS__();                                         \
      break;                                                 \
    }                                                        \
    case torch::stable::Dtype::float16: {                    \
      using scalar_t = __half;                               \
      __VA_ARGS__();                                         \
      break;                                                 \
    }                                                        \
    case torch::stable::Dtype::bfloat16: {                   \
      using scalar_t = __nv_bfloat16;                        \
      __VA_ARGS__();                                         \
      break;                                                 \
    }                                                        \
  }
