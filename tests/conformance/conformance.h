// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/conformance/test_certificates.h"
#include "tests/support/socket_events.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"
#include "weft/weft.h"
#include "weft/zmtp/curve.h"
#include <gtest/gtest.h>

namespace weft::conformance {

using namespace std::chrono_literals;

struct Transport {
  const char* name;
  const char* endpoint;    // "DIR": a fresh directory, "N": a fresh number
  bool streams;            // connections with a handshake, buffers of the kernel between, and reconnecting
  bool encrypted = false;  // CURVE: the binding side is the server
  bool tls = false;        // both sides have certificates, and demand them

  [[nodiscard]] bool websocket() const { return std::string_view(endpoint).starts_with("ws"); }
};

// A new transport is one line in this table, or in transports() where not every kernel has it.
inline constexpr Transport kTransports[] = {
    {"inproc", "inproc://place-N", false},
    {"tcp", "tcp://127.0.0.1:*", true},
    {"ipc", "ipc://DIR/place-N", true},
    {"ws", "ws://127.0.0.1:*/path", true},
#ifdef WEFT_HAVE_SODIUM
    {"curve", "tcp://127.0.0.1:*", true, true},
#endif
#ifdef WEFT_HAVE_OPENSSL
    {"tls", "tls+tcp://127.0.0.1:*", true, false, true},
    {"wss", "wss://127.0.0.1:*/path", true, false, true},
#endif
};

[[nodiscard]] inline std::vector<Transport> transports() {
  std::vector<Transport> rows(std::begin(kTransports), std::end(kTransports));
  if (sys::has_vsock_loopback()) {
    rows.push_back({"vsock", "vsock://1:*", true});
  }
  return rows;
}

// The message that an XPUB gives its application when a peer subscribes to the topic, or takes that back.
inline std::string note(bool subscribed, std::string_view topic) {
  return (subscribed ? '\1' : '\0') + std::string(topic);
}

inline void PrintTo(const Transport& transport, std::ostream* out) { *out << transport.name; }

// Runs a suite over every transport: one line per suite.
#define WEFT_EVERY_TRANSPORT(suite)                                                                     \
  INSTANTIATE_TEST_SUITE_P(EveryTransport, suite, testing::ValuesIn(::weft::conformance::transports()), \
                           [](const auto& row) { return std::string(row.param.name); })

// Runs a suite over those transports for which `wants` is true.
template <typename Predicate>
[[nodiscard]] std::vector<Transport> transports_where(Predicate wants) {
  std::vector<Transport> rows;
  for (const Transport& row : transports()) {
    if (wants(row)) {
      rows.push_back(row);
    }
  }
  return rows;
}
#define WEFT_TRANSPORTS_WHERE(suite, wants)                                                                        \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); /* a build may have no such transport */                   \
  INSTANTIATE_TEST_SUITE_P(EveryTransport, suite, testing::ValuesIn(::weft::conformance::transports_where(wants)), \
                           [](const auto& row) { return std::string(row.param.name); })

[[nodiscard]] inline bool over_streams(const Transport& row) { return row.streams; }
[[nodiscard]] inline bool in_process(const Transport& row) { return !row.streams; }
[[nodiscard]] inline bool over_tcp(const Transport& row) {
  return std::string_view(row.endpoint).find("://127.0.0.1:*") != std::string_view::npos;
}
[[nodiscard]] inline bool over_vsock(const Transport& row) {
  return std::string_view(row.endpoint).starts_with("vsock");
}
[[nodiscard]] inline bool over_ipc(const Transport& row) { return std::string_view(row.endpoint).starts_with("ipc"); }
[[nodiscard]] inline bool over_curve(const Transport& row) { return row.encrypted; }
// Where a peer can write ZMTP 3 by hand. Over WebSocket it does so above the client's or the server's layer.
[[nodiscard]] inline bool in_the_clear(const Transport& row) { return row.streams && !row.encrypted; }
// A WebSocket carries neither older versions nor bytes without a protocol. ws_test.cc has peers that write it by hand.
[[nodiscard]] inline bool without_websocket(const Transport& row) { return in_the_clear(row) && !row.websocket(); }

using Texts = std::vector<std::string>;

// One message of a RADIO to a group.
inline Result<void> tell(Socket& radio, std::string_view group, std::string_view text) {
  Message message = std::move(Message::copy_of(text)).value();
  WEFT_TRY(message.set_group(group));
  return radio.send(std::move(message));
}

// The next message of a DISH as "group: text".
inline std::string hear(Socket& dish) {
  const auto message = dish.recv();
  EXPECT_TRUE(message) << message.error().message();
  return message ? std::string(message->group()) + ": " + std::string(message->text()) : message.error().message();
}

// Calls `send` until no queue of `publisher` was too full for the message. `make_room` reads some queued messages.
template <typename Send, typename MakeRoom>
void send_without_drop(Socket& publisher, const Send& send, const MakeRoom& make_room) {
  const Instant end = sys::now() + 20s;
  for (;;) {
    const std::uint64_t before = publisher.statistics()->dropped;
    send();
    if (publisher.statistics()->dropped == before) {
      return;
    }
    ASSERT_LT(sys::now(), end) << "the queue stays full";
    make_room();
  }
}

// Conformance: one context and a directory. Every wait of its sockets ends after kLong, so that a broken test fails
// instead of hanging.
class Conformance : public testing::TestWithParam<Transport> {
 protected:
  static constexpr Duration kLong = 20s;

