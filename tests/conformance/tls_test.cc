// SPDX-License-Identifier: MIT
// tls+tcp between sockets: certificates, and peers that break the handshake or the records.
#ifdef WEFT_HAVE_OPENSSL

#include <functional>
#include <thread>

#include "tests/conformance/certificates.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

using net::test::CertificateFiles;
using net::test::TestAuthority;
using Status = sys::IoResult::Status;

constexpr const char* kPlace = "tls+tcp://127.0.0.1:*";

std::string_view reason_of(const MonitorEvent& event) {
  return event.reason.text() == nullptr ? std::string_view() : std::string_view(event.reason.text());
}

// A stream that passes on its first bytes only, each write in pieces. Behind those it swallows all.
class CutStream final : public net::Stream {
 public:
  CutStream(std::unique_ptr<net::Stream> below, std::size_t& passes, std::size_t piece)
      : below_(std::move(below)), passes_(passes), piece_(piece) {}

  [[nodiscard]] int fd() const override { return below_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override { return below_->read(into); }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    const std::size_t size = std::min({from[0].size(), piece_, passes_});
    const Bytes some = from[0].first(size);
    const sys::IoResult result = size == 0 ? sys::IoResult{Status::done, 0, 0} : below_->write({&some, 1});
    passes_ -= result.bytes;
    return passes_ == 0 ? sys::IoResult{Status::done, from[0].size(), 0} : result;
  }
  void shutdown_write() override { below_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return below_->peer_address(); }

 private:
  std::unique_ptr<net::Stream> below_;
  std::size_t& passes_;
  const std::size_t piece_;
};

class Tls : public testing::Test {
 protected:
  static constexpr Duration kLong = 20s;

  [[nodiscard]] Socket make(SocketType type) {
    Socket socket = context_.socket(type).value();
    EXPECT_TRUE(socket.set(option::receive_timeout, kLong));
    EXPECT_TRUE(socket.set(option::send_timeout, kLong));
    EXPECT_TRUE(socket.set(option::reconnect_interval, 2ms));
    EXPECT_TRUE(socket.set(option::linger, 0ms));
    EXPECT_TRUE(socket.watch_events());
    return socket;
  }
  // A server with a certificate that demands none.
  [[nodiscard]] std::string bind(Socket& socket, const CertificateFiles& files = certificate()) {
    EXPECT_TRUE(socket.set(option::tls_certificate, files.certificate));
    EXPECT_TRUE(socket.set(option::tls_key, files.key));
    const auto bound = socket.bind(kPlace);
    EXPECT_TRUE(bound) << bound.error().message();
    return bound ? *bound : std::string();
  }
  // A server that demands certificates, and has one.
  [[nodiscard]] std::string bind_mutual(Socket& socket) {
    EXPECT_TRUE(socket.set(option::tls_authorities, authority().file()));
    return bind(socket);
  }
  static void connect(Socket& socket, const std::string& endpoint) {
    EXPECT_TRUE(socket.set(option::tls_authorities, authority().file()));
    const auto connected = socket.connect(endpoint);
    EXPECT_TRUE(connected) << connected.error().message();
  }
  static MonitorEvent wait_for(Socket& socket, EventKind kind) {
    for (;;) {
      auto event = socket.next_event(kLong);
      EXPECT_TRUE(event) << "waiting for " << event_name(kind);
      if (!event || event->kind == kind) {
        return event ? std::move(*event) : MonitorEvent{kind, "", event.error()};
      }
    }
  }
  static void expect_refused(Socket& socket, std::string_view text, Errc code = Errc::protocol_error) {
    const MonitorEvent event = wait_for(socket, EventKind::handshake_failed);
    EXPECT_EQ(event.reason.code(), code) << event.reason.message();
    EXPECT_EQ(reason_of(event), text);
    EXPECT_GE(socket.statistics()->handshakes_failed, 1u);
  }
  static void exchange(Socket& push, Socket& pull, std::string_view text = "hello") {
    ASSERT_TRUE(push.send(text));
    const auto got = pull.recv();
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->text(), text);
  }
  // Whatever a bad peer did, the next good one is served.
  void expect_serves(Socket& pull, const std::string& endpoint) {
    Socket push = make(SocketType::push);
    give_certificate(push);
    connect(push, endpoint);
    exchange(push, pull, "next");
  }
  // A connection to the endpoint without TLS.
  [[nodiscard]] static BytePeer dial_plain(const std::string& endpoint) {
    return BytePeer::dial(endpoint.substr(endpoint.find("tcp://")));
  }
  [[nodiscard]] static std::unique_ptr<net::Stream> dial_stream(const std::string& endpoint) {
    net::Dialer dialer(*net::parse_endpoint(endpoint, false), {});
    auto progress = dialer.begin();
    while (progress && *progress == net::Progress::pending) {
      EXPECT_TRUE(wait_fd(dialer.fd(), dialer.interest()));
      progress = dialer.finish();
    }
    EXPECT_TRUE(progress);
    return dialer.take_stream();
  }
  static bool wait_fd(int fd, sys::Interest interest) {
    sys::PollFd polled{.fd = fd, .want = interest};
    return sys::poll_fds({&polled, 1}, kLong).value_or(std::size_t{0}) == 1;
  }
  // A client that writes through a CutStream. Shakes hands as far as the cut permits.
  [[nodiscard]] static std::unique_ptr<net::Stream> dial_cut(const std::string& endpoint, std::size_t& passes,
                                                             std::size_t piece) {
    auto client = net::TlsClient::make({authority().file(), true, certificate().certificate, certificate().key});
    auto stream =
        (*client)->wrap(std::make_unique<CutStream>(dial_stream(endpoint), passes, piece), "localhost").value();
    while (passes > 0 && !stream->state().established) {
      EXPECT_NE(stream->read({}).status, Status::failed) << stream->state().failure.message();
      if (stream->state().unsent) {
        EXPECT_NE(stream->write({}).status, Status::failed);
      } else if (passes > 0 && !stream->state().established) {
        EXPECT_TRUE(wait_fd(stream->fd(), sys::Interest::readable));
      }
    }
    return stream;
  }

  Context context_;
};

