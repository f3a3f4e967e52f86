// SPDX-License-Identifier: MIT
#include "weft/net/tls/tls.h"

#include <gtest/gtest.h>

#ifdef WEFT_HAVE_OPENSSL

#include "weft/base/random.h"
#include "weft/net/tls/test_tls.h"

namespace weft::net {
namespace {

using test::numbered;
using test::Pipe;
using test::PipeStream;
using test::read_all;
using test::Status;
using test::TestAuthority;
using test::TlsTest;
using test::touch;
using test::write;

constexpr std::size_t kRecord = 16 * 1024;
constexpr std::size_t kOverhead = 22;  // of a record with AES-GCM: header, kind, tag

TEST_F(TlsTest, BytesGoBothWaysAndAreNotSeenInBetween) {
  connect();
  EXPECT_EQ(write(*client_, "from the client").bytes, 15u);
  EXPECT_EQ(up_.bytes.find("client"), std::string::npos);
  EXPECT_EQ(read_all(*server_), "from the client");
  EXPECT_EQ(write(*server_, "from the server").bytes, 15u);
  EXPECT_EQ(read_all(*client_), "from the server");
  EXPECT_EQ(server_->peer_address(), "pipe");
}

TEST_F(TlsTest, NothingIsTakenBeforeTheHandshakeIsOver) {
  make(server_options(), client_options());
  begin();
  EXPECT_FALSE(client_->state().established);
  EXPECT_EQ(write(*client_, "early").status, Status::would_block);
  shake_hands();
  EXPECT_EQ(write(*client_, "in time").bytes, 7u);
  EXPECT_EQ(read_all(*server_), "in time");
}

TEST_F(TlsTest, BytesArriveInOrderHoweverTheTransportCutsAndStopsThem) {
  make(server_options(), client_options());
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    begin("localhost", &random);
    shake_hands();
    up_.room = 1 + random.below(40'000);
    const std::string sent = numbered(random.below(100'000));
    std::string got;
    std::size_t taken = 0;
    while (got.size() < sent.size()) {
      Bytes parts[5];
      std::size_t at = taken;
      for (Bytes& part : parts) {
        part = as_bytes(sent).subspan(at, std::min<std::size_t>(random.below(30'000), sent.size() - at));
        at += part.size();
      }
      const sys::IoResult result = client_->write(parts);
      ASSERT_NE(result.status, Status::failed);
      taken += result.bytes;
      got += read_all(*server_, nullptr, 1 + random.below(70'000));
    }
    EXPECT_EQ(got, sent);
    EXPECT_FALSE(client_->state().unsent);
    server_.reset();  // before the random numbers by which the transport cuts their last bytes
    client_.reset();
  }
}

TEST_F(TlsTest, PartsShareARecordAndALargePartIsCutIntoFullOnes) {
  connect();
  const std::string small(100, 's');
  const std::vector<Bytes> parts(20, as_bytes(small));
  EXPECT_EQ(client_->write(parts).bytes, 2000u);
  EXPECT_EQ(up_.bytes.size(), 2000 + kOverhead);
  (void)read_all(*server_);
  const std::string large(4 * kRecord - 12, 'l');
  const Bytes frame[] = {as_bytes(small).first(12), as_bytes(large)};
  EXPECT_EQ(client_->write(frame).bytes, 4 * kRecord);
  EXPECT_EQ(up_.bytes.size(), 4 * (kRecord + kOverhead));
}

TEST_F(TlsTest, BytesThatTheSocketDoesNotTakeAreHeldUpToARecordAndGoOutFirst) {
  connect();
  up_.room = 1000;
  const std::string sent = numbered(10 * kRecord);
  EXPECT_EQ(write(*client_, sent).bytes, kRecord);
  EXPECT_TRUE(client_->state().unsent);
  EXPECT_EQ(write(*client_, "meanwhile").status, Status::would_block);
  EXPECT_EQ(read_all(*server_), "");  // less than a record
  EXPECT_EQ(client_->write({}).status, Status::done);
  EXPECT_EQ(client_->write({}).status, Status::would_block) << "some is held, and nothing moved";
  EXPECT_TRUE(client_->state().unsent);
  up_.room = 1 << 20;
  // The caller may pass other bytes than in the refused write.
  EXPECT_EQ(write(*client_, "and then").bytes, 8u);
  EXPECT_FALSE(client_->state().unsent);
  EXPECT_EQ(read_all(*server_), sent.substr(0, kRecord) + "and then");
}

TEST_F(TlsTest, AReadWithLittleRoomLeavesTheRestForTheNext) {
  connect();
  const std::string sent = numbered(5 * kRecord);
  EXPECT_EQ(write(*client_, sent).bytes, sent.size());
  std::uint8_t few[10];
  std::uint8_t more[1000];
  MutableBytes into[] = {few, more};
  EXPECT_EQ(server_->read(into).bytes, 1010u);
  EXPECT_EQ(as_text(few), sent.substr(0, 10));
  EXPECT_EQ(as_text(more), sent.substr(10, 1000));
  EXPECT_EQ(read_all(*server_, nullptr, 333), sent.substr(1010));
}

// --- the end ---

TEST_F(TlsTest, TheEndIsToldBehindTheLastBytesAndTheOtherDirectionGoesOn) {
  connect();
  EXPECT_EQ(write(*client_, "last words").bytes, 10u);
  client_->shutdown_write();
  std::vector<std::uint8_t> block(1000);
  MutableBytes into(block);
  EXPECT_EQ(server_->read({&into, 1}).bytes, 10u);
  EXPECT_TRUE(server_->state().ended);  // no event will announce it
  EXPECT_EQ(server_->read({&into, 1}).status, Status::end_of_stream);
  EXPECT_EQ(server_->read({&into, 1}).status, Status::end_of_stream);
  EXPECT_EQ(write(*server_, "an answer").bytes, 9u);
  server_->shutdown_write();
  EXPECT_EQ(read_all(*client_), "an answer");
  EXPECT_TRUE(up_.ended && down_.ended);
}

TEST_F(TlsTest, TheEndWaitsForWhatIsHeld) {
  connect();
  up_.room = 100;
  EXPECT_EQ(write(*client_, numbered(1000)).bytes, 1000u);
  client_->shutdown_write();
  EXPECT_FALSE(up_.ended);
  up_.room = 1 << 20;
  EXPECT_EQ(client_->write({}).status, Status::done);
  EXPECT_TRUE(up_.ended);
  Status last{};
  EXPECT_EQ(read_all(*server_, &last), numbered(1000));
  EXPECT_EQ(last, Status::end_of_stream);
}

TEST_F(TlsTest, AStreamThatEndsWithoutTheEndOfItsTlsFailsBehindItsBytes) {
  connect();
  EXPECT_EQ(write(*client_, "half of a").bytes, 9u);
  up_.ended = true;
  Status last{};
  EXPECT_EQ(read_all(*server_, &last), "half of a");
  EXPECT_EQ(last, Status::failed);
  EXPECT_EQ(server_->state().failure, Errc::connection_closed);
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_EQ(write(*server_, "x").status, Status::failed);
}

TEST_F(TlsTest, AStreamThatIsDestroyedAnnouncesItsEnd) {
  connect();
  EXPECT_EQ(write(*client_, "last words").bytes, 10u);
  client_.reset();
  Status last{};
  EXPECT_EQ(read_all(*server_, &last), "last words");
  EXPECT_EQ(last, Status::end_of_stream);
}

TEST_F(TlsTest, AStreamThatIsDestroyedInsideARecordAnnouncesNoEnd) {
  connect();
  up_.room = 100;
  EXPECT_EQ(write(*client_, numbered(1000)).bytes, 1000u);
  up_.room = 1 << 20;
  client_.reset();
  EXPECT_EQ(up_.bytes.size(), 100u);
  up_.ended = true;
  Status last{};
  EXPECT_EQ(read_all(*server_, &last), "");
  EXPECT_EQ(last, Status::failed);
}

TEST_F(TlsTest, AFailureOfTheSocketIsTheSockets) {
  connect();
  up_.broken = true;
  std::uint8_t block[10];
  MutableBytes into(block);
  const sys::IoResult result = server_->read({&into, 1});
  EXPECT_EQ(result.status, Status::failed);
  EXPECT_EQ(result.os_errno, ECONNRESET);
  EXPECT_EQ(server_->state().failure, Errc::ok);
  down_.broken = true;
  EXPECT_EQ(write(*client_, "x").os_errno, EPIPE);
}

TEST_F(TlsTest, AHandshakeThatBreaksOffIsToldAsSuch) {
  make(server_options(), client_options());
  begin();
  up_.bytes.resize(up_.bytes.size() / 2);
  EXPECT_EQ(touch(*server_), Status::would_block);
  up_.ended = true;
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_EQ(server_->state().failure, Errc::connection_closed);
  begin();  // part and end at once: no second event announces the end
  up_.bytes.resize(up_.bytes.size() / 2);
  up_.ended = true;
  EXPECT_EQ(touch(*server_), Status::failed);
}

// --- peers that do not speak TLS correctly ---

TEST_F(TlsTest, PlainTextAndGarbageAreRefusedWithAReason) {
  make(server_options(), client_options());
  begin();
  up_.bytes = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_EQ(server_->state().failure, Errc::protocol_error);
  EXPECT_STREQ(server_->state().failure.text(), "http request");
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    begin();
    up_.bytes.resize(random.below(2000));
    std::generate(up_.bytes.begin(), up_.bytes.end(), [&] { return static_cast<char>(random.below(256)); });
    up_.ended = true;
    EXPECT_EQ(touch(*server_), Status::failed);  // at the latest by the end, which is read at once
    EXPECT_FALSE(server_->state().failure == Errc::ok);
  }
}

TEST_F(TlsTest, AHelloThatClaimsMuchIsRefusedBeforeThereIsRoomForIt) {
  make(server_options(), client_options());
  begin();
  up_.bytes = std::string("\x16\x03\x01\x00\x04\x01\x01\xFF\xFF", 9);
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_STREQ(server_->state().failure.text(), "the hello of a TLS client exceeds its limit");
}

TEST_F(TlsTest, AHandshakeWithOneByteChangedComesToNothing) {
  make(server_options(), client_options());
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    begin();
    const std::size_t at = 5 + random.below(up_.bytes.size() - 5);  // some bytes of a record's header are not checked
    up_.bytes[at] = static_cast<char>(up_.bytes[at] ^ (1 + random.below(255)));
    shake_hands();
    EXPECT_FALSE(client_->state().established && server_->state().established) << "byte " << at;
  }
}

TEST_F(TlsTest, ARecordWithOneByteChangedFailsAndGivesNothing) {
  connect();
  EXPECT_EQ(write(*client_, "something to change").bytes, 19u);
  up_.bytes[8] = static_cast<char>(up_.bytes[8] ^ 1);
  Status last{};
  EXPECT_EQ(read_all(*server_, &last), "");
  EXPECT_EQ(last, Status::failed);
  EXPECT_EQ(server_->state().failure, Errc::protocol_error);
}

}  // namespace
}  // namespace weft::net

#else

namespace weft::net {
namespace {

TEST(NoTlsTest, ABuildWithoutOpenSslSaysSo) {
  EXPECT_FALSE(tls_available());
  std::string said;
  for (std::string* const why : {static_cast<std::string*>(nullptr), &said}) {
    EXPECT_EQ(TlsServer::make({}, why).error(), Errc::not_supported);
    EXPECT_EQ(TlsClient::make({}, why).error(), Errc::not_supported);
  }
  EXPECT_NE(said.find("OpenSSL"), std::string::npos);
}

}  // namespace
}  // namespace weft::net

#endif