  Conformance() : directory_(std::move(sys::make_private_directory()).value()), context_(std::make_unique<Context>()) {}
  ~Conformance() override {
    context_.reset();
    EXPECT_TRUE(sys::remove_directory(directory_)) << "a socket file is left in " << directory_;
  }

  [[nodiscard]] Context& context() noexcept { return *context_; }
  [[nodiscard]] Socket make(SocketType type) { return make_in(*context_, type); }
  [[nodiscard]] static Socket make_in(Context& context, SocketType type) {
    auto socket = context.socket(type);
    EXPECT_TRUE(socket) << socket.error().message();
    EXPECT_TRUE((*socket).set(option::receive_timeout, kLong));
    EXPECT_TRUE((*socket).set(option::send_timeout, kLong));
    EXPECT_TRUE((*socket).set(option::handshake_timeout, kLong));  // a test may be slow to accept
    EXPECT_TRUE((*socket).set(option::reconnect_interval, 2ms));
    EXPECT_TRUE((*socket).set(option::reconnect_interval_max, 20ms));
#ifdef WEFT_HAVE_OPENSSL
    if (GetParam().tls) {
      give_certificate(*socket);
    }
#endif
    return std::move(socket).value();
  }

  // An endpoint that bind() takes; for tcp with a port of the system's choice.
  [[nodiscard]] std::string new_endpoint() {
    std::string text = GetParam().endpoint;
    if (const std::size_t at = text.find("DIR"); at != std::string::npos) {
      text.replace(at, 3, directory_);
    }
    if (const std::size_t at = text.rfind("-N"); at != std::string::npos) {
      text.replace(at + 1, 1, std::to_string(++places_));
    }
    return text;
  }
  [[nodiscard]] std::string bind(Socket& socket) {
    secure_server(socket);
    auto exact = socket.bind(new_endpoint());
    EXPECT_TRUE(exact) << exact.error().message();
    return exact ? *exact : std::string();
  }
  // For tests that bind and connect by themselves. Nothing where the transport is in the clear.
  static void secure_server(Socket& socket) {
    if (GetParam().encrypted) {
      EXPECT_TRUE(socket.set(option::curve_secret_key, text_of(server_keys().secret_key)));
      EXPECT_TRUE(socket.set(option::curve_server, true));
    }
  }
  [[nodiscard]] static const zmtp::CurveKeyPair& server_keys() {
    static const zmtp::CurveKeyPair keys = zmtp::make_curve_key_pair().value();
    return keys;
  }
  static void secure_client(Socket& socket) {
    if (GetParam().encrypted) {
      const auto ours = zmtp::make_curve_key_pair();
      ASSERT_TRUE(ours);
      EXPECT_TRUE(socket.set(option::curve_public_key, text_of(ours->public_key)));
      EXPECT_TRUE(socket.set(option::curve_secret_key, text_of(ours->secret_key)));
      EXPECT_TRUE(socket.set(option::curve_server_key, text_of(server_keys().public_key)));
    }
  }
  // An endpoint without a listener.
  [[nodiscard]] std::string free_endpoint() {
    Socket socket = make(SocketType::pair);
    const std::string exact = bind(socket);
    EXPECT_TRUE(socket.unbind(exact));
    return exact;
  }
  static void connect(Socket& socket, const std::string& endpoint) {
    secure_client(socket);
    const auto connected = socket.connect(endpoint);
    EXPECT_TRUE(connected) << connected.error().message();
  }
  // Waits until `count` more peers are connected. The socket must have watched events since before they could connect.
  static void wait_for_peers(Socket& socket, int count = 1) {
    for (const Instant end = sys::now() + kLong; GetParam().streams && count > 0;) {
      const auto event = socket.next_event(time_left(end, sys::now()));
      ASSERT_TRUE(event) << event.error().message();
      count -= event->kind == EventKind::handshake_succeeded ? 1 : 0;
    }
  }
  static MonitorEvent wait_for_event(Socket& socket, EventKind kind) {
    return test::wait_for_event(socket, kind, kLong);
  }