// --- certificates ---

TEST_F(Tls, BothSidesKnowTheAuthorityAndMessagesArrive) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  EXPECT_TRUE(endpoint.starts_with("tls+tcp://127.0.0.1:")) << endpoint;
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  exchange(push, pull);
  exchange(push, pull, std::string(3 << 20, 'x'));
  EXPECT_TRUE(pull.unbind(endpoint));
}

TEST_F(Tls, AnIpv6AddressIsAName) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::ipv6, true));
  ASSERT_TRUE(pull.set(option::tls_certificate, certificate().certificate));
  ASSERT_TRUE(pull.set(option::tls_key, certificate().key));
  const auto endpoint = pull.bind("tls+tcp://[::1]:*");
  if (!endpoint) {
    GTEST_SKIP() << "no IPv6 here";
  }
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::ipv6, true));
  ASSERT_TRUE(push.set(option::tls_server_name, "localhost"));  // the certificate does not name [::1]
  connect(push, *endpoint);
  exchange(push, pull);
}

TEST_F(Tls, ASourceAddressAndAHostNameWork) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  Socket push = make(SocketType::push);
  connect(push, "tls+tcp://127.0.0.1:0;localhost:" + endpoint.substr(endpoint.rfind(':') + 1));
  exchange(push, pull);
}

TEST_F(Tls, AServerOfAnotherAuthorityIsRefused) {
  TestAuthority other("other");
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull, other.issue("server")));
  expect_refused(push, "unable to get local issuer certificate");
  expect_refused(pull, "tlsv1 alert unknown ca");
}

TEST_F(Tls, AServerOfAnotherNameIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::tls_server_name, "example.org"));
  connect(push, endpoint);
  expect_refused(push, "hostname mismatch");
}

TEST_F(Tls, AnExpiredServerIsRefused) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull, authority().issue("expired", -1)));
  expect_refused(push, "certificate has expired");
}

