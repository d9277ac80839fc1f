#include "measure/copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "measure/buffer.h"

namespace ropewalk::measure {
namespace {

void fill(const Buffer& buffer) {
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    buffer.data()[i] = static_cast<std::byte>(i * 131 + i / 257);
  }
}

// Around vectors, blocks, and a size that several threads share.
constexpr std::size_t kSizes[] = {1, 31, 63, 64, 65, 4095, 4096, 4097, 70'001, 3'000'003};

TEST(Copy, EveryKindCopiesEveryByteAndNoMore) {
  for (const CopyKind kind : copy_kinds()) {
    for (const std::size_t size : kSizes) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(size));
        const Buffer from(size);
        const Buffer to(size + 1);
        fill(from);
        to.data()[size] = std::byte{0x5a};
        copy(kind, to.data(), from.data(), size, threads);
        EXPECT_EQ(std::memcmp(to.data(), from.data(), size), 0);
        EXPECT_EQ(to.data()[size], std::byte{0x5a});
      }
    }
  }
}

TEST(Copy, ReadModifyWriteFlipsEveryBitOnce) {
  for (const std::size_t size : kSizes) {
    SCOPED_TRACE(size);
    const Buffer before(size);
    fill(before);
    for (const PassKind kind : pass_kinds()) {
      const Buffer data(size + 1);
      std::memcpy(data.data(), before.data(), size);
      read_modify_write(kind, data.data(), size, 2);
      bool flipped = true;
      for (std::size_t i = 0; i < size; ++i) flipped &= data.data()[i] == ~before.data()[i];
      EXPECT_TRUE(flipped) << name_of(kind);
      EXPECT_EQ(data.data()[size], std::byte{0});
    }
  }
}

}  // namespace
}  // namespace ropewalk::measure
