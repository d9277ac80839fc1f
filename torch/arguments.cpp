#include "arguments.h"

#include <fmt/format.h>

#include "ropewalk/error.h"

namespace ropewalk::torch_ops {
namespace {

using ScalarType = TensorArgument::ScalarType;

template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) {
    throw Error(ErrorCode::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
  }
}

void require_device(const TensorArgument& tensor, const TensorArgument& q, const char* name) {
  require(tensor.is_on_device_of(q), "{}: expected a tensor on the device of q", name);
}

Positions::Type integer_type(const TensorArgument& tensor, const char* name) {
  switch (tensor.scalar_type()) {
    case ScalarType::Int: return Positions::Type::int32;
    case ScalarType::Long: return Positions::Type::int64;
    default: break;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected int32 or int64", name));
}

Positions::Type position_type(const TensorArgument& positions, bool fractional) {
  const ScalarType type = positions.scalar_type();
  const bool is_float = type == ScalarType::Float || type == ScalarType::Double;
  if (fractional) {
    require(is_float, "positions: fractional=True expects float32 or float64");
    return type == ScalarType::Float ? Positions::Type::float32 : Positions::Type::float64;
  }
  require(type == ScalarType::Int || type == ScalarType::Long,
          "positions: expected int32 or int64 (float32 and float64 with fractional=True)");
  return integer_type(positions, "positions");
}

/// (token), (batch, token) or (axes, batch, token); a batch of one is broadcast.
Positions per_token(const TensorArgument& tensor, bool fractional, const ConstTensorView& view) {
  const std::int64_t dims = tensor.dim();
  require(dims >= 1 && dims <= 3,
          "positions: expected (token), (batch, token) or (axes, batch, token), got {} dimensions",
          dims);
  Positions positions;
  positions.kind = Positions::Kind::per_token;
  positions.type = position_type(tensor, fractional);
  positions.data = tensor.data();
  positions.count = tensor.size(dims - 1);
  positions.token_stride = tensor.stride(dims - 1);
  require(positions.count == view.size[kToken], "positions: expected one per token ({}), got {}",
          view.size[kToken], positions.count);
  if (dims >= 2) {
    const std::int64_t batch = tensor.size(dims - 2);
    require(batch == 1 || batch == view.size[kBatch],
            "positions: expected 1 or {} batch rows, got {}", view.size[kBatch], batch);
    positions.batch_stride = batch == 1 ? 0 : tensor.stride(dims - 2);
  }
  if (dims == 3) {
    positions.axes = tensor.size(0);
    positions.axis_stride = tensor.stride(0);
  }
  return positions;
}

Positions per_batch(const TensorArgument& starts) {
  require(starts.dim() == 1, "starts: expected one dimension, got {}", starts.dim());
  Positions positions;
  positions.kind = Positions::Kind::per_batch;
  positions.type = integer_type(starts, "starts");
  positions.data = starts.data();
  positions.count = starts.size(0);
  positions.batch_stride = starts.stride(0);
  return positions;
}

Positions packed(const TensorArgument& cu_seqlens, const OptionalTensor& starts) {
  require(cu_seqlens.dim() == 1 && cu_seqlens.size(0) >= 1 &&
              (cu_seqlens.size(0) == 1 || cu_seqlens.stride(0) == 1),
          "cu_seqlens: expected one contiguous dimension of at least one entry");
  Positions positions;
  positions.kind = Positions::Kind::packed;
  positions.cu_seqlens = cu_seqlens.data();
  positions.cu_type = integer_type(cu_seqlens, "cu_seqlens");
  positions.sequences = cu_seqlens.size(0) - 1;
  if (starts.has_value()) {
    require(starts->dim() == 1 && starts->size(0) == positions.sequences &&
                (starts->size(0) <= 1 || starts->stride(0) == 1),
            "starts: expected one per sequence of cu_seqlens ({}), contiguous",
            positions.sequences);
    positions.type = integer_type(*starts, "starts");
    positions.data = starts->data();
    positions.count = positions.sequences;
  }
  return positions;
}

Dtype dtype_of(const TensorArgument& tensor, const char* name) {
  switch (tensor.scalar_type()) {
    case ScalarType::Double: return Dtype::float64;
    case ScalarType::Float: return Dtype::float32;
    case ScalarType::Half: return Dtype::float16;
    case ScalarType::BFloat16: return Dtype::bfloat16;
    default: break;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected float64, float32, float16 or bfloat16", name));
}

/// Three dimensions (no batch) or four; `token_dim` is −2 (heads before tokens) or −3. `data` is
/// the tensor's.
template <class View, class Data>
View view_of(const TensorArgument& tensor, Data* data, std::int64_t token_dim, const char* name) {
  const std::int64_t dims = tensor.dim();
  require(dims == 3 || dims == 4, "{}: expected 3 or 4 dimensions, got {}", name, dims);
  require(token_dim == -2 || token_dim == -3, "token_dim: expected -2 or -3, got {}", token_dim);
  const auto size = [&](std::int64_t from_end) { return tensor.size(dims + from_end); };
  const auto stride = [&](std::int64_t from_end) { return tensor.stride(dims + from_end); };
  const std::int64_t head_dim = -5 - token_dim;
  View view;
  view.data = data;
  view.dtype = dtype_of(tensor, name);
  view.size = {dims == 4 ? size(-4) : 1, size(token_dim), size(head_dim), size(-1)};
  view.stride = {dims == 4 ? stride(-4) : 0, stride(token_dim), stride(head_dim), stride(-1)};
  return view;
}

void check_key(const ConstTensorView& q, const ConstTensorView& k, const RotaryPlan& plan) {
  require(k.size[kChannel] == plan.head_dim(),
          "k: expected heads of {} channels (the plan's head_dim), got {}", plan.head_dim(),
          k.size[kChannel]);
  require(k.dtype == q.dtype, "k: expected the dtype of q ({}), got {}", name_of(q.dtype),
          name_of(k.dtype));
  require(k.size[kBatch] == q.size[kBatch] && k.size[kToken] == q.size[kToken],
          "k: expected batch {} and {} tokens as q has, got {} and {}", q.size[kBatch],
          q.size[kToken], k.size[kBatch], k.size[kToken]);
}

}  // namespace

CheckedTensors check_tensors(const TensorArgument& q, const OptionalTensor& k,
                             const TensorArgument& q_out, const OptionalTensor& k_out,
                             std::int64_t token_dim, const RotaryPlan& plan) {
  require(k.has_value() == k_out.has_value(), "k, k_out: expected both or neither");
  const auto rotation_of = [&](const TensorArgument& in, const char* in_name,
                               const TensorArgument& out, const char* out_name) {
    if (&in == &out) {
      return Rotation::in_place(view_of<TensorView>(in, in.mutable_data(), token_dim, in_name));
    }
    require_device(out, q, out_name);
    return Rotation{view_of<ConstTensorView>(in, in.data(), token_dim, in_name),
                    view_of<TensorView>(out, out.mutable_data(), token_dim, out_name)};
  };
  CheckedTensors tensors;
  tensors.rotations[0] = rotation_of(q, "q", q_out, "q_out");
  const ConstTensorView& view = tensors.rotations[0].in;
  require(view.size[kChannel] == plan.head_dim(),
          "q: expected heads of {} channels (the plan's head_dim), got {}", plan.head_dim(),
          view.size[kChannel]);
  if (k.has_value()) {
    require_device(*k, q, "k");
    tensors.rotations[1] = rotation_of(*k, "k", *k_out, "k_out");
    tensors.count = 2;
    check_key(view, tensors.rotations[1].in, plan);
  }
  return tensors;
}

Positions positions_of(const RotateArguments& arguments, const TensorArgument& q,
                       const ConstTensorView& view) {
  const auto& [token_dim, start, tokens, starts, cu_seqlens, cos, sin, padding, fractional,
               inverse] = arguments;
  Positions positions = Positions::from_offset(start);
  if (tokens.has_value()) {
    require(!starts.has_value() && !cu_seqlens.has_value() && start == 0,
            "positions: given together with start, starts or cu_seqlens");
    require_device(*tokens, q, "positions");
    positions = per_token(*tokens, fractional, view);
  } else {
    require(!fractional, "fractional: expects positions");
    require(start == 0 || (!starts.has_value() && !cu_seqlens.has_value()),
            "start: given together with starts or cu_seqlens");
    if (starts.has_value()) require_device(*starts, q, "starts");
    if (cu_seqlens.has_value()) {
      require_device(*cu_seqlens, q, "cu_seqlens");
      positions = packed(*cu_seqlens, starts);
    } else if (starts.has_value()) {
      positions = per_batch(*starts);
    }
  }
  positions.padding = padding;
  return positions;
}

Positions positions_of(std::int64_t start, const OptionalTensor& positions, const TensorArgument& q,
                       const ConstTensorView& view) {
  static const OptionalTensor none;
  return positions_of({-2, start, positions, none, none, none, none, {}, false, false}, q, view);
}

}  // namespace ropewalk::torch_ops
