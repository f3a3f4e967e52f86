// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/nkey.h"

#include <array>
#include <initializer_list>
#include <string>

#include "weft/nats/protocol/credentials.h"
#include "weft/nats/protocol/limits.h"
#include <gtest/gtest.h>

namespace weft::nats {
namespace {

// The example of the engine's documentation.
constexpr std::string_view kSeed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
constexpr std::string_view kPublic = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

Result<NKey> example() { return NKey::from_seed(kSeed); }

#define SKIP_WITHOUT_SODIUM()                      \
  if (example().error() == Errc::not_supported) {  \
    GTEST_SKIP() << "this build has no libsodium"; \
  }

TEST(NatsKey, ASeedMakesItsPublicKey) {
  SKIP_WITHOUT_SODIUM();
  const auto key = example();
  ASSERT_TRUE(key) << key.error().message();
  EXPECT_EQ(key->kind(), KeyKind::user);
  EXPECT_EQ(key->public_key(), kPublic);
  EXPECT_EQ(key->seed(), kSeed);
  EXPECT_EQ(NKey::from_seed(" \r\n" + std::string(kSeed) + "\n")->public_key(), kPublic);
}

// RFC 8032, 7.1, test 1.
TEST(NatsKey, SignsAsTheStandardDoes) {
  SKIP_WITHOUT_SODIUM();
  constexpr std::array<std::uint8_t, 32> kSecret = {0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a,
                                                    0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32,
                                                    0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};
  constexpr std::array<std::uint8_t, 64> kSignature = {
      0xe5, 0x56, 0x43, 0x00, 0xc3, 0x60, 0xac, 0x72, 0x90, 0x86, 0xe2, 0xcc, 0x80, 0x6e, 0x82, 0x8a,
      0x84, 0x87, 0x7f, 0x1e, 0xb8, 0xe5, 0xd9, 0x74, 0xd8, 0x73, 0xe0, 0x65, 0x22, 0x49, 0x01, 0x55,
      0x5f, 0xb8, 0x82, 0x15, 0x90, 0xa3, 0x3b, 0xac, 0xc6, 0x1e, 0x39, 0x70, 0x1c, 0xf9, 0xb4, 0x6b,
      0xd2, 0x5b, 0xf5, 0xf0, 0x59, 0x5b, 0xbe, 0x24, 0x65, 0x51, 0x41, 0x43, 0x8e, 0x7a, 0x10, 0x0b};
  const auto key = NKey::from_bytes(KeyKind::account, kSecret);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->sign({}), base64_url(kSignature));
  EXPECT_EQ(key->public_key().front(), 'A');
  EXPECT_EQ(key->seed().substr(0, 2), "SA");
}

TEST(NatsKey, EachKindIsReadBack) {
  SKIP_WITHOUT_SODIUM();
  std::array<std::uint8_t, 32> seed;
  seed.fill(0xFF);
  const std::pair<KeyKind, char> kinds[] = {{KeyKind::server, 'N'},
                                            {KeyKind::cluster, 'C'},
                                            {KeyKind::operators, 'O'},
                                            {KeyKind::account, 'A'},
                                            {KeyKind::user, 'U'}};
  for (const auto& [kind, letter] : kinds) {
    const auto key = NKey::from_bytes(kind, seed);
    EXPECT_EQ(key->public_key().front(), letter);
    EXPECT_EQ(key->seed()[1], letter);
    EXPECT_EQ(NKey::from_seed(key->seed())->public_key(), key->public_key());
    EXPECT_TRUE(is_public_key(kind, key->public_key()));
  }
}

TEST(NatsKey, AMovedKeyLeavesNoSeed) {
  SKIP_WITHOUT_SODIUM();
  NKey key = *example();
  const std::string signature = key.sign(as_bytes("nonce"));
  const NKey moved = std::move(key);
  EXPECT_EQ(moved.sign(as_bytes("nonce")), signature);
  EXPECT_NE(key.seed(), kSeed);  // NOLINT(bugprone-use-after-move): its memory was overwritten
}

TEST(NatsKey, AnyChangedCharacterIsRefused) {
  for (std::size_t i = 0; i < kSeed.size(); ++i) {
    std::string changed(kSeed);
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(NKey::from_seed(changed).error().code(), Errc::invalid_argument) << i;
    std::string other(kPublic.substr(0, 56));
    other[i % 56] = other[i % 56] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(is_public_key(KeyKind::user, other)) << i;
  }
  for (const std::string_view wrong : std::initializer_list<std::string_view>{
           std::string_view(), kSeed.substr(1), kPublic, std::string_view("SU"),
           std::string_view("sUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY")}) {
    EXPECT_EQ(NKey::from_seed(wrong).error().code(), Errc::invalid_argument) << wrong;
  }
  EXPECT_TRUE(is_public_key(KeyKind::user, kPublic));
  EXPECT_FALSE(is_public_key(KeyKind::account, kPublic));
}

TEST(NatsKey, Base64HasNoPadding) {
  EXPECT_EQ(base64_url({}), "");
  EXPECT_EQ(base64_url(as_bytes("f")), "Zg");
  EXPECT_EQ(base64_url(as_bytes("fo")), "Zm8");
  EXPECT_EQ(base64_url(as_bytes("foo")), "Zm9v");
  EXPECT_EQ(base64_url(as_bytes("\xFB\xFF")), "-_8");
}

std::string credentials_text(std::string_view jwt, std::string_view seed) {
  std::string text = "-----BEGIN NATS USER JWT-----\n";
  text.append(jwt).append("\n------END NATS USER JWT------\n\n************* IMPORTANT *************\n");
  text.append("-----BEGIN USER NKEY SEED-----\r\n").append(seed).append("\r\n------END USER NKEY SEED------\n\n***\n");
  return text;
}

TEST(NatsCredentials, ReadsTheTokenAndTheSeed) {
  const auto read = read_credentials(credentials_text("a-_.b.c", kSeed));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->jwt.text(), "a-_.b.c");
  EXPECT_EQ(read->seed.text(), kSeed);
  EXPECT_TRUE(read_credentials("---BEGIN OTHER---\nx\n---END OTHER---\n" + credentials_text("a.b.c", kSeed)));
}

TEST(NatsCredentials, RefusesAFileOfAnotherForm) {
  const std::string whole = credentials_text("a.b.c", kSeed);
  for (const std::string& text :
       {std::string(), whole + whole, credentials_text("", kSeed), credentials_text("a.b.c", ""),
        credentials_text("a.b", kSeed), credentials_text("a.b.c\nd", kSeed), credentials_text("a.b.c!", kSeed),
        whole.substr(0, whole.find("------END USER")), whole + std::string(kCredentialsMax, ' ')}) {
    EXPECT_EQ(read_credentials(text).error().code(), Errc::invalid_argument) << text.substr(0, 200);
  }
}

}  // namespace
}  // namespace weft::nats
