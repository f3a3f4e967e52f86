// SPDX-License-Identifier: MIT
// Certificates: which ones each end accepts, and reloading their files. Then a client of OpenSSL's own.
#ifdef WEFT_HAVE_OPENSSL

#include <openssl/ssl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "weft/net/tls/test_tls.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/limits.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

using test::Pipe;
using test::PipeStream;
using test::read_all;
using test::Status;
using test::TestAuthority;
using test::TlsTest;
using test::touch;
using test::write;

TEST_F(TlsTest, AClientTakesTheServerThatTheNameAndTheAuthorityAreFor) {
  make(server_options(), client_options());
  EXPECT_EQ(complaint("localhost"), "");
  EXPECT_EQ(complaint("127.0.0.1"), "");
  EXPECT_EQ(complaint("::ffff:7f00:1"), "");  // the same address
  EXPECT_EQ(complaint("elsewhere.example"), "hostname mismatch");
  EXPECT_EQ(complaint("127.0.0.2"), "IP address mismatch");
  EXPECT_EQ(client_->state().failure, Errc::protocol_error);
  EXPECT_FALSE(connector_->wrap(std::make_unique<PipeStream>(down_, up_, nullptr), ""));
}

TEST_F(TlsTest, ACommonNameIsNoNameOfTheServer) {
  const auto files = authority_.issue("localhost", TestAuthority::kHour, nullptr);
  make({.certificate_file = files.certificate, .key_file = files.key}, client_options());
  EXPECT_EQ(complaint("localhost"), "hostname mismatch");
}

TEST_F(TlsTest, AFinalDotAndAZoneAreNeitherVerifiedNorSent) {
  const auto files = authority_.issue("server", TestAuthority::kHour, "DNS:localhost,IP:fe80::1");
  make({.certificate_file = files.certificate, .key_file = files.key}, client_options());
  EXPECT_EQ(complaint("fe80::1%lo"), "");
  EXPECT_EQ(complaint("localhost."), "");
  begin("localhost.");
  EXPECT_NE(up_.bytes.find("localhost"), std::string::npos);
  EXPECT_EQ(up_.bytes.find("localhost."), std::string::npos);
}

TEST_F(TlsTest, ANameThatWouldVerifyMoreThanItselfIsRefused) {
  make(server_options(), client_options());
  for (const std::string& name : {std::string(".localhost"), std::string("localhost\0.example", 18)}) {
    EXPECT_EQ(connector_->wrap(std::make_unique<PipeStream>(down_, up_, nullptr), name).error(),
              Errc::invalid_argument);
  }
}

TEST_F(TlsTest, AClientRefusesAStrangersCertificateAndAnOldOne) {
  const TestAuthority stranger("stranger");
  make(server_options(), {.ca_file = stranger.file()});
  EXPECT_EQ(complaint(), "unable to get local issuer certificate");
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_STREQ(server_->state().failure.text(), "tlsv1 alert unknown ca");
  make(server_options(), {});  // the authorities that the system trusts
  EXPECT_EQ(complaint(), "unable to get local issuer certificate");
  const auto old = authority_.issue("old", -TestAuthority::kHour);
  make({.certificate_file = old.certificate, .key_file = old.key}, client_options());
  EXPECT_EQ(complaint(), "certificate has expired");
  make({.certificate_file = old.certificate, .key_file = old.key}, {.verify = false});
  EXPECT_EQ(complaint(""), "");
  EXPECT_TRUE(client_->state().established);
}

TEST_F(TlsTest, ClientsProveThemselvesWhenTheyMust) {
  TestAuthority clients("clients");
  const auto known = clients.issue("known");
  const auto unknown = authority_.issue("unknown");
  TlsServerOptions options = server_options();
  options.client_ca_file = clients.file();
  make(options, client_options());
  EXPECT_FALSE(comes_in(client_options()));
  EXPECT_STREQ(server_->state().failure.text(), "peer did not return a certificate");
  EXPECT_FALSE(
      comes_in({.ca_file = authority_.file(), .certificate_file = unknown.certificate, .key_file = unknown.key}));
  EXPECT_EQ(server_->state().failure, Errc::protocol_error);
  const TlsClientOptions friendly{
      .ca_file = authority_.file(), .certificate_file = known.certificate, .key_file = known.key};
  EXPECT_TRUE(comes_in(friendly));
  EXPECT_EQ(tls_info(*server_)->peer_subject, "CN=known");
  EXPECT_EQ(tls_info(*client_)->peer_subject, "CN=server");

  options.client_required = false;
  make(options, client_options());
  EXPECT_TRUE(comes_in(client_options()));
  EXPECT_EQ(tls_info(*server_)->peer_subject, "");
  EXPECT_TRUE(comes_in(friendly));
  EXPECT_FALSE(
      comes_in({.ca_file = authority_.file(), .certificate_file = unknown.certificate, .key_file = unknown.key}));
}

