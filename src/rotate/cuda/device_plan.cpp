#include "base/check.h"
#include "ropewalk/cuda.h"
#include "rotate/cuda/device_state.h"

namespace ropewalk::cuda {

DevicePlan::DevicePlan(const RotaryPlan& plan, int device)
    : state_(make_state(plan, nullptr, device)) {}
DevicePlan::~DevicePlan() = default;
DevicePlan::DevicePlan(DevicePlan&&) noexcept = default;
DevicePlan& DevicePlan::operator=(DevicePlan&&) noexcept = default;

const RotaryPlan& DevicePlan::plan() const noexcept { return state_->plan; }
int DevicePlan::device() const noexcept { return state_->device; }
std::uint64_t DevicePlan::bad_rows(Stream stream) const { return read_bad_rows(*state_, stream); }
void DevicePlan::reset_bad_rows(Stream stream) const { cuda::reset_bad_rows(*state_, stream); }

DeviceTable::DeviceTable(const RotaryTable& table, int device)
    : state_(make_state(table.plan(), &table, device)) {}
DeviceTable::~DeviceTable() = default;
DeviceTable::DeviceTable(DeviceTable&&) noexcept = default;
DeviceTable& DeviceTable::operator=(DeviceTable&&) noexcept = default;

const RotaryPlan& DeviceTable::plan() const noexcept { return state_->plan; }
int DeviceTable::device() const noexcept { return state_->device; }
std::uint64_t DeviceTable::bad_rows(Stream stream) const { return read_bad_rows(*state_, stream); }
void DeviceTable::reset_bad_rows(Stream stream) const { cuda::reset_bad_rows(*state_, stream); }

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
