// Views, positions, rotation and the list of kernels.
#include "capi/boundary.h"
#include "capi/convert.h"

using namespace ropewalk;
using namespace ropewalk::capi;

namespace {

/// Named texts of one kernel; the registry's views need not end in a zero.
struct KernelTexts {
  std::string name;
  std::string description;
  bool supported;
};

const std::vector<KernelTexts>& kernel_texts() {
  static const std::vector<KernelTexts> texts = [] {
    std::vector<KernelTexts> result;
    for (const CpuKernelInfo& kernel : cpu_kernels()) {
      result.push_back(
          {std::string(kernel.name), std::string(kernel.description), kernel.supported});
    }
    return result;
  }();
  return texts;
}

ropewalk_view contiguous(void* data, int32_t dtype, int64_t batch, int64_t tokens, int64_t heads,
                         int64_t head_dim, bool heads_first) noexcept {
  const int64_t token_stride = heads_first ? head_dim : heads * head_dim;
  const int64_t head_stride = heads_first ? tokens * head_dim : head_dim;
  return {data,
          dtype,
          {batch, tokens, heads, head_dim},
          {tokens * heads * head_dim, token_stride, head_stride, 1}};
}

}  // namespace

ropewalk_view ropewalk_bthd(void* data, int32_t dtype, int64_t batch, int64_t tokens, int64_t heads,
                            int64_t head_dim) {
  return contiguous(data, dtype, batch, tokens, heads, head_dim, false);
}

ropewalk_view ropewalk_bhtd(void* data, int32_t dtype, int64_t batch, int64_t tokens, int64_t heads,
                            int64_t head_dim) {
  return contiguous(data, dtype, batch, tokens, heads, head_dim, true);
}

ropewalk_rotation ropewalk_in_place(ropewalk_view view) { return {view, view}; }

ropewalk_positions ropewalk_positions_from_offset(int64_t start) {
  ropewalk_positions positions{};
  positions.struct_size = sizeof positions;
  positions.start = start;
  return positions;
}

ropewalk_positions ropewalk_positions_from_tokens(const int64_t* data, int64_t count) {
  ropewalk_positions positions{};
  positions.struct_size = sizeof positions;
  positions.kind = ROPEWALK_POSITIONS_PER_TOKEN;
  positions.data = data;
  positions.count = count;
  positions.token_stride = 1;
  positions.batches = 1;
  return positions;
}

ropewalk_status ropewalk_rotate(const ropewalk_plan* plan, const ropewalk_rotation* rotations,
                                size_t count, const ropewalk_positions* positions,
                                const ropewalk_rotate_options* options) {
  return guarded([&] {
    rotate(deref(plan, "plan").plan, Rotations(rotations, count).span(), positions_from(positions),
           rotate_options_from(options));
  });
}

ropewalk_status ropewalk_table_rotate(const ropewalk_table* table,
                                      const ropewalk_rotation* rotations, size_t count,
                                      const ropewalk_positions* positions,
                                      const ropewalk_rotate_options* options) {
  return guarded([&] {
    rotate(deref(table, "table").table, Rotations(rotations, count).span(),
           positions_from(positions), rotate_options_from(options));
  });
}

size_t ropewalk_cpu_kernel_count(void) {
  size_t count = 0;
  const ropewalk_status status = guarded([&] { count = kernel_texts().size(); });
  return status == ROPEWALK_OK ? count : 0;
}

ropewalk_status ropewalk_cpu_kernel_at(size_t index, ropewalk_cpu_kernel* kernel) {
  return guarded([&] {
    ropewalk_cpu_kernel& result = deref(kernel, "kernel");
    const std::vector<KernelTexts>& texts = kernel_texts();
    require(index < texts.size(), "index must be below {}, got {}", texts.size(), index);
    const KernelTexts& chosen = texts[index];
    result = {chosen.name.c_str(), chosen.description.c_str(), chosen.supported ? 1 : 0};
  });
}
