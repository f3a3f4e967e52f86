// SPDX-License-Identifier: MIT
// Each bound on messages and on a peer's subscriptions, beside each that exceeds it: the caller of a socket that has
// the bound, a Weft peer without it, and a peer of another library. The rest of the connection, and other peers, stay.
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::conformance {
namespace {

using Frames = std::vector<std::pair<std::uint8_t, std::string>>;

constexpr std::size_t kManyParts = 80;  // more than a bound of 3 and the envelope of 64

struct Bound {
  const char* name;
  SocketType holder;  // binds, and has the bound
  SocketType peer;
  zmtp::WireType peer_on_wire;
  Errc answer;                    // to the caller beyond it
  const char* words;              // of the answer
  void (*lower)(Socket& socket);  // sets the bound
  void (*lift)(Socket& peer);     // null: no option lifts the bound of the caller
  Result<void> (*exceed)(Socket& peer, int turn);
  Frames (*exceed_on_wire)(const Transport& row, int turn);
  Texts permitted;     // messages that the holder receives of the first turn nevertheless
  Texts excess;        // the message that it receives besides where peers have no bounds: within the process
  const char* reason;  // of the event
  bool ends = false;   // the connection ends, and the peer connects again
};

Result<void> send_parts(Socket& peer, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    WEFT_TRY(peer.send("p", i + 1 < count ? More::yes : More::no));
  }
  return {};
}
std::string long_topic(int turn) { return std::string(65'537, static_cast<char>('s' + turn)); }

// The first turn takes all that is permitted, "a" to "c", and one more; each later turn one more.
Texts names(int turn) {
  return turn == 0 ? Texts{"a", "b", "c", "d"} : Texts{std::string(1, static_cast<char>('d' + turn))};
}

Frames subscriptions(const Transport& row, const Texts& topics) {
  Frames frames;
  for (const std::string& topic : topics) {
    frames.emplace_back(row.websocket() ? std::uint8_t{0} : zmtp::kCommand, subscription(row, true, topic));
  }
  return frames;
}

Bound bytes_of_a_part() {
  return {.name = "bytes of a part",
          .holder = SocketType::pull,
          .peer = SocketType::push,
          .peer_on_wire = zmtp::WireType::push,
          .answer = Errc::message_too_large,
          .words = "max_send_size",
          .lower =
              [](Socket& socket) {
                EXPECT_TRUE(socket.set(option::max_message_size, 1000));
                EXPECT_TRUE(socket.set(option::max_send_size, 1000));
              },
          .lift = [](Socket& peer) { EXPECT_TRUE(peer.set(option::max_send_size, -1)); },
          .exceed = [](Socket& peer, int) { return peer.send(std::string(1001, 'x')); },
          .exceed_on_wire = [](const Transport&, int) { return Frames{{0, std::string(1001, 'x')}}; },
          .permitted = {},
          .excess = {std::string(1001, 'x')},
          .reason = "",
          .ends = true};
}

Bound parts_of_a_message() {
  return {.name = "parts of a message",
          .holder = SocketType::pull,
          .peer = SocketType::push,
          .peer_on_wire = zmtp::WireType::push,
          .answer = Errc::message_too_large,
          .words = "message_parts_max",
          .lower = [](Socket& socket) { EXPECT_TRUE(socket.set(option::message_parts_max, 3)); },
          .lift = [](Socket& peer) { EXPECT_TRUE(peer.set(option::message_parts_max, 0)); },
          .exceed = [](Socket& peer, int) { return send_parts(peer, kManyParts); },
          .exceed_on_wire =
              [](const Transport&, int) {
                Frames frames(kManyParts, {zmtp::kMore, "p"});
                frames.back().first = 0;
                return frames;
              },
          .permitted = {},
          .excess = Texts(kManyParts, "p"),
          .reason = "multipart message exceeds its limit"};
}

Bound bytes_of_a_topic() {
  return {.name = "bytes of a topic",
          .holder = SocketType::xpub,
          .peer = SocketType::xsub,
          .peer_on_wire = zmtp::WireType::sub,
          .answer = Errc::invalid_argument,
          .words = "65,536",
          .lower = [](Socket&) {},
          .lift = nullptr,
          .exceed = [](Socket& peer, int turn) { return peer.subscribe(long_topic(turn)); },
          .exceed_on_wire = [](const Transport& row, int turn) { return subscriptions(row, {long_topic(turn)}); },
          .permitted = {},
          .excess = {},
          .reason = "subscription exceeds its limit"};
}

Bound topics() {
  return {.name = "subscriptions",
          .holder = SocketType::xpub,
          .peer = SocketType::xsub,
          .peer_on_wire = zmtp::WireType::sub,
          .answer = Errc::invalid_argument,
          .words = "subscriptions_max",
          .lower = [](Socket& socket) { EXPECT_TRUE(socket.set(option::subscriptions_max, 3)); },
          .lift = [](Socket& peer) { EXPECT_TRUE(peer.set(option::subscriptions_max, 0)); },
          .exceed = [](Socket& peer, int turn) -> Result<void> {
            for (const std::string& topic : names(turn)) {
              WEFT_TRY(peer.subscribe(topic));
            }
            return {};
          },
          .exceed_on_wire = [](const Transport& row, int turn) { return subscriptions(row, names(turn)); },
          .permitted = {"\1a", "\1b", "\1c"},
          .excess = {"\1d"},
          .reason = "too many subscriptions"};
}

Bound groups() {
  return {.name = "groups",
          .holder = SocketType::radio,
          .peer = SocketType::dish,
          .peer_on_wire = zmtp::WireType::dish,
          .answer = Errc::invalid_argument,
          .words = "subscriptions_max",
          .lower = [](Socket& socket) { EXPECT_TRUE(socket.set(option::subscriptions_max, 3)); },
          .lift = [](Socket& peer) { EXPECT_TRUE(peer.set(option::subscriptions_max, 0)); },
          .exceed = [](Socket& peer, int turn) -> Result<void> {
            for (const std::string& group : names(turn)) {
              WEFT_TRY(peer.join(group));
            }
            return {};
          },
          .exceed_on_wire =
              [](const Transport&, int turn) {
                Frames frames;
                for (const std::string& group : names(turn)) {
                  frames.emplace_back(zmtp::kCommand, "\4JOIN" + group);
                }
                return frames;
              },
          .permitted = {},
          .excess = {},
          .reason = "too many subscriptions"};
}

// A new bound on a peer's messages or subscriptions is a row here, and one in docs/security.md.
std::vector<Bound> all_bounds() {
  return {bytes_of_a_part(), parts_of_a_message(), bytes_of_a_topic(), topics(), groups()};
}

class BoundMatrix : public Conformance {
 protected:
  // A holder of the bound, and beside the peer that will exceed it one that does not.
  struct Scene {
    Socket holder;
    std::string endpoint;
    Socket beside;
  };
  [[nodiscard]] Scene make_scene(const Bound& bound) {
    Scene scene{make(bound.holder), {}, make(bound.peer)};
    bound.lower(scene.holder);
    EXPECT_TRUE(scene.holder.watch_events());
    scene.endpoint = bind(scene.holder);
    connect_ready(scene.beside, scene.endpoint);
    if (bound.peer == SocketType::dish) {
      EXPECT_TRUE(scene.beside.join("beside"));
      wait_until([&] { return scene.holder.core()->subscribers().value_or(0) == 1; });
    }
    expect_beside(bound, scene);
    return scene;
  }
  static void connect_ready(Socket& peer, const std::string& endpoint) {
    EXPECT_TRUE(peer.watch_events());
    connect(peer, endpoint);
    wait_for_peers(peer);
  }
  template <typename Condition>
  static void wait_until(Condition met) {
    const Instant end = sys::now() + kLong;
    while (!met()) {
      ASSERT_LT(sys::now(), end);
      std::this_thread::yield();
    }
  }

  // The other peer of the holder is served.
  static void expect_beside(const Bound& bound, Scene& scene) {
    if (bound.peer == SocketType::dish) {
      EXPECT_TRUE(tell(scene.holder, "beside", "served"));
      EXPECT_EQ(hear(scene.beside), "beside: served");
      return;
    }
    send(scene.beside, "served");
    EXPECT_EQ(recv_text(scene.holder), "served");
  }
  // A message of the peer arrives, or one for it. Before, the holder received the permitted messages only.
  static void expect_served(const Bound& bound, Scene& scene, Socket& peer) {
    if (bound.peer == SocketType::dish) {
      EXPECT_TRUE(tell(scene.holder, "a", "served"));
      EXPECT_EQ(hear(peer), "a: served");
      return;
    }
    send(peer, "served");
    EXPECT_EQ(recv(scene.holder).back(), "served");
  }
  static void expect_served(const Bound& bound, Scene& scene, WirePeer& peer) {
    if (bound.peer == SocketType::dish) {
      EXPECT_TRUE(tell(scene.holder, "a", "served"));
      EXPECT_EQ(peer.read_opened_frame().body, "a");
      EXPECT_EQ(peer.read_opened_frame().body, "served");
      return;
    }
    peer.write(peer.frame(0, "served"));
    EXPECT_EQ(recv_text(scene.holder), "served");
  }

  // After two turns beyond the bound: one event with the reason, two counts, and a connection that stays.
  static void expect_told(const Bound& bound, Socket& holder) {
    const MonitorEvent event = wait_for_event(holder, EventKind::bound_exceeded);
    EXPECT_EQ(event.reason.code(), Errc::message_too_large);
    EXPECT_EQ(event.reason.text(), std::string_view(bound.reason));
    EXPECT_TRUE(!over_tcp(GetParam()) || event.other.find("127.0.0.1:") != std::string::npos) << event.other;
    const std::uint64_t dropped = bound.holder == SocketType::pull ? 2 : 0;  // counted at the end of each message
    wait_until(
        [&] { return holder.statistics()->bounds_exceeded >= 2 && holder.statistics()->dropped_excess >= dropped; });
    const Statistics counts = holder.statistics().value();
    EXPECT_EQ(counts.bounds_exceeded, 2u);
    EXPECT_EQ(counts.dropped_excess, dropped);
    EXPECT_EQ(counts.disconnected, 0u);
    while (const auto next = holder.next_event(Duration::zero())) {
      EXPECT_NE(next->kind, EventKind::bound_exceeded) << "one event a connection";
    }
  }
  static void expect_ended(Socket& holder) {
    const MonitorEvent event = wait_for_event(holder, EventKind::disconnected);
    EXPECT_EQ(event.reason.code(), Errc::message_too_large) << event.reason.message();
    EXPECT_EQ(holder.statistics()->disconnected, 1u);
    EXPECT_EQ(holder.statistics()->bounds_exceeded, 0u);
  }
  [[nodiscard]] static WirePeer dial(const Bound& bound, const std::string& endpoint) {
    std::unique_ptr<zmtp::Mechanism> mechanism = std::make_unique<zmtp::NullMechanism>();
    if (GetParam().encrypted) {
      mechanism = zmtp::make_curve_client(zmtp::make_curve_key_pair().value(), server_keys().public_key);
    }
    return WirePeer::dial(endpoint, bound.peer_on_wire, std::move(mechanism));
  }
  static void exceed_on_wire(const Bound& bound, WirePeer& peer, int turn) {
    std::string bytes;
    for (const auto& [flags, body] : bound.exceed_on_wire(GetParam(), turn)) {
      bytes += peer.frame(flags, body);
    }
    peer.write(bytes);
  }
};
WEFT_EVERY_TRANSPORT(BoundMatrix);

TEST_P(BoundMatrix, ACallerIsRefusedAndTheSocketServesOn) {
  for (const Bound& bound : all_bounds()) {
    SCOPED_TRACE(bound.name);
    Scene scene = make_scene(bound);
    Socket peer = make(bound.peer);
    bound.lower(peer);
    connect_ready(peer, scene.endpoint);
    const Result<void> answer = bound.exceed(peer, 0);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(), bound.answer);
    EXPECT_NE(std::string_view(answer.error().text()).find(bound.words), std::string_view::npos)
        << answer.error().text();
    EXPECT_EQ(recv_many(scene.holder, bound.permitted.size()), bound.permitted);
    if (bound.peer == SocketType::dish) {
      wait_until([&] { return scene.holder.core()->subscribers().value_or(0) == 2; });  // it has the first group
    }
    expect_served(bound, scene, peer);
    expect_beside(bound, scene);
    EXPECT_EQ(scene.holder.statistics()->bounds_exceeded, 0u);
    EXPECT_EQ(scene.holder.statistics()->disconnected, 0u);
  }
}

TEST_P(BoundMatrix, AWeftPeerLosesTheExcessAlone) {
  for (const Bound& bound : all_bounds()) {
    if (bound.lift == nullptr) {
      continue;
    }
    SCOPED_TRACE(bound.name);
    Scene scene = make_scene(bound);
    Socket peer = make(bound.peer);
    bound.lift(peer);
    connect_ready(peer, scene.endpoint);
    EXPECT_TRUE(bound.exceed(peer, 0));
    EXPECT_EQ(recv_many(scene.holder, bound.permitted.size()), bound.permitted);
    if (!GetParam().streams) {  // a process trusts its own sockets
      EXPECT_EQ(bound.excess.empty() ? Texts() : recv(scene.holder), bound.excess);
      EXPECT_EQ(scene.holder.statistics()->bounds_exceeded, 0u);
    } else if (bound.ends) {
      expect_ended(scene.holder);
      wait_for_peers(scene.holder);
    } else {
      EXPECT_TRUE(bound.exceed(peer, 1));
      expect_told(bound, scene.holder);
    }
    expect_served(bound, scene, peer);
    expect_beside(bound, scene);
  }
}

class BoundMatrixOnWire : public BoundMatrix {};
WEFT_TRANSPORTS_WHERE(BoundMatrixOnWire, over_streams);

TEST_P(BoundMatrixOnWire, AForeignPeerLosesTheExcessAlone) {
  for (const Bound& bound : all_bounds()) {
    SCOPED_TRACE(bound.name);
    Scene scene = make_scene(bound);
    WirePeer peer = dial(bound, scene.endpoint);
    exceed_on_wire(bound, peer, 0);
    EXPECT_EQ(recv_many(scene.holder, bound.permitted.size()), bound.permitted);
    if (bound.ends) {
      expect_ended(scene.holder);
      (void)peer.read_to_end();
    } else {
      exceed_on_wire(bound, peer, 1);
      expect_told(bound, scene.holder);
      expect_served(bound, scene, peer);
    }
    expect_beside(bound, scene);
  }
}

}  // namespace
}  // namespace weft::conformance
