#include "base/check.h"
#include "ropewalk/cuda.h"
#include "rotate/cuda/device_state.h"

namespace ropewalk::cuda {

OnDevice::OnDevice(std::unique_ptr<DeviceState> state) noexcept : state_(std::move(state)) {}
OnDevice::~OnDevice() = default;
OnDevice::OnDevice(OnDevice&&) noexcept = default;
OnDevice& OnDevice::operator=(OnDevice&&) noexcept = default;

const RotaryPlan& OnDevice::plan() const noexcept { return state_->plan; }
int OnDevice::device() const noexcept { return state_->device; }
std::uint64_t OnDevice::bad_rows(Stream stream) const { return read_bad_rows(*state_, stream); }
void OnDevice::reset_bad_rows(Stream stream) const { cuda::reset_bad_rows(*state_, stream); }

DevicePlan::DevicePlan(const RotaryPlan& plan, int device)
    : OnDevice(make_state(plan, nullptr, device)) {}

DeviceTable::DeviceTable(const RotaryTable& table, int device)
    : OnDevice(make_state(table.plan(), &table, device)) {}

std::vector<DeviceInfo> devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::vector<DeviceInfo> all;
  for (int id = 0; id < count; ++id) {
    cudaDeviceProp p{};
    check_cuda(cudaGetDeviceProperties(&p, id), "cudaGetDeviceProperties");
    const int capability = 10 * p.major + p.minor;
    all.push_back({id, p.name, capability, p.multiProcessorCount, p.l2CacheSize,
                   static_cast<std::int64_t>(p.totalGlobalMem), capability >= 75});
  }
  return all;
}

std::string why_no_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return fmt::format("no GPU: {}", cudaGetErrorString(status));
  }
  std::string older;
  for (const DeviceInfo& device : devices()) {
    if (device.supported) return {};
    older = fmt::format("{} (compute capability {}.{}) is older than 7.5", device.name,
                        device.compute_capability / 10, device.compute_capability % 10);
  }
  return older.empty() ? "no GPU: the driver shows none" : older;
}

}  // namespace ropewalk::cuda
