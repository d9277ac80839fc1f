#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "stream/position_source.h"

namespace ropewalk::stream {
namespace {

TensorView whole(const std::string& layout, std::vector<std::int64_t> shape) {
  return view_of({{"x", "F32", std::move(shape)}, 0, 0}, nullptr, layout);
}

/// Every element of the tensor as (batch, token, head), in the order of memory.
std::vector<std::array<std::int64_t, 3>> walk(const TensorView& view, std::int64_t batch,
                                              std::int64_t token, std::int64_t head) {
  std::vector<std::array<std::int64_t, 3>> elements(
      static_cast<std::size_t>(view.elements() / view.size[kChannel]));
  for (std::int64_t b = 0; b < view.size[kBatch]; ++b) {
    for (std::int64_t t = 0; t < view.size[kToken]; ++t) {
      for (std::int64_t h = 0; h < view.size[kHead]; ++h) {
        const std::int64_t at =
            b * view.stride[kBatch] + t * view.stride[kToken] + h * view.stride[kHead];
        elements[static_cast<std::size_t>(at / view.size[kChannel])] = {batch + b, token + t,
                                                                        head + h};
      }
    }
  }
  return elements;
}

TEST(Pieces, CoverEveryTensorInTheOrderOfMemory) {
  std::mt19937 random(std::random_device{}());
  const auto up_to = [&random](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::string layout = round % 2 == 0 ? "bthd" : "bhtd";
    const TensorView view = whole(layout, {up_to(4), up_to(7), up_to(7), 4});
    const auto expected = walk(view, 0, 0, 0);
    const std::uint64_t total = 4 * static_cast<std::uint64_t>(view.elements());
    std::vector<std::array<std::int64_t, 3>> seen;
    for (std::uint64_t begin = 0; begin < total;) {
      const auto limit = static_cast<std::uint64_t>(up_to(2000));  // another size each time
      const Piece piece = piece_at(view, begin, limit);
      ASSERT_EQ(piece.begin, begin);
      ASSERT_GT(piece.bytes, 0U);
      ASSERT_TRUE(piece.bytes <= limit || piece.bytes == piece.smallest);
      const std::size_t at = seen.size();
      const auto part = walk(piece.view, piece.batch, piece.token, expected[at][2]);
      seen.insert(seen.end(), part.begin(), part.end());
      begin += piece.bytes;
    }
    ASSERT_EQ(seen, expected) << layout;
  }
}

TEST(Pieces, AWholeTensorIsOnePieceWhereItFits) {
  const TensorView view = whole("bhtd", {2, 3, 5, 4});
  const Piece piece = piece_at(view, 0, 1 << 20);
  EXPECT_EQ(piece.view, view);
  EXPECT_EQ(piece.smallest, 16U);
  EXPECT_EQ(piece_at(whole("bthd", {2, 5, 3, 4}), 0, 1).bytes, 48U);
}

}  // namespace
}  // namespace ropewalk::stream
