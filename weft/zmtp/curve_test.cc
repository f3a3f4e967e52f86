// SPDX-License-Identifier: MIT
#include "weft/zmtp/curve.h"

#include <memory>

#include "weft/zmtp/local_end.h"
#include "weft/zmtp/test_security.h"
#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

class Curve : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!curve_available()) {
      GTEST_SKIP() << "this build has no libsodium";
    }
    server_keys_ = *make_curve_key_pair();
    client_keys_ = *make_curve_key_pair();
  }
  [[nodiscard]] LocalEnd client() const {
    return secured(WireType::dealer, make_curve_client(client_keys_, server_keys_.public_key));
  }
  [[nodiscard]] LocalEnd server() const {
    return secured(WireType::router, make_curve_server(server_keys_.secret_key));
  }

  CurveKeyPair server_keys_;
  CurveKeyPair client_keys_;
};

Buffer sealed(Mechanism& cipher, std::uint8_t flags, std::string_view body) {
  Buffer out(body.size() + kSealOverhead);
  cipher.seal(out.data(), flags, as_bytes(body));
  return out;
}

// Takes the output that `from` offers.
Buffer take_output(LocalEnd& from) {
  Buffer out = copy_of(from.pending_output());
  from.consume_output(out.size());
  return out;
}

TEST_F(Curve, BothAreReadyHoweverTheBytesAreCut) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, std::size_t{4096}}) {
    LocalEnd ours = client();
    LocalEnd theirs = server();
    std::vector<std::string> asked;
    shake(ours, theirs, piece, kAdmitted, &asked);
    ASSERT_TRUE(ours.ready());
    ASSERT_TRUE(theirs.ready());
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0], as_text(client_keys_.public_key));
    EXPECT_EQ(theirs.peer_type(), WireType::dealer);
    EXPECT_EQ(ours.peer_type(), WireType::router);
  }
}

TEST_F(Curve, CommandsHaveTheSizesOfTheRfc) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  Buffer greeting = take_output(theirs);
  EXPECT_EQ(ours.handle_input(greeting, kStart), 64U);
  const Buffer hello = take_output(ours);
  EXPECT_EQ(hello.size(), 64U + 2 + 200);
  EXPECT_EQ(theirs.handle_input(hello, kStart), hello.size());
  const Buffer welcome = take_output(theirs);
  EXPECT_EQ(welcome.size(), 2U + 168);
  EXPECT_EQ(ours.handle_input(welcome, kStart), welcome.size());
  const Buffer initiate = take_output(ours);
  // Socket-Type DEALER and an empty Identity.
  EXPECT_EQ(initiate.size(), 9U + 257 + (1 + 11 + 4 + 6) + (1 + 8 + 4));
}

TEST_F(Curve, TrafficComesOutAsItWentIn) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  shake(ours, theirs, 4096, kAdmitted);
  ASSERT_NE(ours.cipher(), nullptr);
  ASSERT_NE(theirs.cipher(), nullptr);
  for (const std::uint8_t flags : {std::uint8_t{0}, kMore, kCommand}) {
    for (const std::string_view body :
         {"", "hello", "a rather longer text that does not fit into one block of the cipher"}) {
      for (Mechanism* cipher : {ours.cipher(), theirs.cipher()}) {
        Mechanism* const other = cipher == ours.cipher() ? theirs.cipher() : ours.cipher();
        Buffer box = sealed(*cipher, flags, body);
        EXPECT_EQ(copy_of(Bytes(box).first(8)), wire("07 'MESSAGE'"));
        std::uint8_t found = 0xFF;
        ASSERT_EQ(other->open(box, found), Breach::none);
        EXPECT_EQ(found, flags);
        EXPECT_EQ(as_text(Bytes(box).subspan(kSealOverhead)), body);
      }
    }
  }
}

TEST_F(Curve, ARepeatedMessageIsRefused) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  shake(ours, theirs, 4096, kAdmitted);
  const Buffer first = sealed(*ours.cipher(), 0, "pay 1");
  const Buffer second = sealed(*ours.cipher(), 0, "pay 2");
  std::uint8_t flags = 0;
  for (Buffer again : {first, second}) {
    EXPECT_EQ(theirs.cipher()->open(again, flags), Breach::none);
  }
  for (Buffer again : {first, second}) {
    EXPECT_EQ(theirs.cipher()->open(again, flags), Breach::invalid_sequence);
  }
  Buffer mirrored = sealed(*ours.cipher(), 0, "to whom");
  EXPECT_EQ(ours.cipher()->open(mirrored, flags), Breach::cryptographic)
      << "the two directions have keys or nonces of their own";
}

TEST_F(Curve, AChangedOrCutMessageIsRefused) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  shake(ours, theirs, 4096, kAdmitted);
  const Buffer box = sealed(*ours.cipher(), 0, "hello");
  std::uint8_t flags = 0;
  for (std::size_t i = 0; i < box.size(); ++i) {
    Buffer changed = box;
    changed[i] ^= 0x40;
    EXPECT_NE(theirs.cipher()->open(changed, flags), Breach::none) << i;
    Buffer cut(box.begin(), box.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(theirs.cipher()->open(cut, flags), Breach::none) << i;
  }
  Buffer whole = box;
  EXPECT_EQ(theirs.cipher()->open(whole, flags), Breach::none) << "what was refused changed nothing";
}

