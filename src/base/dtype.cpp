#include <array>
#include <utility>

#include "base/check.h"
#include "ropewalk/types.h"

namespace ropewalk {

std::string_view name_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::float64: return "float64";
    case Dtype::float32: return "float32";
    case Dtype::float16: return "float16";
    case Dtype::bfloat16: return "bfloat16";
  }
  return "unknown";
}

Dtype dtype_from_name(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Dtype>, 18> kNames{
      {{"float64", Dtype::float64},
       {"fp64", Dtype::float64},
       {"f64", Dtype::float64},
       {"F64", Dtype::float64},
       {"double", Dtype::float64},
       {"float32", Dtype::float32},
       {"fp32", Dtype::float32},
       {"f32", Dtype::float32},
       {"F32", Dtype::float32},
       {"float", Dtype::float32},
       {"float16", Dtype::float16},
       {"fp16", Dtype::float16},
       {"f16", Dtype::float16},
       {"F16", Dtype::float16},
       {"half", Dtype::float16},
       {"bfloat16", Dtype::bfloat16},
       {"bf16", Dtype::bfloat16},
       {"BF16", Dtype::bfloat16}}};
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  fail(ErrorCode::invalid_argument,
       "dtype: expected float64, float32, float16 or bfloat16, got \"{}\"", name);
}

TensorView bthd(void* data, Dtype dtype, std::int64_t batch, std::int64_t tokens,
                std::int64_t heads, std::int64_t head_dim) noexcept {
  return {data,
          dtype,
          {batch, tokens, heads, head_dim},
          {tokens * heads * head_dim, heads * head_dim, head_dim, 1}};
}

TensorView bhtd(void* data, Dtype dtype, std::int64_t batch, std::int64_t tokens,
                std::int64_t heads, std::int64_t head_dim) noexcept {
  return {data,
          dtype,
          {batch, tokens, heads, head_dim},
          {heads * tokens * head_dim, head_dim, tokens * head_dim, 1}};
}

}  // namespace ropewalk
