// Memory for measurements: aligned to pages and touched before use.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace ropewalk::measure {

/// Owned bytes, zeroed, starting on a 2 MiB boundary where large (huge pages are asked for).
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace ropewalk::measure
