#include "measure/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace ropewalk::measure {

void Buffer::Free::operator()(std::byte* pointer) const noexcept { std::free(pointer); }

Buffer::Buffer(std::size_t bytes) : size_(bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 4096;
  const std::size_t rounded = (bytes / alignment + 1) * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!data_) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  if (alignment == kHugePage) (void)madvise(data_.get(), rounded, MADV_HUGEPAGE);
#endif
  std::memset(data_.get(), 0, rounded);
}

}  // namespace ropewalk::measure
