#include "base/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace ropewalk {
namespace {

std::string digest(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

// FIPS 180-4 examples, as published by NIST.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnySizeGiveTheSameDigest) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i);
  for (const std::size_t piece : {1u, 3u, 55u, 56u, 63u, 64u, 65u, 128u, 299u}) {
    Sha256 sha;
    for (std::size_t begin = 0; begin < text.size(); begin += piece) {
      sha.update(
          std::as_bytes(std::span(text).subspan(begin, std::min(piece, text.size() - begin))));
    }
    EXPECT_EQ(sha.hex(), digest(text)) << "pieces of " << piece;
  }
}

}  // namespace
}  // namespace ropewalk
