// The operators of ropewalk::, on CUDA tensors. A library of its own, loaded where PyTorch has
// CUDA.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <torch/csrc/stable/library.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "operators.h"
#include "plan_text.h"
#include "ropewalk/cuda.h"
#include "ropewalk/error.h"

// The name since PyTorch 2.12; before, the same macro without the prefix.
#if !defined(STABLE_TORCH_ERROR_CODE_CHECK)
#define STABLE_TORCH_ERROR_CODE_CHECK TORCH_ERROR_CODE_CHECK
#endif

// PyTorch's header declares it only for builds that define USE_CUDA.
extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index,
                                                             void** ret_stream);

namespace ropewalk::torch_ops {
namespace {

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

/// The same by number.
const cuda::DevicePlan& device_plan(std::int64_t number, const KnownCall& call, int device,
                                    cuda::Stream stream) {
  constexpr int kDevices = 16;  // of one host; further ones take the way by text
  static std::array<std::array<std::atomic<const cuda::DevicePlan*>, kDevices>,
                    KnownCalls::kCapacity>
      plans{};
  if (device >= kDevices) return device_plan(call.text, device, stream);
  auto& known = plans[static_cast<std::size_t>(number - 1)][static_cast<std::size_t>(device)];
  const cuda::DevicePlan* plan = known.load(std::memory_order_acquire);
  if (plan == nullptr) {
    plan = &device_plan(call.text, device, stream);
    known.store(plan, std::memory_order_release);
  }
  return *plan;
}

/// The caller's table, which the kernel reads where it lies.
cuda::DeviceAngles angles_of(const RotateArguments& arguments, const RotaryPlan& plan,
                             const TensorArgument& q, Dtype dtype) {
  const bool is_double = dtype == Dtype::float64 || plan.arithmetic() == Arithmetic::parity_p4;
  const auto check = [&](const TensorArgument& table, const char* name) {
    using ScalarType = TensorArgument::ScalarType;
    const std::int64_t pairs = plan.pairs();
    if (!table.is_on_device_of(q) || table.dim() != 2 || table.size(1) != pairs ||
        table.stride(1) != 1 || table.stride(0) != pairs ||
        table.scalar_type() != (is_double ? ScalarType::Double : ScalarType::Float)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: expected (rows, {}), contiguous, {}, on the device of q; "
                              "ropewalk.rotate prepares other tables",
                              name, pairs, is_double ? "float64" : "float32"));
    }
  };
  check(*arguments.cos, "cos");
  check(*arguments.sin, "sin");
  if (arguments.cos->size(0) != arguments.sin->size(0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sin: expected {} rows as cos has, got {}", arguments.cos->size(0),
                            arguments.sin->size(0)));
  }
  return {arguments.cos->data(), arguments.sin->data(), arguments.cos->size(0), is_double};
}

int device_of(const TensorArgument& q) {
  if (!q.is_cuda()) throw Error(ErrorCode::invalid_argument, "q: expected a CUDA tensor");
  return q.device();
}

cuda::Options options_of(Direction direction) {
  cuda::Options options;
  options.direction = direction;
  return options;
}

struct CudaKernels {
  static void rotate(const TensorArgument& q, const OptionalTensor& k, const TensorArgument& q_out,
                     const OptionalTensor& k_out, std::string_view text,
                     const RotateArguments& arguments, Outputs) {
    if (arguments.cos.has_value() != arguments.sin.has_value()) {
      throw Error(ErrorCode::invalid_argument, "cos, sin: expected both or neither");
    }
    const int device = device_of(q);
    const cuda::Stream stream = current_stream(device);
    const cuda::DevicePlan& plan = device_plan(text, device, stream);
    const CheckedTensors tensors =
        check_tensors(q, k, q_out, k_out, arguments.token_dim, plan.plan());
    const ConstTensorView& view = tensors.rotations[0].in;
    const Positions positions = positions_of(arguments, q, view);
    const cuda::Options options =
        options_of(arguments.inverse ? Direction::inverse : Direction::forward);
    if (arguments.cos.has_value()) {
      const cuda::DeviceAngles angles = angles_of(arguments, plan.plan(), q, view.dtype);
      cuda::rotate(plan, angles, tensors.views(), positions, stream, options);
    } else {
      cuda::rotate(plan, tensors.views(), positions, stream, options);
    }
  }

  static void rotate_known(const TensorArgument& q, const OptionalTensor& k,
                           const TensorArgument& q_out, const OptionalTensor& k_out,
                           std::int64_t number, std::int64_t start, const OptionalTensor& positions,
                           Outputs) {
    const KnownCall& call = known_calls().at(number);
    const int device = device_of(q);
    const cuda::Stream stream = current_stream(device);
    const cuda::DevicePlan& plan = device_plan(number, call, device, stream);
    const CheckedTensors tensors = check_tensors(q, k, q_out, k_out, call.token_dim, plan.plan());
    cuda::rotate(plan, tensors.views(), positions_of(start, positions, q, tensors.rotations[0].in),
                 stream, options_of(call.direction));
  }

  static std::int64_t bad_rows(int device, std::string_view text, bool reset) {
    const cuda::Stream stream = current_stream(device);
    const cuda::DevicePlan& plan = device_plan(text, device, stream);
    const auto count = static_cast<std::int64_t>(plan.bad_rows(stream));
    if (reset) plan.reset_bad_rows(stream);
    return count;
  }
};

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(ropewalk, CUDA, m) { Operators<CudaKernels>::implement(m); }

}  // namespace ropewalk::torch_ops
