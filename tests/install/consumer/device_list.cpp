// What the installed CUDA library finds here. Links kernels, plans and tables, and needs no GPU.
#include <ropewalk/cuda.h>

#include <cstdio>

int main() {
  for (const ropewalk::cuda::DeviceInfo& device : ropewalk::cuda::devices()) {
    std::printf("%s\n", device.name.c_str());
  }
  const std::string why = ropewalk::cuda::why_no_device();
  if (!why.empty()) {
    std::printf("%s\n", why.c_str());
    return 0;
  }
  const ropewalk::cuda::DevicePlan plan(ropewalk::make_plan(128));
  return plan.bad_rows() == 0 ? 0 : 1;
}
