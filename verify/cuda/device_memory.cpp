#include "verify/cuda/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "ropewalk/error.h"

namespace ropewalk::verify {
namespace {

constexpr std::size_t kAlignment = 256;

std::int64_t size_of_position(Positions::Type type) {
  return type == Positions::Type::int32 || type == Positions::Type::float32 ? 4 : 8;
}

}  // namespace

void must(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::cuda, fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // the next launch must not find it
    throw std::bad_alloc();
  }
  must(status, "cudaMalloc");
  data_ = static_cast<std::byte*>(memory);
}

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

void DeviceBuffer::upload(const void* from, std::size_t bytes) const {
  must(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void DeviceBuffer::download(void* to, std::size_t bytes) const {
  must(cudaMemcpy(to, data_, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void Mirror::add(const void* data, std::int64_t first_byte, std::int64_t end_byte) {
  const auto base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
  ranges_.push_back({static_cast<std::uintptr_t>(base + first_byte),
                     static_cast<std::uintptr_t>(base + end_byte)});
}

void Mirror::add(const ConstTensorView& view) {
  if (view.elements() == 0) return;
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    const std::int64_t reach = view.stride[d] * (view.size[d] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  add(view.data, low * size, (high + 1) * size);
}

void Mirror::upload() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> joined;
  for (const Range& range : ranges_) {
    if (!joined.empty() && range.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, range.end);
    } else {
      joined.push_back(range);
    }
  }
  for (const Range& range : joined) {
    const std::size_t lead = range.begin % kAlignment;
    DeviceBuffer memory(range.end - range.begin + lead);
    must(cudaMemcpy(memory.data() + lead, reinterpret_cast<const void*>(range.begin),
                    range.end - range.begin, cudaMemcpyHostToDevice),
         "cudaMemcpy");
    copies_.push_back({range, std::move(memory), lead});
  }
}

void Mirror::download() const {
  for (const Copy& copy : copies_) {
    must(cudaMemcpy(reinterpret_cast<void*>(copy.range.begin), copy.memory.data() + copy.lead,
                    copy.range.end - copy.range.begin, cudaMemcpyDeviceToHost),
         "cudaMemcpy");
  }
}

void* Mirror::on_device(const void* host) const {
  const auto address = reinterpret_cast<std::uintptr_t>(host);
  for (const Copy& copy : copies_) {
    if (address >= copy.range.begin && address < copy.range.end) {
      return copy.memory.data() + copy.lead + (address - copy.range.begin);
    }
  }
  return nullptr;
}

void add_positions(Mirror& mirror, const Positions& p, std::int64_t batch, std::int64_t tokens) {
  const std::int64_t size = size_of_position(p.type);
  const auto reach = [](std::int64_t stride, std::int64_t count) { return stride * (count - 1); };
  if (p.kind == Positions::Kind::packed) {
    const std::int64_t cu_size = size_of_position(p.cu_type);
    mirror.add(p.cu_seqlens, 0, (p.sequences + 1) * cu_size);
    if (p.data != nullptr) mirror.add(p.data, 0, p.sequences * size);
  } else if (p.kind != Positions::Kind::offset && batch > 0 && tokens > 0) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    const bool per_token = p.kind == Positions::Kind::per_token;
    for (const std::int64_t r :
         {reach(p.batch_stride, batch), per_token ? reach(p.token_stride, tokens) : 0,
          per_token ? reach(p.axis_stride, p.axes) : 0}) {
      (r < 0 ? low : high) += r;
    }
    mirror.add(p.data, low * size, (high + 1) * size);
  }
}

Positions on_device(const Mirror& mirror, const Positions& positions) {
  Positions p = positions;
  if (p.kind == Positions::Kind::offset) return p;
  if (p.data != nullptr) p.data = mirror.on_device(p.data);
  if (p.cu_seqlens != nullptr) p.cu_seqlens = mirror.on_device(p.cu_seqlens);
  return p;
}

}  // namespace ropewalk::verify
