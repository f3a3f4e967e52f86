// SPDX-License-Identifier: MIT
// Listeners behind a proxy: ListenerOptions::proxy_protocol.
#include "weft/serve/admission/proxy_waits.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weft/net/admit/admission.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using test::Client;
using test::echo;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

constexpr std::string_view kProxyLine = "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n";
// The same in version 2, with a field after the addresses.
const std::string kProxyBinary =
    "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xc0\0\x02\x01\xc6\x33\x64\x07\x12\x67\x01\xbb\x04\0\x01x"s;
const std::string kProxyLocal = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"s;

class ProxyProtocolTest : public test::ServerTest {
 protected:
  ProxyProtocolTest() {
    script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
      if (frame.header.id == 1) {
        (void)session.send(frame.header, as_bytes(session.peer_address()));
      } else {
        echo(session, frame);
      }
    };
  }

  static ListenerOptions behind(std::string_view networks) {
    ListenerOptions options;
    options.proxy_protocol = net::AcceptFilter::parse(networks, "").value();
    return options;
  }
  std::string listen_behind(const ListenerOptions& options, const ServerOptions& server = {}) {
    ServerOptions logged = server;
    logged.log = [this](const LogRecord& record) {
      const std::lock_guard lock(mutex_);
      if (record.event == LogEvent::connection_rejected) {
        refused_.push_back({std::string(record.peer), std::string(record.reason), record.error});
      }
    };
    make_server(logged);
    return listen(options);
  }
  void expect_refused(std::string_view bytes, std::string_view why) {
    Client client(endpoint_);
    client.write_some(bytes, kLong);
    client.end_writing();
    EXPECT_EQ(client.read_to_end(), "");
    ++refusals_;
    until(
        [this](const CounterValues& counters) { return counters.rejected_for(Rejection::proxy_header) == refusals_; });
    const std::lock_guard lock(mutex_);
    ASSERT_FALSE(refused_.empty());
    EXPECT_EQ(refused_.back().reason, "proxy header");
    EXPECT_EQ(refused_.back().error.text(), why);
    EXPECT_TRUE(refused_.back().peer.starts_with("127.0.0.1:")) << refused_.back().peer;
  }
  // The address that a session has after that header.
  std::string address_behind(std::string_view header) const {
    Client client(endpoint_);
    client.write(std::string(header) + frame_of(1, ""));
    return client.receive().value_or("closed");
  }

  struct Refused {
    std::string peer;
    std::string reason;
    Error error;
  };
  std::mutex mutex_;
  std::vector<Refused> refused_;  // guarded by mutex_
  std::uint64_t refusals_ = 0;
  std::string endpoint_;
};

TEST_F(ProxyProtocolTest, ASessionHasTheAddressInItsHeader) {
  endpoint_ = listen_behind(behind("127.0.0.0/8"));
  EXPECT_EQ(address_behind(kProxyLine), "192.0.2.1:4711");
  EXPECT_EQ(address_behind(kProxyBinary), "192.0.2.1:4711");
  EXPECT_EQ(address_behind("PROXY TCP6 2001:db8::1 ::1 4711 443\r\n"), "[2001:db8::1]:4711");
}

TEST_F(ProxyProtocolTest, AConnectionOfTheProxyItselfKeepsItsAddress) {
  endpoint_ = listen_behind(behind("127.0.0.0/8"));
  EXPECT_TRUE(address_behind(kProxyLocal).starts_with("127.0.0.1:"));
  EXPECT_TRUE(address_behind("PROXY UNKNOWN\r\n").starts_with("127.0.0.1:"));
}

TEST_F(ProxyProtocolTest, AHeaderMayBeSplitAtEachByte) {
  endpoint_ = listen_behind(behind("127.0.0.0/8"));
  for (const std::string_view header : {kProxyLine, std::string_view(kProxyBinary)}) {
    for (std::size_t at = 1; at < header.size(); ++at) {
      Client client(endpoint_);
      client.write(header.substr(0, at));
      // An answer on another connection: the core has read the first part by now, or will read both at once.
      EXPECT_EQ(address_behind(kProxyLine), "192.0.2.1:4711");
      client.write(std::string(header.substr(at)) + frame_of(1, ""));
      EXPECT_EQ(client.receive(), "192.0.2.1:4711") << "split at " << at;
    }
  }
}