TEST_F(Tls, WithoutVerificationAnyServerIsTaken) {
  TestAuthority other("other");
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull, other.issue("server"));
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::tls_verify, false));
  ASSERT_TRUE(push.connect(endpoint));
  exchange(push, pull);
}

TEST_F(Tls, AClientWithoutACertificateIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  expect_refused(pull, "peer did not return a certificate");
  (void)wait_for(push, EventKind::handshake_failed);
  expect_serves(pull, endpoint);
}

TEST_F(Tls, AClientOfAnotherAuthorityIsRefused) {
  TestAuthority other("other");
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  give_certificate(push, other.issue("client"));
  connect(push, endpoint);
  expect_refused(pull, "unable to get local issuer certificate");
}

TEST_F(Tls, AClientMayHaveNoCertificateWhereItIsNotRequired) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::tls_client_required, false));
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  ASSERT_TRUE(push.send("hello"));
  auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->peer_property("User-Id"), nullptr);
}

TEST_F(Tls, TheSubjectOfTheClientsCertificateIsTheUserIdOfItsMessages) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  give_certificate(push, authority().issue("worker 7"));
  connect(push, endpoint);
  ASSERT_TRUE(push.send("hello"));
  auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_STREQ(got->peer_property("User-Id"), "CN=worker 7");
}

TEST_F(Tls, AReloadedCertificateIsForLaterConnections) {
  const CertificateFiles files = authority().issue("renewed", -1);
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull, files);
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  expect_refused(push, "certificate has expired");
  (void)authority().issue("renewed");  // the same files
  ASSERT_TRUE(pull.reload_certificates());
  exchange(push, pull);
  ASSERT_EQ(std::remove(files.key.c_str()), 0);
  EXPECT_EQ(pull.reload_certificates().error(), Errc::invalid_argument);
  expect_serves(pull, endpoint);  // the certificate in use stays in use
}

TEST_F(Tls, FilesThatCannotBeUsedAreAnErrorOfBindAndConnect) {
  Socket pull = make(SocketType::pull);
  EXPECT_EQ(pull.bind(kPlace).error(), Errc::invalid_argument);
  (void)wait_for(pull, EventKind::bind_failed);
  ASSERT_TRUE(pull.set(option::tls_certificate, "/no/such/file"));
  ASSERT_TRUE(pull.set(option::tls_key, certificate().key));
  EXPECT_EQ(pull.bind(kPlace).error(), Errc::invalid_argument);
  EXPECT_EQ(pull.connect("tls+tcp://127.0.0.1:5555").error(), Errc::invalid_argument);
  EXPECT_EQ(pull.statistics()->binds_failed, 2u);
}

// --- authentication ---

TEST_F(Tls, AnAuthenticatorIsAskedWithTheMechanismTlsAndTheSubject) {
  Socket handler = make(SocketType::rep);
  ASSERT_TRUE(handler.bind("inproc://zeromq.zap.01"));
  std::vector<std::string> request;
  std::thread authenticator([&] {
    for (const auto& [status, user] : {std::pair("200", "alice"), std::pair("400", "")}) {
      const auto parts = handler.recv_all();
      ASSERT_TRUE(parts);
      request.clear();
      for (const Message& part : *parts) {
        request.emplace_back(part.text());
      }
      const std::vector<std::string> reply = {"1.0", request[1], status, "", user, ""};
      for (std::size_t i = 0; i < reply.size(); ++i) {
        ASSERT_TRUE(handler.send(reply[i], i + 1 < reply.size() ? More::yes : More::no));
      }
    }
  });
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::zap_domain, "home"));
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  give_certificate(push);
  connect(push, endpoint);
  ASSERT_TRUE(push.send("hello"));
  auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_STREQ(got->peer_property("User-Id"), "alice");
  Socket second = make(SocketType::push);
  ASSERT_TRUE(second.set(option::reconnect_interval, Duration(-1)));
  give_certificate(second);
  connect(second, endpoint);
  authenticator.join();
  ASSERT_EQ(request.size(), 7u);
  EXPECT_EQ(request[2], "home");
  EXPECT_EQ(request[3], "127.0.0.1");
  EXPECT_EQ(request[5], "TLS");
  EXPECT_EQ(request[6], "CN=peer");
  expect_refused(pull, "the peer was not authenticated", Errc::handshake_refused);
}