TEST_F(TlsTest, ACertificateOfMuchMoreBytesThanUsualIsRefused) {
  std::string names = "DNS:localhost";
  while (names.size() < 40'000) {
    names += ",DNS:" + std::string(60, 'n') + std::to_string(names.size());
  }
  const auto huge = authority_.issue("huge", TestAuthority::kHour, names.c_str());
  TlsServerOptions options = server_options();
  options.client_ca_file = authority_.file();
  make(options, client_options());
  EXPECT_FALSE(comes_in({.ca_file = authority_.file(), .certificate_file = huge.certificate, .key_file = huge.key}));
  EXPECT_STREQ(server_->state().failure.text(), "excessive message size");
}

TEST_F(TlsTest, AnUnverifiedCertificateNamesNobody) {
  make(server_options(), {.verify = false});
  EXPECT_TRUE(comes_in({.verify = false}));
  EXPECT_EQ(tls_info(*client_)->peer_subject, "");
  EXPECT_TRUE(comes_in(client_options()));
  EXPECT_EQ(tls_info(*client_)->peer_subject, "CN=server");
}

TEST_F(TlsTest, ProtocolsAreAgreedOnOrTheHandshakeIsRefused) {
  TlsServerOptions server = server_options();
  server.protocols = {"weft/2", "weft/1"};
  make(server, client_options());
  EXPECT_TRUE(comes_in({.ca_file = authority_.file(), .protocols = {"weft/1", "weft/2"}}));
  EXPECT_EQ(tls_info(*server_)->protocol, "weft/2");
  EXPECT_EQ(tls_info(*client_)->protocol, "weft/2");
  EXPECT_TRUE(comes_in(client_options()));
  EXPECT_EQ(tls_info(*server_)->protocol, "");
  EXPECT_FALSE(comes_in({.ca_file = authority_.file(), .protocols = {"h2"}}));
  EXPECT_EQ(server_->state().failure, Errc::protocol_error);
  server.protocols = {std::string(256, 'p')};
  EXPECT_EQ(TlsServer::make(server).error(), Errc::invalid_argument);
}

TEST_F(TlsTest, AStreamWithoutTlsHasNoInfo) {
  make(server_options(), client_options());
  EXPECT_FALSE(tls_info(PipeStream(up_, down_, nullptr)));
  begin();
  EXPECT_FALSE(tls_info(*server_));
}

// --- files ---

TEST_F(TlsTest, NewConnectionsGetTheNewCertificateAndOldOnesContinue) {
  connect();
  const auto old_server = std::move(server_);
  const auto old_client = std::move(client_);
  Pipe old_up = std::move(up_);
  authority_.issue("server");  // another key
  begin();                     // a handshake under way
  ASSERT_TRUE(tls_->reload());
  shake_hands();
  EXPECT_TRUE(client_->state().established);
  begin();
  shake_hands();
  EXPECT_TRUE(client_->state().established);
  EXPECT_EQ(write(*old_client, "still here").bytes, 10u);
  EXPECT_EQ(read_all(*old_server), "still here");
}

