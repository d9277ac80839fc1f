// The operators of ropewalk::, on CUDA tensors. A library of its own, loaded where PyTorch has
// CUDA.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "arguments.h"
#include "plan_argument.h"
#include "plan_text.h"
#include "ropewalk/cuda.h"
#include "ropewalk/error.h"

// PyTorch's header declares it only for builds that define USE_CUDA.
extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index,
                                                             void** ret_stream);

namespace ropewalk::torch_ops {
namespace {

using OptionalTensor = std::optional<StableTensor>;

cuda::Stream current_stream(int device) {
  void* stream = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  return static_cast<cuda::Stream>(stream);
}

void refuse_capture(cuda::Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  if (status != cudaStreamCaptureStatusNone) {
    throw Error(ErrorCode::invalid_argument,
                "plan: its first use on this device lies in a CUDA graph capture, where its device "
                "copy cannot be made; rotate once before the capture");
  }
}

/// The plan's copy on a device, made at its first use and kept as long as the process lives: a
/// graph that was captured with it may be replayed at any time.
const cuda::DevicePlan& device_plan(std::string_view text, int device, cuda::Stream stream) {
  using Key = std::pair<std::string, int>;
  thread_local Key last_key;
  thread_local const cuda::DevicePlan* last = nullptr;
  if (last != nullptr && last_key.second == device && last_key.first == text) return *last;
  // Never destroyed: at exit the driver may be gone before static objects are.
  static auto& plans = *new std::map<Key, std::unique_ptr<const cuda::DevicePlan>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const Key key(text, device);
  auto found = plans.find(key);
  if (found == plans.end()) {
    refuse_capture(stream);
    auto made = std::make_unique<const cuda::DevicePlan>(plan_from_text(text), device);
    found = plans.emplace(key, std::move(made)).first;
  }
  last_key = key;
  last = found->second.get();
  return *last;
}

void rotate_into(const StableTensor& q, const OptionalTensor& k, const StableTensor& q_out,
                 const OptionalTensor& k_out, const RotateArguments& arguments) {
  if (arguments.cos.has_value() || arguments.sin.has_value()) {
    throw Error(ErrorCode::unsupported,
                "cos, sin: tables are not read by the CUDA operators; call ropewalk.rotate");
  }
  if (!q.is_cuda()) throw Error(ErrorCode::invalid_argument, "q: expected a CUDA tensor");
  const int device = q.get_device();
  const cuda::Stream stream = current_stream(device);
  const cuda::DevicePlan& plan = device_plan(arguments.plan, device, stream);
  const CheckedTensors tensors =
      check_tensors(q, k, q_out, k_out, arguments.token_dim, plan.plan());
  cuda::Options options;
  options.direction = arguments.inverse ? Direction::inverse : Direction::forward;
  cuda::rotate(plan, tensors.views(), positions_of(arguments, q, tensors.rotations[0].in), stream,
               options);
}

std::tuple<StableTensor, OptionalTensor> rotate_cuda(
    const StableTensor& q, const OptionalTensor& k, const PlanArgument& plan,
    std::int64_t token_dim, std::int64_t start, const OptionalTensor& positions,
    const OptionalTensor& starts, const OptionalTensor& cu_seqlens, const OptionalTensor& cos,
    const OptionalTensor& sin, std::optional<std::int64_t> padding, bool fractional, bool inverse) {
  StableTensor q_out = torch::stable::empty_like(q);
  OptionalTensor k_out;
  if (k.has_value()) k_out = torch::stable::empty_like(*k);
  rotate_into(q, k, q_out, k_out,
              {plan.text(), token_dim, start, positions, starts, cu_seqlens, cos, sin, padding,
               fractional, inverse});
  return {std::move(q_out), std::move(k_out)};
}

void rotate_inplace_cuda(const StableTensor& q, const OptionalTensor& k, const PlanArgument& plan,
                         std::int64_t token_dim, std::int64_t start,
                         const OptionalTensor& positions, const OptionalTensor& starts,
                         const OptionalTensor& cu_seqlens, const OptionalTensor& cos,
                         const OptionalTensor& sin, std::optional<std::int64_t> padding,
                         bool fractional, bool inverse) {
  rotate_into(q, k, q, k,
              {plan.text(), token_dim, start, positions, starts, cu_seqlens, cos, sin, padding,
               fractional, inverse});
}

void rotate_out_cuda(const StableTensor& q, const OptionalTensor& k, const PlanArgument& plan,
                     std::int64_t token_dim, std::int64_t start, const OptionalTensor& positions,
                     const OptionalTensor& starts, const OptionalTensor& cu_seqlens,
                     const OptionalTensor& cos, const OptionalTensor& sin,
                     std::optional<std::int64_t> padding, bool fractional, bool inverse,
                     const StableTensor& q_out, const OptionalTensor& k_out) {
  rotate_into(q, k, q_out, k_out,
              {plan.text(), token_dim, start, positions, starts, cu_seqlens, cos, sin, padding,
               fractional, inverse});
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(ropewalk, CUDA, m) {
  m.impl("rotate", TORCH_BOX(&rotate_cuda));
  m.impl("rotate_", TORCH_BOX(&rotate_inplace_cuda));
  m.impl("rotate.out", TORCH_BOX(&rotate_out_cuda));
  m.impl("_rotate", TORCH_BOX(&rotate_cuda));
  m.impl("_rotate_", TORCH_BOX(&rotate_inplace_cuda));
  m.impl("_rotate.out", TORCH_BOX(&rotate_out_cuda));
}

}  // namespace ropewalk::torch_ops
