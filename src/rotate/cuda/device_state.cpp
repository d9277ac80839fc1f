#include "rotate/cuda/device_state.h"

#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "base/check.h"
#include "rotate/cuda/kernels.h"

namespace ropewalk::cuda {
namespace {

constexpr int kOldestCapability = 75;

int capability_of(int device) {
  int major = 0;
  int minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "cudaDeviceGetAttribute");
  return 10 * major + minor;
}

std::string name_of_device(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

void require_supported(int device, int capability) {
  if (capability >= kOldestCapability) return;
  fail(ErrorCode::unsupported,
       "device {} ({}, compute capability {}.{}) is older than 7.5, the oldest there are kernels "
       "for",
       device, name_of_device(device), capability / 10, capability % 10);
}

/// Kernels are loaded on first use, which a capture may not allow.
void load_kernels(int device) {
  static std::mutex mutex;
  static std::set<int> loaded;
  const std::lock_guard lock(mutex);
  if (loaded.contains(device)) return;
  cudaFuncAttributes attributes{};
  const auto load = [&](auto kernel) {
    check_cuda(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)),
               "cudaFuncGetAttributes");
  };
  for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::float16, Dtype::bfloat16}) {
    const DtypeKernels kernels = kernels_of(dtype);
    for (const VectorKernel& kernel : kernels.vectors) load(kernel.function);
    for (const WarpKernel& kernel : kernels.warps) load(kernel.function);
    for (const Kernel kernel :
         {kernels.narrow, kernels.narrow_table, kernels.narrow_table_double, kernels.copy}) {
      load(kernel);
    }
  }
  loaded.insert(device);
}

/// Arrays laid out one behind the other, each on a 256-byte boundary.
class Image {
 public:
  template <class T>
  std::size_t add(std::span<const T> values) {
    const std::size_t at = (bytes_.size() + 255) / 256 * 256;
    bytes_.resize(at + values.size_bytes());
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size_bytes());
    return at;
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

template <class T>
const T* at(void* base, std::size_t offset) {
  return reinterpret_cast<const T*>(static_cast<std::byte*>(base) + offset);
}

}  // namespace

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report this failure again
  fail(ErrorCode::cuda, "{}: {}", call, cudaGetErrorString(status));
}

DeviceScope::DeviceScope(int device) : previous_(device), device_(device) {
  check_cuda(cudaGetDevice(&previous_), "cudaGetDevice");
  if (previous_ != device_) check_cuda(cudaSetDevice(device_), "cudaSetDevice");
}

DeviceScope::~DeviceScope() {
  if (previous_ != device_) cudaSetDevice(previous_);
}

void DeviceFree::operator()(void* memory) const noexcept {
  int previous = device;
  if (cudaGetDevice(&previous) == cudaSuccess && previous != device) cudaSetDevice(device);
  cudaFree(memory);
  if (previous != device) cudaSetDevice(previous);
}

std::unique_ptr<DeviceState> make_state(const RotaryPlan& plan, const RotaryTable* table,
                                        int device) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (device == -1) check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  if (device < 0 || device >= count) {
    fail(ErrorCode::cuda, "device: expected 0 to {}, got {}", count - 1, device);
  }
  const DeviceScope scope(device);
  const int capability = capability_of(device);
  require_supported(device, capability);
  load_kernels(device);

  Image image;
  const std::uint64_t zero = 0;
  const std::size_t counter = image.add(std::span(&zero, 1));
  std::vector<PreciseFraction> precise;
  std::vector<std::int64_t> whole;
  for (const Turns& t : plan.turns()) {
    precise.push_back({t.fraction, t.low});
    whole.push_back(t.whole);
  }
  const std::size_t fractions = image.add(std::span(plan.turn_fractions()));
  const std::size_t precise_at = image.add(std::span<const PreciseFraction>(precise));
  const std::size_t whole_at = image.add(std::span<const std::int64_t>(whole));
  const std::size_t axis = image.add(std::span(plan.axis()));
  std::size_t cos = 0;
  std::size_t sin = 0;
  const bool is_double = table != nullptr && table->is_double();
  if (is_double) {
    cos = image.add(table->cos64());
    sin = image.add(table->sin64());
  } else if (table != nullptr) {
    cos = image.add(table->cos());
    sin = image.add(table->sin());
  }

  auto state = std::make_unique<DeviceState>(DeviceState{.plan = plan,
                                                         .device = device,
                                                         .compute_capability = capability,
                                                         .table_dtype = {},
                                                         .memory = {},
                                                         .pointers = {}});
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, image.bytes().size()), "cudaMalloc");
  state->memory = DeviceMemory(memory, DeviceFree{device});
  check_cuda(cudaMemcpy(memory, image.bytes().data(), image.bytes().size(), cudaMemcpyHostToDevice),
             "cudaMemcpy");
  DevicePointers& p = state->pointers;
  p.bad_rows = reinterpret_cast<unsigned long long*>(static_cast<std::byte*>(memory) + counter);
  p.angle.fractions = at<std::uint64_t>(memory, fractions);
  p.angle.precise = at<PreciseFraction>(memory, precise_at);
  p.angle.whole = at<std::int64_t>(memory, whole_at);
  p.angle.axis = plan.axes() == 1 ? nullptr : at<std::uint8_t>(memory, axis);
  if (table != nullptr) {
    p.angle.table_cos = at<std::byte>(memory, cos);
    p.angle.table_sin = at<std::byte>(memory, sin);
    p.table_rows = table->rows();
    p.table_is_double = is_double;
    state->table_dtype = table->dtype();
  }
  return state;
}

std::uint64_t read_bad_rows(const DeviceState& state, Stream stream) {
  const DeviceScope scope(state.device);
  unsigned long long value = 0;
  check_cuda(cudaMemcpyAsync(&value, state.pointers.bad_rows, sizeof value, cudaMemcpyDeviceToHost,
                             stream),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return value;
}

void reset_bad_rows(const DeviceState& state, Stream stream) {
  const DeviceScope scope(state.device);
  check_cuda(cudaMemsetAsync(state.pointers.bad_rows, 0, sizeof(unsigned long long), stream),
             "cudaMemsetAsync");
}

}  // namespace ropewalk::cuda