TEST_F(TlsTest, AnotherServersCertificateIsAdoptedForNewConnections) {
  make(server_options(), client_options());
  const auto other = authority_.issue("other", TestAuthority::kHour, "DNS:elsewhere.example");
  const auto next = TlsServer::make({.certificate_file = other.certificate, .key_file = other.key});
  ASSERT_TRUE(next);
  EXPECT_EQ(complaint(), "");  // localhost
  tls_->adopt(**next);
  EXPECT_NE(complaint(), "");  // elsewhere.example
  std::filesystem::remove(other.certificate);
  std::string why;
  EXPECT_FALSE(tls_->reload(&why));  // reads the adopted files
  EXPECT_TRUE(why.starts_with(other.certificate + ": ")) << why;
  authority_.issue("other");
  EXPECT_TRUE(tls_->reload(&why)) << why;
  EXPECT_EQ(complaint(), "");
  tls_->adopt(*tls_);
  EXPECT_EQ(complaint(), "");
}

TEST_F(TlsTest, AFileThatCannotBeUsedIsNamedAndWhatWasInUseStaysInUse) {
  make(server_options(), client_options());
  const std::string certificate = authority_.path("server.crt");
  std::string why;
  std::ofstream(certificate) << "nonsense";
  EXPECT_EQ(tls_->reload(&why).error(), Errc::invalid_argument);
  EXPECT_EQ(why, certificate + ": the certificate cannot be used: no start line");
  std::filesystem::remove(certificate);
  EXPECT_FALSE(tls_->reload(&why));
  EXPECT_TRUE(why.starts_with(certificate + ": ")) << why;
  EXPECT_TRUE(why.ends_with("No such file or directory")) << why;
  const auto other = authority_.issue("other");
  std::filesystem::copy_file(other.certificate, certificate);
  EXPECT_FALSE(tls_->reload(&why));
  EXPECT_EQ(why, authority_.path("server.key") + ": the key cannot be used: key values mismatch");
  EXPECT_EQ(complaint(), "");
  EXPECT_TRUE(client_->state().established);
  EXPECT_FALSE(TlsServer::make({.certificate_file = other.certificate, .key_file = "/nowhere"}, &why));
  EXPECT_TRUE(why.starts_with("/nowhere: ")) << why;
  TlsServerOptions no_clients{.certificate_file = other.certificate, .key_file = other.key};
  no_clients.client_ca_file = other.key;
  EXPECT_FALSE(TlsServer::make(no_clients, &why));
  EXPECT_TRUE(why.starts_with(other.key + ": ")) << why;
  EXPECT_FALSE(TlsClient::make({.ca_file = "/nowhere"}, &why));
  EXPECT_TRUE(why.starts_with("/nowhere: ")) << why;
}

TEST_F(TlsTest, WithoutDescriptorsTheFilesAreNotWhatIsWrong) {
  const TlsServerOptions server = server_options();
  make(server, client_options());
  const int lowest = sys::EventFd::make().value().fd();  // the next descriptor
  const auto before = sys::set_descriptor_limit(static_cast<std::size_t>(lowest));
  ASSERT_TRUE(before);
  const auto bound = TlsServer::make(server);
  const auto reloaded = tls_->reload();
  const auto connected = TlsClient::make(client_options());
  const auto trusting = TlsClient::make({});
  ASSERT_TRUE(sys::set_descriptor_limit(*before));
  for (const Error error : {bound.error(), reloaded.error(), connected.error(), trusting.error()}) {
    EXPECT_EQ(error.code(), Errc::resource_exhausted);
    EXPECT_EQ(error.os_errno(), EMFILE);
  }
  EXPECT_TRUE(tls_->reload());
}

TEST_F(TlsTest, AKeyWithAPassPhraseIsRefusedAndNobodyIsAsked) {
  const auto files = authority_.issue("secret");
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  std::FILE* const file = std::fopen(files.key.c_str(), "w");
  char phrase[] = "phrase";
  PEM_write_PKCS8PrivateKey(file, key, EVP_aes_128_cbc(), phrase, 6, nullptr, nullptr);
  std::fclose(file);
  EVP_PKEY_free(key);
  std::string why;
  EXPECT_FALSE(TlsServer::make({.certificate_file = files.certificate, .key_file = files.key}, &why));
  EXPECT_TRUE(why.starts_with(files.key + ": ")) << why;
}

class RawClient {
 public:
  explicit RawClient(int version) : ctx_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(ctx_, version);
    connect();
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() {
    SSL_free(ssl);
    SSL_CTX_free(ctx_);
  }

