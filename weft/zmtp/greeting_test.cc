// SPDX-License-Identifier: MIT
#include "weft/zmtp/greeting.h"

#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

// The first prefix that decides the result, and the result.
struct Verdict {
  std::size_t shown = 0;
  GreetingResult result;
};

Verdict feed_by_byte(const Buffer& stream) {
  for (std::size_t shown = 0; shown <= stream.size(); ++shown) {
    const GreetingResult result = parse_greeting(Bytes(stream).first(shown));
    if (result.status != ParseStatus::need_more) {
      return {shown, result};
    }
  }
  return {stream.size(), {}};
}

TEST(Greeting, IsLaidOutAsTheRfcSays) {
  Greeting greeting;
  greeting.set_mechanism("CURVE");
  greeting.as_server = true;
  Buffer bytes(kGreetingSize, 0xEE);
  write_greeting(bytes.data(), greeting);
  Buffer expected = wire("FF 00 00 00 00 00 00 00 01 7F 03 01 'CURVE' 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01");
  expected.resize(kGreetingSize);
  EXPECT_EQ(bytes, expected);
}

TEST(Greeting, NeedsAllItsBytesAndReadsThemBack) {
  const Verdict verdict = feed_by_byte(greeting_bytes(3, 0, "PLAIN"));
  EXPECT_EQ(verdict.shown, kGreetingSize);
  ASSERT_EQ(verdict.result.status, ParseStatus::complete);
  EXPECT_EQ(verdict.result.greeting.major, 3);
  EXPECT_EQ(verdict.result.greeting.minor, 0);
  EXPECT_EQ(verdict.result.greeting.mechanism(), "PLAIN");
  EXPECT_FALSE(verdict.result.greeting.as_server);
}

TEST(Greeting, MechanismMayFillItsWholeField) {
  const GreetingResult result = parse_greeting(greeting_bytes(3, 1, "ABCDEFGHIJKLMNOPQRST"));
  EXPECT_EQ(result.greeting.mechanism(), "ABCDEFGHIJKLMNOPQRST");
}

TEST(Greeting, LeavesWhatFollowsAlone) {
  EXPECT_EQ(parse_greeting(greeting_bytes(3, 1) + wire("04 01")).status, ParseStatus::complete);
}

TEST(Greeting, IgnoresPaddingFillerAndAsServer) {
  Buffer bytes = greeting_bytes(3, 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if ((i >= 1 && i <= 8) || i >= 32) {
      bytes[i] = 0xA5;
    }
  }
  EXPECT_EQ(feed_by_byte(bytes).result.status, ParseStatus::complete);
}

TEST(Greeting, RefusesOtherProtocolsFromTheFirstByteThatShowsThem) {
  struct Case {
    std::string_view bytes;
    std::size_t shown;
    std::string_view problem;
  };
  const Case cases[] = {
      {"'GET / HTTP/1.1'", 2, "not ZMTP: peer sent text, as HTTP or SSH do"},
      {"'SSH-2.0-x'", 2, "not ZMTP: peer sent text, as HTTP or SSH do"},
      {"16 03 01 02 00", 2, "not ZMTP: peer sent a TLS record"},
      {"00 00 00 00", 1, "not ZMTP: bad signature"},
      {"FE 01 00 00", 2, "not ZMTP: bad signature"},
      {"FF 00000000 00000001 02 03", 10, "not ZMTP: bad signature"},  // flags that no peer sends
      {"FF 00000000 00000000 00 03", 10, "not ZMTP: bad signature"},  // no room for flags
      {"FF 00000000 00000101 00 03", 10, "not ZMTP: bad signature"},  // an identity of 256 bytes
      {"FF 01000000 00000001 00 03", 10, "not ZMTP: bad signature"},
      {"01 00", 2, "peer speaks ZMTP 2.0 or older"},
  };
  for (const auto& [bytes, shown, problem] : cases) {
    const Verdict verdict = feed_by_byte(wire(bytes));
    EXPECT_EQ(verdict.shown, shown) << bytes;
    EXPECT_EQ(verdict.result.status, ParseStatus::malformed) << bytes;
    EXPECT_EQ(verdict.result.problem.c_str(), problem) << bytes;
  }
}

TEST(Greeting, RefusesOlderVersionsFromTheFirstByteThatShowsThem) {
  // ZMTP 1.0 with a long identity: the tenth byte is a flags byte without bit 0. Then the revisions below 3.
  Buffer long_identity = greeting_bytes(3, 1);
  long_identity[9] = 0x7E;
  EXPECT_EQ(feed_by_byte(long_identity).shown, 10U);
  EXPECT_STREQ(feed_by_byte(long_identity).result.problem, "peer speaks ZMTP 2.0 or older");
  for (const std::uint8_t major : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}}) {
    const Verdict verdict = feed_by_byte(greeting_bytes(major, 1));
    EXPECT_EQ(verdict.shown, 11U);
    EXPECT_EQ(verdict.result.status, ParseStatus::malformed);
    EXPECT_STREQ(verdict.result.problem, "peer speaks ZMTP 2.0 or older");
  }
}

TEST(Greeting, TellsVersionsApart) {
  const std::pair<std::string_view, Version> cases[] = {
      {"", Version::unknown},
      {"01", Version::unknown},
      {"01 00", Version::v1},
      {"01 7E", Version::v1},
      {"FE 00", Version::v1},
      {"01 7F", Version::foreign},
      {"FF 00000000 000000", Version::unknown},
      {"FF 00000000 00000100 00", Version::v1},
      {"FF 00000000 00000001 7E", Version::v1},
      {"FF 00000000 00000001 7F", Version::unknown},
      {"FF 00000000 00000001 7F 00", Version::v1_signed},
      {"FF 00000000 00000000 7F 01", Version::v2},
      {"FF 01234567 89ABCDEF 01 02", Version::v2},
      {"FF 00000000 00000001 7F 03", Version::v3},
      {"FF 00000000 00000001 7F FF", Version::v3},
  };
  for (const auto& [bytes, version] : cases) {
    const Recognition seen = recognize_version(wire(bytes));
    EXPECT_EQ(seen.version, version) << bytes;
    EXPECT_EQ(seen.has_signature, wire(bytes).size() >= kSignatureSize && version != Version::v1) << bytes;
  }
}

TEST(Greeting, SignatureHoldsTheSizeOfOurIdentityForPeersThatReadItAsAFrame) {
  Buffer bytes(kGreetingSize);
  write_greeting(bytes.data(), {}, 255);
  EXPECT_EQ(Buffer(bytes.begin(), bytes.begin() + kSignatureSize), wire("FF 00000000 00000100 7F"));
}

TEST(Greeting, TakesLaterMajorVersions) {
  const Verdict verdict = feed_by_byte(greeting_bytes(4, 0));
  ASSERT_EQ(verdict.result.status, ParseStatus::complete);
  EXPECT_EQ(verdict.result.greeting.major, 4);
}

}  // namespace
}  // namespace weft::zmtp::test
