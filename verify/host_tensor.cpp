#include "verify/host_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "verify/compare.h"
#include "verify/number.h"

namespace ropewalk::verify {
namespace {

std::size_t bytes_of(Dtype dtype, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * size_of(dtype);
}

}  // namespace

HostBuffer::HostBuffer(Dtype dtype, std::int64_t elements, std::int64_t lead, std::int64_t tail)
    : dtype_(dtype),
      lead_(lead),
      memory_(std::make_unique<GuardedBuffer>(bytes_of(dtype, lead + elements + tail))) {
  poison();
}

void* HostBuffer::data() const noexcept { return memory_->data() + bytes_of(dtype_, lead_); }

std::span<std::byte> HostBuffer::bytes() const noexcept {
  return {memory_->data(), memory_->size()};
}

TensorView HostBuffer::view(std::int64_t offset, std::array<std::int64_t, 4> size,
                            std::array<std::int64_t, 4> stride) const noexcept {
  auto* first = static_cast<std::byte*>(data());
  return {first + offset * static_cast<std::int64_t>(size_of(dtype_)), dtype_, size, stride};
}

void HostBuffer::poison() const noexcept { std::ranges::fill(bytes(), kPoison); }

std::vector<std::byte> HostBuffer::snapshot() const { return {bytes().begin(), bytes().end()}; }

void HostBuffer::restore(std::span<const std::byte> snapshot) const {
  std::ranges::copy(snapshot, bytes().begin());
}

std::string HostBuffer::changed_outside(std::span<const std::byte> snapshot,
                                        std::span<const TensorView> written) const {
  std::vector<bool> allowed(bytes().size(), false);
  for (const TensorView& view : written) {
    for_each_index(view.size, [&](const std::array<std::int64_t, 4>& at) {
      const auto start = static_cast<std::byte*>(element_at(view, at)) - bytes().data();
      for (std::size_t i = 0; i < size_of(view.dtype); ++i) {
        allowed[static_cast<std::size_t>(start) + i] = true;
      }
    });
  }
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (!allowed[i] && bytes()[i] != snapshot[i]) {
      return fmt::format("byte {} of {} lies outside the output and was changed", i,
                         allowed.size());
    }
  }
  return {};
}

HostTensor::HostTensor(Dtype dtype, std::array<std::int64_t, 4> size)
    : buffer_(dtype, size[0] * size[1] * size[2] * size[3]),
      view_(buffer_.view(0, size, {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1})) {}

double HostTensor::at(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t c) const {
  return static_cast<double>(load_value(view_.dtype, element_at(view_, {b, t, h, c})));
}

void HostTensor::assign(std::span<const double> values) const {
  std::size_t next = 0;
  for_each_index(view_.size, [&](const std::array<std::int64_t, 4>& at) {
    store_bits(view_.dtype, element_at(view_, at), encode(view_.dtype, values[next++]));
  });
}

void copy_elements(const ConstTensorView& from, const TensorView& to) {
  for_each_index(to.size, [&](const std::array<std::int64_t, 4>& at) {
    std::memcpy(element_at(to, at), element_at(from, at), size_of(to.dtype));
  });
}

}  // namespace ropewalk::verify
