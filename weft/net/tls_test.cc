// SPDX-License-Identifier: MIT
#include "weft/net/tls.h"

#include <gtest/gtest.h>

#ifdef WEFT_HAVE_OPENSSL

#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>

#include "weft/base/random.h"
#include "weft/net/test_certificates.h"

namespace weft::net {
namespace {

using test::TestAuthority;
using Status = sys::IoResult::Status;

constexpr std::size_t kRecord = 16 * 1024;
constexpr std::size_t kOverhead = 22;  // of a record with AES-GCM: header, kind, tag

// One direction between two streams, in place of a kernel.
struct Pipe {
  std::string bytes;
  std::size_t room = 1 << 20;  // bytes that still fit in
  bool ended = false;
  bool broken = false;
};

class PipeStream final : public Stream {
 public:
  PipeStream(Pipe& in, Pipe& out, Random* random) : in_(in), out_(out), random_(random) {}

  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    if (in_.broken) {
      return {Status::failed, 0, ECONNRESET};
    }
    if (in_.bytes.empty()) {
      return {in_.ended ? Status::end_of_stream : Status::would_block, 0, 0};
    }
    const std::size_t size = cut(std::min(into[0].size(), in_.bytes.size()));
    copy_bytes(into[0].data(), as_bytes(in_.bytes).first(size));
    in_.bytes.erase(0, size);
    return {Status::done, size, 0};
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    if (out_.broken) {
      return {Status::failed, 0, EPIPE};
    }
    const std::size_t free = out_.room - std::min(out_.room, out_.bytes.size());
    if (free == 0) {
      return {};
    }
    const std::size_t size = cut(std::min(free, from[0].size()));
    out_.bytes += as_text(from[0].first(size));
    return {Status::done, size, 0};
  }
  void shutdown_write() override { out_.ended = true; }
  [[nodiscard]] std::string peer_address() const override { return "pipe"; }

 private:
  std::size_t cut(std::size_t size) { return random_ == nullptr || size == 0 ? size : 1 + random_->below(size); }

  Pipe& in_;
  Pipe& out_;
  Random* random_;
};

std::string read_all(Stream& stream, Status* last = nullptr, std::size_t room = 20 * 1024) {
  std::string bytes;
  std::vector<std::uint8_t> block(room);
  for (;;) {
    MutableBytes into(block);
    const sys::IoResult result = stream.read({&into, 1});
    if (last != nullptr) {
      *last = result.status;
    }
    if (result.status != Status::done) {
      return bytes;
    }
    bytes += as_text(Bytes(block).first(result.bytes));
  }
}
sys::IoResult write(Stream& stream, std::string_view bytes) {
  const Bytes from = as_bytes(bytes);
  return stream.write({&from, 1});
}
Status touch(Stream& stream) { return stream.read({}).status; }
std::string numbered(std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    bytes += std::to_string(bytes.size()) + ",";
  }
  bytes.resize(size);
  return bytes;
}

class TlsTest : public testing::Test {
 protected:
  TlsServerOptions server_options() {
    const auto files = authority_.issue("server");
    return {.certificate_file = files.certificate, .key_file = files.key};
  }
  TlsClientOptions client_options() { return {.ca_file = authority_.file()}; }
  void make(const TlsServerOptions& server, const TlsClientOptions& client) {
    std::string why;
    auto made = TlsServer::make(server, &why);
    ASSERT_TRUE(made) << why;
    tls_ = std::move(*made);
    auto connector = TlsClient::make(client, &why);
    ASSERT_TRUE(connector) << why;
    connector_ = std::move(*connector);
  }
  void begin(const std::string& name = "localhost", Random* random = nullptr) {
    up_ = down_ = {};
    server_ = *tls_->wrap(std::make_unique<PipeStream>(up_, down_, random));
    client_ = *connector_->wrap(std::make_unique<PipeStream>(down_, up_, random), name);
  }
  void shake_hands() {
    for (int i = 0; i < 10'000 && !(server_->state().established && client_->state().established); ++i) {
      (void)server_->write({});
      (void)client_->write({});
      if (touch(*server_) == Status::failed || touch(*client_) == Status::failed) {
        return;
      }
    }
  }
  void connect() {
    make(server_options(), client_options());
    begin();
    shake_hands();
    ASSERT_TRUE(server_->state().established);
    (void)read_all(*client_);  // takes the tickets
  }
  // Whether the server admits a client with such a certificate.
  bool comes_in(const TlsClientOptions& options) {
    connector_ = *TlsClient::make(options);
    begin();
    shake_hands();
    return server_->state().established;
  }
  // The client's reason for refusing the server.
  std::string complaint(const std::string& name = "localhost") {
    begin(name);
    shake_hands();
    return client_->state().failure.text();
  }

  TestAuthority authority_;
  std::shared_ptr<TlsServer> tls_;
  std::shared_ptr<TlsClient> connector_;
  Pipe up_, down_;
  std::unique_ptr<Stream> server_, client_;
};

// --- bytes ---

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

// --- certificates ---

TEST_F(TlsTest, AClientTakesTheServerThatTheNameAndTheAuthorityAreFor) {
  make(server_options(), client_options());
  EXPECT_EQ(complaint("localhost"), "");
  EXPECT_EQ(complaint("127.0.0.1"), "");
  EXPECT_EQ(complaint("elsewhere.example"), "hostname mismatch");
  EXPECT_EQ(complaint("127.0.0.2"), "IP address mismatch");
  EXPECT_EQ(client_->state().failure, Errc::protocol_error);
  EXPECT_FALSE(connector_->wrap(std::make_unique<PipeStream>(down_, up_, nullptr), ""));
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

// --- a client that uses OpenSSL directly ---

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
  void exchange(Stream& server, Pipe& up, Pipe& down, std::string& heard) {
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

TEST_F(TlsTest, ATicketResumesUntilTheCertificateIsReloaded) {
  make(server_options(), client_options());
  RawClient client(TLS1_3_VERSION);
  std::string heard;
  const auto connect_again = [&](SSL_SESSION* session) {
    begin();
    up_ = {};
    client.connect();
    if (session != nullptr) {
      SSL_set_session(client.ssl, session);
    }
    client.exchange(*server_, up_, down_, heard);
    EXPECT_TRUE(server_->state().established);
    SSL_SESSION* const next = SSL_get1_session(client.ssl);
    SSL_SESSION_free(session);
    return next;
  };
  SSL_SESSION* session = connect_again(nullptr);
  EXPECT_FALSE(tls_info(*server_)->resumed);
  EXPECT_EQ(SSL_SESSION_get_max_early_data(session), 0u);
  session = connect_again(session);
  EXPECT_TRUE(tls_info(*server_)->resumed);
  ASSERT_TRUE(tls_->reload());
  session = connect_again(session);
  EXPECT_FALSE(tls_info(*server_)->resumed);
  SSL_SESSION_free(session);
}

}  // namespace
}  // namespace weft::net

#else

namespace weft::net {
namespace {

TEST(NoTlsTest, ABuildWithoutOpenSslSaysSo) {
  EXPECT_FALSE(tls_available());
  EXPECT_EQ(TlsServer::make({}).error(), Errc::not_supported);
  EXPECT_EQ(TlsClient::make({}).error(), Errc::not_supported);
}

}  // namespace
}  // namespace weft::net

#endif