#ifdef WEFT_HAVE_SODIUM
TEST_F(Tls, CurveInsideTlsNeedsBoth) {
  const auto keys = zmtp::make_curve_key_pair().value();
  const auto text = [](const auto& key) { return std::string(as_text(Bytes(key))); };
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::curve_secret_key, text(keys.secret_key)));
  ASSERT_TRUE(pull.set(option::curve_server, true));
  const std::string endpoint = bind_mutual(pull);

  Socket without = make(SocketType::push);
  give_certificate(without);
  connect(without, endpoint);
  expect_refused(pull, "peer's security mechanism is NULL, not ours");

  const auto ours = zmtp::make_curve_key_pair().value();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::curve_public_key, text(ours.public_key)));
  ASSERT_TRUE(push.set(option::curve_secret_key, text(ours.secret_key)));
  ASSERT_TRUE(push.set(option::curve_server_key, text(keys.public_key)));
  give_certificate(push);
  connect(push, endpoint);
  exchange(push, pull);
}
#endif

// --- peers without TLS, or without a proper one ---

TEST_F(Tls, APeerInTheClearIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.connect(endpoint.substr(endpoint.find("tcp://"))));
  const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
  EXPECT_EQ(event.reason.code(), Errc::protocol_error) << event.reason.message();
  (void)wait_for(push, EventKind::handshake_failed);
  expect_serves(pull, endpoint);
}

TEST_F(Tls, AServerInTheClearIsRefused) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::handshake_timeout, 100ms));
  const auto bound = pull.bind("tcp://127.0.0.1:*");
  ASSERT_TRUE(bound);
  Socket push = make(SocketType::push);
  connect(push, "tls+" + *bound);
  const MonitorEvent event = wait_for(push, EventKind::handshake_failed);
  EXPECT_FALSE(event.reason.code() == Errc::ok);
  (void)wait_for(pull, EventKind::handshake_failed);
}

TEST_F(Tls, GarbageIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  for (const std::string& garbage : {std::string(1000, '\0'), std::string("GET / HTTP/1.1\r\n\r\n"),
                                     std::string("\x16\x03\x01\xff\xff", 5) + std::string(5, 'x'),
                                     std::string("\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff", 10)}) {
    BytePeer peer = dial_plain(endpoint);
    peer.write(garbage);
    peer.end_writing();
    const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
    EXPECT_TRUE(event.reason.code() == Errc::protocol_error || event.reason.code() == Errc::connection_closed);
    EXPECT_FALSE(reason_of(event).empty());
    (void)peer.read_to_end();
  }
  EXPECT_EQ(pull.statistics()->handshakes_failed, 4u);
  expect_serves(pull, endpoint);
}

TEST_F(Tls, AHandshakeThatNeverComesEndsInTime) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::handshake_timeout, 50ms));
  const std::string endpoint = bind(pull);
  BytePeer silent = dial_plain(endpoint);
  expect_refused(pull, "handshake took too long", Errc::timed_out);
  std::size_t passes = 100;  // of a ClientHello
  const auto half = dial_cut(endpoint, passes, 1000);
  expect_refused(pull, "handshake took too long", Errc::timed_out);
  std::size_t enough = 1 << 20;
  const auto no_greeting = dial_cut(endpoint, enough, 1 << 20);  // TLS without ZMTP
  ASSERT_TRUE(no_greeting->state().established);
  expect_refused(pull, "handshake took too long", Errc::timed_out);
}

TEST_F(Tls, AServerThatSaysNothingIsLeftInTimeAndTriedAgain) {
  auto listener = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {}).value();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::handshake_timeout, 50ms));
  connect(push, "tls+" + listener->bound_endpoint());
  expect_refused(push, "handshake took too long", Errc::timed_out);
  (void)wait_for(push, EventKind::connected);
}

