// SPDX-License-Identifier: MIT
// TLS and peers that send useless records: an end of OpenSSL's own, by hand.
#ifdef WEFT_HAVE_OPENSSL

#include <openssl/ssl.h>

#include <vector>

#include "weft/net/tls/test_tls.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

using test::Pipe;
using test::read_all;
using test::Status;
using test::TlsTest;
using test::touch;

class TlsFloodTest : public TlsTest {
 protected:
  ~TlsFloodTest() override {
    SSL_free(raw_);
    SSL_CTX_free(ctx_);
  }

  // The peer is a client, and our end is server_.
  void face_client() {
    make(server_options(), client_options());
    begin();
    client_.reset();
    up_ = {};
    begin_raw(TLS_client_method());
    SSL_set_connect_state(raw_);
    shake_raw_hands(*server_, down_, up_);
  }
  // The peer is a server, and our end is client_.
  void face_server() {
    const auto files = authority_.issue("server");
    make(server_options(), client_options());
    begin();
    server_.reset();
    down_ = {};
    begin_raw(TLS_server_method());
    ASSERT_EQ(SSL_use_certificate_file(raw_, files.certificate.c_str(), SSL_FILETYPE_PEM), 1);
    ASSERT_EQ(SSL_use_PrivateKey_file(raw_, files.key.c_str(), SSL_FILETYPE_PEM), 1);
    SSL_set_accept_state(raw_);
    shake_raw_hands(*client_, up_, down_);
  }
  void flush(Pipe& out) {
    char bytes[4096];
    for (int size = 0; (size = BIO_read(raw_out_, bytes, sizeof bytes)) > 0;) {
      out.bytes.append(bytes, static_cast<std::size_t>(size));
    }
  }
  void renew_keys(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(SSL_key_update(raw_, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
      ASSERT_EQ(SSL_do_handshake(raw_), 1);
    }
  }
  static void expect_cut(ByteStream& stream) {
    Status last{};
    EXPECT_EQ(read_all(stream, &last), "");
    EXPECT_EQ(last, Status::failed);
    EXPECT_EQ(stream.state().failure.code(), Errc::protocol_error);
    EXPECT_STREQ(stream.state().failure.text(), "more key updates and tickets than the limit");
  }

  SSL* raw_ = nullptr;

 private:
  void begin_raw(const SSL_METHOD* method) {
    ctx_ = SSL_CTX_new(method);
    raw_ = SSL_new(ctx_);
    raw_in_ = BIO_new(BIO_s_mem());
    raw_out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(raw_in_, -1);
    SSL_set_bio(raw_, raw_in_, raw_out_);
  }
  void shake_raw_hands(ByteStream& ours, Pipe& to_raw, Pipe& from_raw) {
    for (int i = 0; i < 10 && !(SSL_is_init_finished(raw_) == 1 && ours.state().established); ++i) {
      BIO_write(raw_in_, to_raw.bytes.data(), static_cast<int>(to_raw.bytes.size()));
      to_raw.bytes.clear();
      (void)SSL_do_handshake(raw_);
      flush(from_raw);
      (void)touch(ours);
    }
    ASSERT_TRUE(ours.state().established);
  }

  SSL_CTX* ctx_ = nullptr;
  BIO* raw_in_ = nullptr;  // the SSL's, as is the next
  BIO* raw_out_ = nullptr;
};

TEST_F(TlsFloodTest, AClientThatRenewsItsKeysWithoutEndIsCut) {
  face_client();
  renew_keys(1000);
  flush(up_);
  expect_cut(*server_);
}

TEST_F(TlsFloodTest, AServerThatRenewsItsKeysWithoutEndIsCut) {
  face_server();
  renew_keys(1000);
  flush(down_);
  expect_cut(*client_);
}

TEST_F(TlsFloodTest, AServerThatGivesTicketsWithoutEndIsCut) {
  face_server();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(SSL_new_session_ticket(raw_), 1);
    ASSERT_EQ(SSL_do_handshake(raw_), 1);
  }
  flush(down_);
  expect_cut(*client_);
}

TEST_F(TlsFloodTest, BytesInFrontOfAFloodAreRead) {
  face_client();
  std::size_t sent = 0;
  ASSERT_EQ(SSL_write_ex(raw_, "before", 6, &sent), 1);
  renew_keys(1000);
  flush(up_);
  Status last{};
  EXPECT_EQ(read_all(*server_, &last), "before");
  EXPECT_EQ(last, Status::failed);
}

TEST_F(TlsFloodTest, AReadOfTinyRecordsStopsAndSaysThatMoreIsThere) {
  face_client();
  constexpr std::size_t kRecords = 20'000;
  for (std::size_t i = 0; i < kRecords; ++i) {
    std::size_t sent = 0;
    ASSERT_EQ(SSL_write_ex(raw_, "x", 1, &sent), 1);
  }
  flush(up_);
  std::vector<std::uint8_t> room(1 << 20);
  MutableBytes into(room);
  const sys::IoResult first = server_->read({&into, 1});
  EXPECT_EQ(first.status, Status::done);
  EXPECT_TRUE(first.cut);
  EXPECT_LT(first.bytes, kRecords / 2);
  EXPECT_EQ(first.bytes + read_all(*server_).size(), kRecords);
}

}  // namespace
}  // namespace weft::net

#endif