  void connect() {
    if (ssl != nullptr) {
      SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN);  // otherwise OpenSSL makes its ticket unusable
      SSL_free(ssl);
    }
    ssl = SSL_new(ctx_);
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl, in_, out_);
    SSL_set_connect_state(ssl);
  }
  // Moves bytes between the two and continues the handshake until nothing moves.
  void exchange(ByteStream& server, Pipe& up, Pipe& down, std::string& heard) {
    for (int i = 0; i < 8; ++i) {
      if (!SSL_is_init_finished(ssl)) {
        (void)SSL_do_handshake(ssl);
      }
      char bytes[4096];
      for (int n = 0; (n = BIO_read(out_, bytes, sizeof(bytes))) > 0;) {
        up.bytes.append(bytes, static_cast<std::size_t>(n));
      }
      (void)server.write({});
      heard += read_all(server);
      BIO_write(in_, down.bytes.data(), static_cast<int>(down.bytes.size()));
      down.bytes.clear();
      std::size_t got = 0;
      while (SSL_read_ex(ssl, bytes, sizeof(bytes), &got) == 1) {
        answers.append(bytes, got);
      }
    }
  }

  SSL* ssl = nullptr;
  std::string answers;

 private:
  SSL_CTX* ctx_;
  BIO* in_ = nullptr;  // the SSL's, as is the next
  BIO* out_ = nullptr;
};

TEST_F(TlsTest, AClientOfTls12IsRefused) {
  make(server_options(), client_options());
  begin();
  up_ = {};
  RawClient old(TLS1_2_VERSION);
  std::string heard;
  old.exchange(*server_, up_, down_, heard);
  EXPECT_EQ(touch(*server_), Status::failed);
  EXPECT_STREQ(server_->state().failure.text(), "unsupported protocol");
  EXPECT_FALSE(SSL_is_init_finished(old.ssl));
}

TEST_F(TlsTest, KeysAreRenewedInBetween) {
  make(server_options(), client_options());
  begin();
  up_ = {};
  RawClient client(TLS1_3_VERSION);
  std::string heard;
  client.exchange(*server_, up_, down_, heard);
  ASSERT_TRUE(server_->state().established);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    std::size_t sent = 0;
    ASSERT_EQ(SSL_write_ex(client.ssl, "k", 1, &sent), 1);
    client.exchange(*server_, up_, down_, heard);
    ASSERT_EQ(write(*server_, "r").bytes, 1u);
    client.exchange(*server_, up_, down_, heard);
  }
  EXPECT_EQ(heard, std::string(40, 'k'));
  EXPECT_EQ(client.answers, std::string(40, 'r'));
}

class TlsTickets : public TlsTest {
 protected:
  ~TlsTickets() override { SSL_SESSION_free(session_); }

  // Connects with the ticket of the last connection. Returns whether the server resumed that.
  bool resumes() {
    std::string heard;
    begin();
    up_ = {};
    client_of_openssl_.connect();
    if (session_ != nullptr) {
      SSL_set_session(client_of_openssl_.ssl, session_);
    }
    client_of_openssl_.exchange(*server_, up_, down_, heard);
    EXPECT_TRUE(server_->state().established);
    SSL_SESSION_free(session_);
    session_ = SSL_get1_session(client_of_openssl_.ssl);
    return tls_info(*server_)->resumed;
  }

  RawClient client_of_openssl_{TLS1_3_VERSION};
  SSL_SESSION* session_ = nullptr;
};

TEST_F(TlsTickets, ATicketResumesUntilTheCertificateIsReloaded) {
  make(server_options(), client_options());
  EXPECT_FALSE(resumes());
  EXPECT_EQ(SSL_SESSION_get_max_early_data(session_), 0u);
  EXPECT_TRUE(resumes());
  ASSERT_TRUE(tls_->reload());
  EXPECT_FALSE(resumes());
}

TEST_F(TlsTickets, AServerThatAsksForCertificatesChecksThemInEachConnection) {
  TlsServerOptions options = server_options();
  options.client_ca_file = authority_.file();
  options.client_required = false;
  make(options, client_options());
  EXPECT_FALSE(resumes());
  EXPECT_EQ(SSL_SESSION_is_resumable(session_), 0);
  EXPECT_FALSE(resumes());
}

}  // namespace
}  // namespace weft::net

#endif