TEST_F(Tls, ACloseInTheMiddleOfAHandshakeDoesNotWait) {
  auto listener = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {}).value();
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  BytePeer silent = dial_plain(endpoint);
  (void)wait_for(pull, EventKind::accepted);
  Socket push = make(SocketType::push);
  connect(push, "tls+" + listener->bound_endpoint());
  ASSERT_TRUE(push.send("never"));
  (void)wait_for(push, EventKind::connected);
  const Instant begin = sys::now();
  pull.close();
  push.close();
  context_ = Context();
  EXPECT_LT(sys::now() - begin, 5s);
}

TEST_F(Tls, AHandshakeCutAtAnyByteEndsTheConnectionOnly) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::uint64_t cut_off = 0;
  for (std::size_t cut = 1; cut < 400; cut += 7) {
    std::size_t passes = cut;
    auto stream = dial_cut(endpoint, passes, 1000);
    stream.reset();
    const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
    EXPECT_FALSE(event.reason.code() == Errc::ok);
    ++cut_off;
  }
  EXPECT_EQ(pull.statistics()->handshakes_failed, cut_off);
  expect_serves(pull, endpoint);
}

// The greeting of ZMTP in one record, cut at each byte.
TEST_F(Tls, ARecordCutAtEachByteEndsTheConnectionOnly) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::uint8_t greeting[zmtp::kGreetingSize];
  zmtp::Greeting ours;
  ours.set_mechanism("NULL");
  zmtp::write_greeting(greeting, ours, 0);
  const std::size_t record = sizeof(greeting) + 22;  // header, type and tag
  for (std::size_t cut = 1; cut < record; ++cut) {
    std::size_t passes = 1 << 20;
    auto stream = dial_cut(endpoint, passes, 1 << 20);
    passes = cut;
    const Bytes from(greeting);
    EXPECT_EQ(stream->write({&from, 1}).bytes, sizeof(greeting));
    EXPECT_EQ(passes, 0u);
    stream.reset();
    const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
    EXPECT_EQ(event.reason.code(), Errc::connection_closed) << event.reason.message();
  }
  expect_serves(pull, endpoint);
}

TEST_F(Tls, AByteAtATimeIsAsGoodAsAll) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  std::size_t passes = 1 << 20;
  const auto stream = dial_cut(endpoint, passes, 1);
  zmtp::LocalEndConfig config;
  config.socket_type = zmtp::SocketType::push;
  zmtp::LocalEnd end(config);
  end.start(sys::now());
  std::string input;
  const auto write = [&](Bytes bytes) {
    while (!bytes.empty()) {
      const sys::IoResult result = stream->write({&bytes, 1});
      ASSERT_NE(result.status, Status::failed);
      bytes = bytes.subspan(result.bytes);
    }
    while (stream->state().unsent) {
      ASSERT_NE(stream->write({}).status, Status::failed);
    }
  };
  while (!end.ready() || !end.pending_output().empty()) {
    write(end.pending_output());
    end.consume_output(end.pending_output().size());
    if (end.ready()) {
      break;
    }
    std::uint8_t bytes[1];
    MutableBytes into(bytes);
    const sys::IoResult result = stream->read({&into, 1});
    if (result.status == Status::would_block) {
      ASSERT_TRUE(wait_fd(stream->fd(), sys::Interest::readable));
    }
    input.append(as_text(Bytes(bytes).first(result.bytes)));
    input.erase(0, end.handle_input(as_bytes(input), sys::now()));
    ASSERT_FALSE(end.fault());
  }
  write(as_bytes(wire_frame(0, std::string(500, 'x'))));
  const auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size(), 500u);
}