TEST_F(ProxyProtocolTest, AWrongHeaderIsRefusedCountedAndLogged) {
  endpoint_ = listen_behind(behind("127.0.0.0/8"));
  expect_refused(frame_of(1, "no header"), "the connection has no PROXY header");
  expect_refused("GET / HTTP/1.1\r\n\r\n", "the connection has no PROXY header");
  expect_refused("PROXY TCP4 192.0.2.1\r\n", "a malformed PROXY header");
  expect_refused("\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff"sv, "a PROXY header of more than 536 bytes");
  expect_refused("\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c"sv, "a PROXY header of an unknown version, command or family");
  expect_refused("", "the stream ended before its PROXY header");
  expect_refused("PROXY TCP4", "the stream ended before its PROXY header");
  EXPECT_EQ(server_->counters().opened, 0u);
  EXPECT_EQ(server_->sessions(), 0u);
  EXPECT_EQ(address_behind(kProxyLine), "192.0.2.1:4711");
}

TEST_F(ProxyProtocolTest, AHeaderFromElsewhereIsRefusedUnread) {
  endpoint_ = listen_behind(behind("127.0.0.2,10.0.0.0/8"));
  expect_refused(kProxyLine, "the connection came from no stated proxy");
  const std::string port = endpoint_.substr(endpoint_.rfind(':'));
  endpoint_ = "tcp://127.0.0.2:0;127.0.0.1" + port;
  EXPECT_EQ(address_behind(kProxyLine), "192.0.2.1:4711");
}

TEST_F(ProxyProtocolTest, AHeaderThatDoesNotComeIsRefusedAfterTheHandshakeTimeout) {
  ListenerOptions options = behind("127.0.0.0/8");
  options.limits.handshake_timeout = std::chrono::milliseconds(50);
  endpoint_ = listen_behind(options);
  Client silent(endpoint_);
  Client slow(endpoint_);
  slow.write("PROXY TCP4 ");
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_EQ(slow.read_to_end(), "");
  until([](const CounterValues& counters) { return counters.rejected_for(Rejection::proxy_header) == 2; });
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(refused_.size(), 2u);
  EXPECT_STREQ(refused_[0].error.text(), "the PROXY header did not come in time");
}

// The handshake time-out counts from the accept once: the age of the new session has the wait for its header.
TEST_F(ProxyProtocolTest, TheTimeOfTheHeaderCountsForTheHandshakeOfTheSession) {
  constexpr Duration kWait = std::chrono::milliseconds(20);
  std::atomic<Duration> age{};
  script_.on_open = [&age](HeaderSession& session) { age = session.glance().age; };
  ListenerOptions options = behind("127.0.0.0/8");
  options.limits.handshake_timeout = kLong;
  endpoint_ = listen_behind(options);
  Client client(endpoint_);
  client.write("PROXY TCP4 ");
  until([this](const CounterValues&) { return server_->sessions() == 1; });  // it waits
  for (const Instant waited = sys::now() + kWait; sys::now() < waited;) {
    std::this_thread::yield();
  }
  client.write("192.0.2.1 198.51.100.7 4711 443\r\n" + frame_of(1, ""));
  EXPECT_EQ(client.receive(), "192.0.2.1:4711");
  EXPECT_GE(age.load(), kWait);
}

TEST_F(ProxyProtocolTest, ALiveLimitBoundsTheWaitForTheHeader) {
  ListenerOptions options = behind("127.0.0.0/8");
  options.limits.handshake_timeout = kLong;
  const auto live = std::make_shared<LiveLimits>();
  SessionLimits limits = options.limits;
  limits.handshake_timeout = std::chrono::milliseconds(50);
  live->set(limits);
  options.live_limits = live;
  endpoint_ = listen_behind(options);
  EXPECT_EQ(Client(endpoint_).read_to_end(), "");
  until([](const CounterValues& counters) { return counters.rejected_for(Rejection::proxy_header) == 1; });
}

