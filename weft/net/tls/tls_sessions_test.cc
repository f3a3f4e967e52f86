// SPDX-License-Identifier: MIT
#ifdef WEFT_HAVE_OPENSSL

#include "weft/net/tls/tls_sessions.h"

#include <openssl/ssl.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "weft/net/tls/test_tls.h"
#include "weft/net/tls/tls_stream.h"

namespace weft::net {
namespace {

using std::chrono::minutes;
using test::PipeStream;
using test::read_all;

class TlsSessionsTest : public test::TlsTest {
 protected:
  // Connects to the name, by the TlsClient. Returns whether the connection resumed an earlier one.
  bool resumes(const std::string& name = "localhost") {
    begin(name);
    shake_hands();
    EXPECT_TRUE(server_->state().established && client_->state().established) << client_->state().failure.text();
    (void)read_all(*client_);  // takes the tickets
    EXPECT_EQ(tls_info(*client_)->resumed, tls_info(*server_)->resumed);
    return tls_info(*client_)->resumed;
  }
  // The same without a TlsClient, at a time.
  bool resumes_at(TlsSessions::WallTime now) {
    begin();
    up_ = down_ = {};
    std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context_->ssl_ctx), &SSL_free);
    SSL_set_connect_state(ssl.get());
    EXPECT_TRUE(context_->sessions.attach(ssl.get(), "localhost", now));
    client_ = *make_tls_stream(std::make_unique<PipeStream>(down_, up_, nullptr), context_, std::move(ssl));
    shake_hands();
    (void)read_all(*client_);
    return tls_info(*client_)->resumed;
  }
  void make_context() {
    context_ = std::make_shared<TlsContext>(SSL_CTX_new(TLS_client_method()));
    context_->sessions.serve(context_->ssl_ctx);
  }
  static std::string text_of(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::shared_ptr<TlsContext> context_;
};

TEST_F(TlsSessionsTest, AConnectionToTheSameNameResumesUntilTheServersCertificateChanges) {
  make(server_options(), client_options());
  EXPECT_FALSE(resumes());
  EXPECT_TRUE(resumes());
  EXPECT_EQ(tls_info(*client_)->peer_subject, "CN=server");
  EXPECT_FALSE(resumes("127.0.0.1"));
  up_.broken = down_.broken = true;  // an end that is not announced
  EXPECT_TRUE(resumes());
  EXPECT_TRUE(resumes("127.0.0.1"));
  ASSERT_TRUE(tls_->reload());
  EXPECT_FALSE(resumes());
  EXPECT_TRUE(resumes());
  connector_ = *TlsClient::make(client_options());
  EXPECT_FALSE(resumes());
}

TEST_F(TlsSessionsTest, ATicketIsUsedOnceForAnHourAndNotAfterTheServersCertificate) {
  make(server_options(), client_options());
  make_context();
  const auto now = sys::wall_now();
  EXPECT_FALSE(resumes_at(now));
  EXPECT_EQ(context_->sessions.size(), TlsSessions::kSessionsMax);
  EXPECT_TRUE(resumes_at(now + minutes(59)));
  EXPECT_EQ(context_->sessions.size(), TlsSessions::kSessionsMax);
  EXPECT_FALSE(resumes_at(now + minutes(61)));
  EXPECT_FALSE(resumes_at(now - minutes(1)));

  const auto files = authority_.issue("short", 600);
  make({.certificate_file = files.certificate, .key_file = files.key}, client_options());
  make_context();
  EXPECT_FALSE(resumes_at(now));
  EXPECT_TRUE(resumes_at(now + minutes(9)));
  EXPECT_FALSE(resumes_at(now + minutes(11)));
}

TEST_F(TlsSessionsTest, TheSessionsHaveABound) {
  TlsServerOptions options = server_options();
  make(options, client_options());
  make_context();
  (void)resumes_at(sys::wall_now());
  std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context_->ssl_ctx), &SSL_free);
  EXPECT_TRUE(context_->sessions.attach(ssl.get(), "another", sys::wall_now()));
  EXPECT_EQ(context_->sessions.size(), TlsSessions::kSessionsMax);

  options.certificate_pem = text_of(options.certificate_file);
  options.key_pem = text_of(options.key_file);
  for (std::size_t size = 0; size < 2 * TlsSessions::kBytesMax; size += text_of(authority_.file()).size()) {
    options.certificate_pem += text_of(authority_.file());
  }
  make(options, client_options());
  make_context();
  (void)resumes_at(sys::wall_now());
  EXPECT_EQ(context_->sessions.size(), 0u);
}

}  // namespace
}  // namespace weft::net

#endif