TEST_F(Tls, APeerThatStopsInTheMiddleOfARecordLosesOnlyItsOwnMessage) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  WirePeer peer = WirePeer::dial(endpoint, zmtp::SocketType::push);
  peer.write(wire_frame(0, "whole"));
  peer.write(wire_frame(0, std::string(20'000, 'x')).substr(0, 10'000));
  EXPECT_EQ(pull.recv()->text(), "whole");
  expect_serves(pull, endpoint);
  {
    const WirePeer gone = std::move(peer);
  }  // without the end of its TLS
  const MonitorEvent event = wait_for(pull, EventKind::disconnected);
  EXPECT_EQ(event.reason.code(), Errc::connection_closed) << event.reason.message();
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

TEST_F(Tls, AForgedRecordEndsTheConnection) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  std::size_t passes = 1 << 20;
  auto stream = dial_cut(endpoint, passes, 1 << 20);
  const std::string forged = std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'f');
  const int fd = stream->fd();
  EXPECT_EQ(sys::write_some(fd, as_bytes(forged)).bytes, forged.size());
  const MonitorEvent event = wait_for(pull, EventKind::handshake_failed);
  EXPECT_EQ(event.reason.code(), Errc::protocol_error);
  EXPECT_EQ(reason_of(event), "decryption failed or bad record mac");
}

// --- the state of a connection ---

TEST_F(Tls, APeerThatReadsNothingFillsTheQueueAndThenGetsAllInOrder) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::send_high_water_mark, 10));
  ASSERT_TRUE(push.set(option::send_buffer, 16 * 1024));
  const std::string endpoint = bind(push);
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 10));
  ASSERT_TRUE(pull.set(option::receive_buffer, 16 * 1024));
  connect(pull, endpoint);
  (void)wait_for(push, EventKind::handshake_succeeded);
  std::size_t sent = 0;
  for (; sent < 20'000; ++sent) {
    std::string text = std::to_string(sent);
    text.resize(1000 + sent % 40'000, 'x');
    if (!push.try_send(as_bytes(text))) {
      break;
    }
  }
  EXPECT_LT(sent, 5000u);
  for (std::size_t i = 0; i < sent; ++i) {
    const auto got = pull.recv();
    ASSERT_TRUE(got) << i << " of " << sent;
    const std::string number = std::to_string(i);
    ASSERT_EQ(got->text().substr(0, number.size()), number);
    ASSERT_EQ(got->size(), 1000 + i % 40'000);
  }
}

TEST_F(Tls, BothDirectionsAtOnceLoseNothing) {
  Socket server = make(SocketType::pair);
  const std::string endpoint = bind(server);
  Socket client = make(SocketType::pair);
  connect(client, endpoint);
  constexpr int kMessages = 3000;
  const auto send_all = [](Socket& socket) {
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(socket.send(std::to_string(i) + std::string(static_cast<std::size_t>(i % 3000), 'x')));
    }
  };
  const auto receive_all = [](Socket& socket) {
    for (int i = 0; i < kMessages; ++i) {
      const auto got = socket.recv();
      ASSERT_TRUE(got);
      const std::string number = std::to_string(i);
      ASSERT_EQ(got->text().substr(0, number.size()), number);
    }
  };
  std::thread threads[] = {std::thread([&] { send_all(server); }), std::thread([&] { send_all(client); }),
                           std::thread([&] { receive_all(server); }), std::thread([&] { receive_all(client); })};
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(Tls, WhatLingersArrivesAndTheEndIsAnnounced) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  {
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.set(option::linger, kLong));
    connect(push, endpoint);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(push.send(std::string(50'000, 'x')));
    }
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pull.recv());
  }
  const MonitorEvent event = wait_for(pull, EventKind::disconnected);
  EXPECT_EQ(event.reason.code(), Errc::connection_closed);
  EXPECT_EQ(reason_of(event), "") << "TLS ended before the stream";
}

TEST_F(Tls, AClientReconnectsToAServerThatComesBack) {
  Socket push = make(SocketType::push);
  std::string endpoint;
  {
    Socket pull = make(SocketType::pull);
    endpoint = bind(pull);
    connect(push, endpoint);
    exchange(push, pull);
    ASSERT_TRUE(pull.unbind(endpoint));
  }
  (void)wait_for(push, EventKind::disconnected);
  Socket again = make(SocketType::pull);
  ASSERT_TRUE(again.set(option::tls_certificate, certificate().certificate));
  ASSERT_TRUE(again.set(option::tls_key, certificate().key));
  ASSERT_TRUE(again.bind(endpoint));
  exchange(push, again, "again");
}

}  // namespace
}  // namespace weft::conformance

#endif
