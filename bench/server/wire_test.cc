// SPDX-License-Identifier: MIT
#include "bench/server/wire.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace bench {
namespace {

std::vector<std::uint8_t> make_body(std::uint64_t tag, std::size_t size) {
  std::vector<std::uint8_t> body(size);
  for (std::size_t i = kBodyMin; i < size; ++i) {
    body[i] = static_cast<std::uint8_t>(i * 7);
  }
  const std::uint64_t checksum = checksum_of(tag, hash_of(Bytes(body).subspan(kBodyMin)));
  std::memcpy(body.data(), &tag, sizeof tag);
  std::memcpy(body.data() + 8, &checksum, sizeof checksum);
  return body;
}

TEST(Wire, AHeaderIsTwelveBytesInNetworkOrder) {
  std::array<std::uint8_t, kHeaderSize> bytes{};
  encode_header({2, 0x01020304, 0x05060708}, bytes.data());
  EXPECT_EQ(bytes, (std::array<std::uint8_t, kHeaderSize>{2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0}));
  const Header header = decode_header(bytes.data());
  EXPECT_EQ(header.version, 2);
  EXPECT_EQ(header.id, 0x01020304U);
  EXPECT_EQ(header.body_size, 0x05060708U);
}

TEST(Wire, EveryDamagedByteIsFound) {
  for (const std::size_t size : {kBodyMin, std::size_t{17}, std::size_t{64}, std::size_t{100}, std::size_t{1'031}}) {
    std::vector<std::uint8_t> body = make_body(make_tag(3, 5), size);
    ASSERT_TRUE(intact(body)) << size;
    for (std::uint8_t& byte : body) {
      byte ^= 0x10;
      EXPECT_FALSE(intact(body)) << size;
      byte ^= 0x10;
    }
  }
}

TEST(Wire, ExchangedWordsAreFound) {
  std::vector<std::uint8_t> body = make_body(make_tag(0, 0), 256);
  for (std::size_t one = kBodyMin; one + 8 < body.size(); one += 8) {
    std::swap_ranges(body.begin() + static_cast<ptrdiff_t>(one), body.begin() + static_cast<ptrdiff_t>(one) + 8,
                     body.begin() + static_cast<ptrdiff_t>(one) + 8);
    EXPECT_FALSE(intact(body)) << one;
    std::swap_ranges(body.begin() + static_cast<ptrdiff_t>(one), body.begin() + static_cast<ptrdiff_t>(one) + 8,
                     body.begin() + static_cast<ptrdiff_t>(one) + 8);
  }
}

struct Seen {
  std::uint64_t count;
  std::uint64_t bad;
};

Seen check(const std::vector<std::uint64_t>& sequence, bool damage = false) {
  StreamCheck stream;
  for (const std::uint64_t number : sequence) {
    std::vector<std::uint8_t> body = make_body(make_tag(1, number), 64);
    body[40] ^= damage ? 1 : 0;
    stream.take(body);
  }
  std::array<std::uint8_t, StreamCheck::kSyncSize> answer{};
  stream.answer(std::array<std::uint8_t, StreamCheck::kSyncSize>{}, answer.data());
  return {load_word<std::uint64_t>(answer.data() + kBodyMin), load_word<std::uint64_t>(answer.data() + kBodyMin + 8)};
}

TEST(StreamCheck, CountsWhatIsLostDoubledOvertakenOrDamaged) {
  EXPECT_EQ(check({7, 8, 9, 10}).count, 4U);
  EXPECT_EQ(check({7, 8, 9, 10}).bad, 0U);
  EXPECT_EQ(check({7, 8, 10}).bad, 1U);
  EXPECT_EQ(check({7, 8, 8, 9}).bad, 1U);
  EXPECT_EQ(check({7, 9, 8, 10}).bad, 3U);
  EXPECT_EQ(check({7, 8, 9}, true).bad, 3U);
}

TEST(StreamCheck, ABodyThatIsTooShortIsBad) {
  StreamCheck stream;
  stream.take(std::array<std::uint8_t, 4>{});
  std::array<std::uint8_t, StreamCheck::kSyncSize> answer{};
  stream.answer(std::array<std::uint8_t, StreamCheck::kSyncSize>{}, answer.data());
  EXPECT_EQ(load_word<std::uint64_t>(answer.data() + kBodyMin + 8), 1U);
}

}  // namespace
}  // namespace bench