TEST_F(ProxyProtocolTest, AdmissionCountsTheAddressInTheHeader) {
  net::AdmissionOptions limits;
  limits.address_connections_max = 1;
  ListenerOptions options = behind("127.0.0.0/8");
  options.admission = std::move(net::Admission::make(limits)).value();
  endpoint_ = listen_behind(options);
  Client first(endpoint_);
  first.write(std::string(kProxyLine) + frame_of(1, ""));
  EXPECT_EQ(first.receive(), "192.0.2.1:4711");
  Client second(endpoint_);
  second.write(kProxyBinary);
  EXPECT_EQ(second.read_to_end(), "");
  EXPECT_EQ(address_behind("PROXY TCP4 192.0.2.2 198.51.100.7 4711 443\r\n"), "192.0.2.2:4711");
  EXPECT_EQ(server_->counters().rejected_for(Rejection::admission), 1u);
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(refused_.size(), 1u);
  EXPECT_EQ(refused_[0].peer, "192.0.2.1:4711");
}

TEST_F(ProxyProtocolTest, AConnectionThatWaitsCountsAsASession) {
  ServerOptions server;
  server.sessions_max = 2;
  endpoint_ = listen_behind(behind("127.0.0.0/8"), server);
  Client waits(endpoint_);
  until([this](const CounterValues&) { return server_->sessions() == 1; });
  Client waits_too(endpoint_);
  until([this](const CounterValues&) { return server_->sessions() == 2; });
  Client refused(endpoint_);
  EXPECT_EQ(refused.read_to_end(), "");
  EXPECT_EQ(server_->counters().rejected_for(Rejection::full), 1u);
  waits.close();
  until([this](const CounterValues&) { return server_->sessions() == 1; });
  waits_too.write(std::string(kProxyLine) + frame_of(1, ""));
  EXPECT_EQ(waits_too.receive(), "192.0.2.1:4711");
}

TEST_F(ProxyProtocolTest, AStopRefusesTheConnectionsThatWait) {
  endpoint_ = listen_behind(behind("127.0.0.0/8"));
  Client waits(endpoint_);
  until([this](const CounterValues&) { return server_->sessions() == 1; });
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(waits.read_to_end(), "");
  EXPECT_EQ(server_->counters().rejected_for(Rejection::failed), 1u);
  EXPECT_EQ(server_->sessions(), 0u);
}

TEST_F(ProxyProtocolTest, ARuntimeThatEndsRefusesTheConnectionsThatWait) {
  endpoint_ = listen_behind(behind("127.0.0.0/8"));
  Client waits(endpoint_);
  until([this](const CounterValues&) { return server_->sessions() == 1; });
  ASSERT_TRUE(runtime_->stop(sys::now() + kLong));
  EXPECT_EQ(waits.read_to_end(), "");
}

TEST_F(ProxyProtocolTest, OverIpcTheProxiesAreProcesses) {
  ListenerOptions options;
  options.proxy_protocol = net::AcceptFilter::parse("127.0.0.0/8", "").value();
  make_server();
  const auto make = [this] { return test::ScriptService{&script_}; };
  EXPECT_EQ(server_->listen<HeaderCodec>("ipc://*", options, make).error(), Errc::invalid_argument);
  options.proxy_protocol = net::AcceptFilter::parse("", "uid:0,uid:4294967295").value();
  const auto bound = server_->listen<HeaderCodec>("ipc://*", options, make);
  ASSERT_TRUE(bound) << bound.error().message();
  options.proxy_protocol = net::AcceptFilter();
  EXPECT_EQ(server_->listen<HeaderCodec>("tcp://127.0.0.1:0", options, make).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::serve
