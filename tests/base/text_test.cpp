// What is shown of text from outside can steer no terminal.
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace ropewalk {
namespace {

TEST(Printable, OrdinaryTextStays) {
  for (const char* text : {"", "llama", "a\\b 'c'", "≤ 2³⁶ · ω", "日本語", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(printable(std::string_view("\0\x07\x7f", 3)), "\\x00\\x07\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");  // CSI as one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\u202e"
            "abc");  // right to left from here
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\u2066");
}

TEST(Printable, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xe9t\xe9"), "\\xe9t\\xe9");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // overlong
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");  // cut
}

TEST(Printable, IsCutBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("abω", 3), "ab...");
  EXPECT_EQ(in_quotes(std::string(500, 'x')), "'" + std::string(80, 'x') + "...'");
}

TEST(Printable, EveryErrorIs) {
  try {
    fail(ErrorCode::io, "{}", "\x1b]0;title\x07" + std::string(100000, 'x'));
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\x1b'), std::string::npos);
    EXPECT_TRUE(message.starts_with("\\x1b]0;title\\x07xxx")) << message;
    EXPECT_LT(message.size(), 1100u);
  }
}

}  // namespace
}  // namespace ropewalk