TEST_F(Curve, AClientWithAnotherServerKeyGetsNowhere) {
  LocalEnd ours = secured(WireType::dealer, make_curve_client(client_keys_, client_keys_.public_key));
  LocalEnd theirs = server();
  shake(ours, theirs, 4096, kAdmitted);
  ASSERT_TRUE(theirs.fault());
  EXPECT_EQ(theirs.fault()->code, Errc::protocol_error);
  EXPECT_FALSE(ours.ready());
}

TEST_F(Curve, AClientWhoseKeysAreNoPairGetsNowhere) {
  CurveKeyPair keys = client_keys_;
  keys.public_key = make_curve_key_pair()->public_key;  // a key of another pair
  LocalEnd ours = secured(WireType::dealer, make_curve_client(keys, server_keys_.public_key));
  LocalEnd theirs = server();
  shake(ours, theirs, 4096, kAdmitted);
  ASSERT_TRUE(theirs.fault());
  EXPECT_STREQ(theirs.fault()->text, "the client's vouch cannot be decrypted");
}

TEST_F(Curve, AKeyThatIsNoneIsNoCrash) {
  LocalEnd ours = secured(WireType::dealer, make_curve_client(client_keys_, CurveKey{}));
  LocalEnd theirs = secured(WireType::router, make_curve_server(CurveKey{}));
  shake(ours, theirs, 4096, kAdmitted);
  EXPECT_FALSE(ours.ready());
}

TEST_F(Curve, ARefusedClientLearnsTheStatus) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  shake(ours, theirs, 4096, kRefused);
  EXPECT_EQ(theirs.refusal_status(), kRefused);
  EXPECT_FALSE(theirs.ready());
  EXPECT_EQ(ours.refusal_status(), kRefused);
  EXPECT_FALSE(ours.ready());
}

TEST_F(Curve, CutOrChangedCommandsAreFaults) {
  // For each handshake command: one byte less, and each of its bytes changed.
  for (int step = 0; step < 4; ++step) {
    for (std::size_t variant = 0; variant < 120; ++variant) {
      LocalEnd ours = client();
      LocalEnd theirs = server();
      (void)theirs.handle_input(Bytes(take_output(ours)), kStart);
      (void)ours.handle_input(take_output(theirs), kStart);
      LocalEnd* from = &ours;
      LocalEnd* to = &theirs;
      for (int done = 0; done < step; ++done, std::swap(from, to)) {
        (void)to->handle_input(take_output(*from), kStart);
        if (to->question() != nullptr) {
          to->answer(kAdmitted, kStart);
        }
      }
      const Buffer frame = take_output(*from);
      ZmtpFrameHeader header;
      ASSERT_EQ(parse_frame_header(frame, header), ParseStatus::complete);
      Buffer body(frame.begin() + header.header_size, frame.end());
      // Leaves the names alone, and HELLO's padding, which no side checks.
      const std::size_t from_byte = std::size_t{1} + body[0];
      const std::size_t at = from_byte + variant * 7;
      if (variant == 0) {
        body.pop_back();
      } else if (at >= body.size()) {
        break;
      } else if (step == 0 && at >= 8 && at < 80) {
        continue;
      } else {
        body[at] ^= 0x10;
      }
      (void)to->handle_input(command_frame(body), kStart);
      EXPECT_TRUE(to->fault()) << step << " " << at;
      EXPECT_EQ(to->question(), nullptr);
      EXPECT_FALSE(to->ready());
    }
  }
}

TEST_F(Curve, ARecordedHandshakeDoesNotOpenAnotherConnection) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  (void)ours.handle_input(take_output(theirs), kStart);
  const Buffer hello = take_output(ours);
  (void)theirs.handle_input(hello, kStart);
  (void)ours.handle_input(take_output(theirs), kStart);
  const Buffer initiate = take_output(ours);
  theirs.start(kStart);
  theirs.consume_output(64);
  (void)theirs.handle_input(hello, kStart);
  EXPECT_FALSE(theirs.fault());
  (void)theirs.handle_input(initiate, kStart);
  ASSERT_TRUE(theirs.fault());
  EXPECT_STREQ(theirs.fault()->text, "INITIATE has another cookie");
}

TEST_F(Curve, APeerServesOneConnectionAfterTheOther) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  for (int connection = 0; connection < 2; ++connection) {
    ours.start(kStart);
    theirs.start(kStart);
    shake(ours, theirs, 64, kAdmitted);
    ASSERT_TRUE(ours.ready());
    ASSERT_TRUE(theirs.ready());
    Buffer box = sealed(*theirs.cipher(), 0, "hello");
    std::uint8_t flags = 0;
    EXPECT_EQ(ours.cipher()->open(box, flags), Breach::none);
  }
}

TEST_F(Curve, ThePublicKeyFollowsFromTheSecretOne) {
  EXPECT_EQ(*curve_public_key(client_keys_.secret_key), client_keys_.public_key);
}

}  // namespace
}  // namespace weft::zmtp::test
