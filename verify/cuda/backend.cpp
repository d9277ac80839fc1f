#include "verify/cuda/backend.h"

#include "ropewalk/error.h"
#include "verify/cuda/device_memory.h"

namespace ropewalk::verify {
namespace {

/// Calls body(device rotations, device positions) between upload and download.
template <class Body>
void on_mirror(std::span<const Rotation> rotations, const Positions& positions, Body&& body) {
  Mirror mirror;
  for (const Rotation& r : rotations) {
    mirror.add(r.in);
    mirror.add(ConstTensorView(r.out));
  }
  const std::int64_t batch = rotations.empty() ? 0 : rotations[0].in.size[kBatch];
  const std::int64_t tokens = rotations.empty() ? 0 : rotations[0].in.size[kToken];
  add_positions(mirror, positions, batch, tokens);
  mirror.upload();
  std::vector<Rotation> there(rotations.begin(), rotations.end());
  for (Rotation& r : there) {
    if (r.in.elements() == 0) continue;
    r.in.data = mirror.on_device(r.in.data);
    r.out.data = mirror.on_device(r.out.data);
  }
  body(there, on_device(mirror, positions));
  mirror.download();
}

}  // namespace

void rotate_on_device(const cuda::DevicePlan& plan, std::span<const Rotation> rotations,
                      const Positions& positions, Direction direction, std::string_view policy) {
  on_mirror(rotations, positions, [&](const auto& there, const Positions& positions_there) {
    cuda::rotate(plan, there, positions_there, nullptr, {.direction = direction, .policy = policy});
    (void)plan.bad_rows();  // waits
  });
}

std::uint64_t rotate_on_device(const RotaryTable& table, std::span<const Rotation> rotations,
                               const Positions& positions, Direction direction, int device) {
  const cuda::DeviceTable device_table(table, device);
  on_mirror(rotations, positions, [&](const auto& there, const Positions& positions_there) {
    cuda::rotate(device_table, there, positions_there, nullptr, {.direction = direction});
    (void)device_table.bad_rows();
  });
  return device_table.bad_rows();
}

Backend cuda_backend(int device) {
  return [device, on_cpu = cpu_backend()](
             const RotaryPlan& plan, std::span<const Rotation> rotations,
             const Positions& positions, Direction direction, std::string_view kernel) {
    if (!kernel.starts_with("cuda")) {
      on_cpu(plan, rotations, positions, direction, kernel);
      return;
    }
    kernel.remove_prefix(kernel.starts_with("cuda:") ? 5 : 4);
    const cuda::DevicePlan device_plan(plan, device);
    try {
      rotate_on_device(device_plan, rotations, positions, direction, kernel);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      rotate_on_device(device_plan, rotations, positions, direction);
    }
  };
}

std::vector<std::string> cuda_kernels() { return {"scalar", "cuda", "cuda:narrow"}; }

}  // namespace ropewalk::verify