  static void send(Socket& socket, std::initializer_list<std::string_view> parts) {
    std::size_t left = parts.size();
    for (const std::string_view part : parts) {
      const auto sent = socket.send(part, --left > 0 ? More::yes : More::no);
      EXPECT_TRUE(sent) << "send " << part.substr(0, 40) << ": " << sent.error().message();
    }
  }
  static void send(Socket& socket, std::string_view text) { send(socket, {text}); }

  // One whole message. A failure shows as a test failure and as one part with the reason.
  [[nodiscard]] static Texts recv(Socket& socket) {
    auto parts = socket.recv_all();
    EXPECT_TRUE(parts) << "recv: " << parts.error().message();
    if (!parts) {
      return {parts.error().message()};
    }
    Texts texts;
    for (const Message& part : *parts) {
      texts.emplace_back(part.text());
    }
    return texts;
  }
  [[nodiscard]] static std::string recv_text(Socket& socket) {
    const Texts texts = recv(socket);
    EXPECT_EQ(texts.size(), 1u);
    return texts.front();
  }
  [[nodiscard]] static Message receive(Socket& socket) {
    auto message = socket.recv();
    EXPECT_TRUE(message) << message.error().message();
    return message ? std::move(message).value() : Message();
  }
  // SERVER, PEER.
  [[nodiscard]] static Result<void> send_to(Socket& socket, std::uint32_t routing_id, std::string_view text) {
    Message message = std::move(Message::copy_of(text)).value();
    WEFT_TRY(message.set_routing_id(routing_id));
    return socket.send(std::move(message));
  }
  // Receives `count` single-part messages.
  [[nodiscard]] static Texts recv_many(Socket& socket, std::size_t count) {
    Texts texts;
    while (texts.size() < count && !HasFailure()) {
      texts.push_back(recv_text(socket));
    }
    return texts;
  }

  // Returns once `subscriber` gets messages of `publisher`: the publisher then has its earlier subscriptions, too. No
  // message is under way between the two afterwards. The publisher's other subscribers must not take topics that begin
  // with ~.
  void synchronize(Socket& publisher, Socket& subscriber) {
    const std::string topic = "~" + std::to_string(++synchronizations_);
    ASSERT_TRUE(subscriber.subscribe(topic));
    const Instant end = sys::now() + kLong;
    for (;;) {
      ASSERT_LT(sys::now(), end) << "the subscription does not arrive";
      send(publisher, topic);
      const auto got = subscriber.recv_until(sys::now() + 1ms);
      if (got && got->text() == topic) {
        break;
      }
      ASSERT_TRUE(got || got.error() == Errc::timed_out);
    }
    send_without_drop(
        publisher, [&] { send(publisher, topic + "end"); }, [&] { (void)subscriber.recv_until(sys::now() + 1ms); });
    while (recv_text(subscriber) != topic + "end" && !HasFailure()) {
    }
    ASSERT_TRUE(subscriber.unsubscribe(topic));
  }

  std::string directory_;
  std::unique_ptr<Context> context_;

 private:
  [[nodiscard]] static std::string text_of(const zmtp::CurveKey& key) { return std::string(as_text(key)); }

  int places_ = 0;
  int synchronizations_ = 0;
};

[[nodiscard]] inline Texts numbered(std::string_view prefix, int from, int count) {
  Texts texts;
  for (int i = from; i < from + count; ++i) {
    texts.push_back(std::string(prefix) + std::to_string(i));
  }
  return texts;
}

}  // namespace weft::conformance
