// SPDX-License-Identifier: MIT
#include "weft/net/ws/deflate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

using Outcome = Inflater::Outcome;

class WsDeflate : public testing::Test {
 protected:
  void SetUp() override {
    if (!deflate_available()) {
      GTEST_SKIP() << "this build has no zlib";
    }
    deflater_ = Deflater::make(15, 6, 8);
    inflater_ = Inflater::make(15);
    ASSERT_TRUE(deflater_ != nullptr && inflater_ != nullptr);
  }
  std::string compress(std::string_view message) {
    return std::string(as_text(deflater_->compress(as_bytes(message), packed_)));
  }
  Outcome expand(std::string_view payload, std::size_t most, std::size_t piece = ~std::size_t{0}) {
    inflater_->begin(most);
    for (std::size_t at = 0; at < payload.size(); at += std::min(piece, payload.size() - at)) {
      if (const Outcome outcome = inflater_->take(as_bytes(payload.substr(at, piece)), expanded_);
          outcome != Outcome::ok) {
        return outcome;
      }
    }
    return inflater_->finish(expanded_);
  }
  [[nodiscard]] std::string expanded() const { return std::string(as_text(Bytes(expanded_).first(inflater_->size()))); }

  std::unique_ptr<Deflater> deflater_;
  std::unique_ptr<Inflater> inflater_;
  std::vector<std::uint8_t> packed_;
  std::vector<std::uint8_t> expanded_;
};

std::string noise(std::size_t size) {
  Random random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random.below(256));
  }
  return bytes;
}

// RFC 7692 section 7.2.3.
TEST_F(WsDeflate, TheExamplesOfTheRfcAreExpanded) {
  const std::string hello("\xF2\x48\xCD\xC9\xC9\x07\x00", 7);
  EXPECT_EQ(compress("Hello"), hello);
  for (const std::string& payload :
       {hello, std::string("\x00\x05\x00\xFA\xFFHello\x00", 11), std::string("\xF3\x48\xCD\xC9\xC9\x07\x00\x00", 8),
        std::string("\xF2\x48\x05\x00\x00\x00\xFF\xFF\xCA\xC9\xC9\x07\x00", 13)}) {
    for (const std::size_t piece : {1, 2, 100}) {
      ASSERT_EQ(expand(payload, 5, piece), Outcome::ok);
      EXPECT_EQ(expanded(), "Hello");
      inflater_->reset();
    }
  }
  ASSERT_EQ(expand(hello, 5), Outcome::ok);
  ASSERT_EQ(expand(std::string("\xF2\x00\x11\x00\x00", 5), 5), Outcome::ok);  // refers to the message before
  EXPECT_EQ(expanded(), "Hello");
}

TEST_F(WsDeflate, MessagesOfEverySizeComeBackWholeWithAndWithoutTheOnesBefore) {
  for (const bool keeps : {true, false}) {
    for (const std::size_t size : {1, 2, 255, 4095, 4096, 4097, 65'536, 1'000'000}) {
      for (const std::string& message : {std::string(size, 'x'), noise(size)}) {
        const std::string payload = compress(message);
        ASSERT_EQ(expand(payload, size, 1000), Outcome::ok) << size;
        EXPECT_TRUE(expanded() == message) << size;
        EXPECT_LE(payload.size(), size + size / 8 + 64);  // the bound of a compressed message
        if (!keeps) {
          deflater_->reset();
          inflater_->reset();
        }
      }
    }
  }
}

TEST_F(WsDeflate, AMessageOfOneByteMoreThanTheBoundIsTooLarge) {
  const std::string message(100'000, 'x');
  const std::string payload = compress(message);
  EXPECT_LT(payload.size(), 200u);
  for (const std::size_t most : {99'999u, 1u, 0u}) {
    inflater_->reset();
    EXPECT_EQ(expand(payload, most), Outcome::too_large);
    EXPECT_LE(expanded_.size(), std::max<std::size_t>(most + 1, 4096)) << "no more than the bound was made room for";
    expanded_.clear();
  }
  inflater_->reset();
  EXPECT_EQ(expand(payload, 100'000), Outcome::ok);
}

TEST_F(WsDeflate, BytesThatAreNoStreamAreMalformed) {
  for (const std::string& payload :
       {std::string("\x06", 1), std::string("\xFF\xFF\xFF\xFF"), std::string("\x00\x05\x00\x00\x00Hello", 10),
        std::string("\xF2\x00\x11\x00\x00", 5),     // refers to bytes that were never there
        std::string("\x00\x05\x00\xFA\xFFHel", 8),  // ends inside a block
        std::string("\xF2\x48\xCD\xC9", 4)}) {      // the same
    inflater_->reset();
    EXPECT_EQ(expand(payload, 1000), Outcome::malformed) << testing::PrintToString(payload);
  }
  inflater_->reset();
  EXPECT_EQ(expand("", 0), Outcome::ok);
  EXPECT_EQ(expand(std::string(1, '\0'), 0), Outcome::ok);
  EXPECT_EQ(inflater_->size(), 0u);
}

TEST_F(WsDeflate, AStreamTakesNoMoreMemoryThanItsBoundSays) {
  const std::string message = noise(100'000);
  for (int bits = 9; bits <= 15; ++bits) {
    for (int level = 1; level <= 9; ++level) {
      deflater_ = Deflater::make(bits, 6, level);
      ASSERT_NE(deflater_, nullptr);
      EXPECT_LE(deflater_->allocated(), deflater_bytes(bits, level)) << bits << " " << level;
    }
    inflater_ = Inflater::make(bits);
    ASSERT_NE(inflater_, nullptr);
    ASSERT_EQ(expand(compress(message), message.size()), Outcome::ok);
    EXPECT_TRUE(expanded() == message);
    EXPECT_LE(inflater_->allocated(), inflater_bytes(bits)) << bits;
  }
}

}  // namespace
}  // namespace weft::net::ws
