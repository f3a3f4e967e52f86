// SPDX-License-Identifier: MIT
// Sockets when memory runs out: each allocation of a scenario fails once, of the application's thread and of the I/O
// thread. No allocation failure ends the program, tears a message or leaks, and afterwards the sockets work.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/test_certificates.h"
#include "tests/exhaustion/failing_memory.h"
#include "weft/msg/context.h"
#include "weft/msg/poll.h"
#include "weft/sys/clock.h"
#include "weft/zmtp/curve.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::FailingMemory;
using test::OthersFailingMemory;

constexpr Duration kPatience = 20s;  // for a loaded machine
constexpr Duration kAttempt = 2ms;   // for one message: a failure may have taken it or its connection
constexpr std::size_t kPointsMax = 20'000;

const std::vector<std::uint8_t>& payload() {
  static const auto* const bytes = [] {
    auto* made = new std::vector<std::uint8_t>(1 << 20);
    for (std::size_t i = 0; i < made->size(); ++i) {
      (*made)[i] = static_cast<std::uint8_t>(i * 7 + 2);  // the first byte is not a subscription
    }
    return made;
  }();
  return *bytes;
}

bool no_memory(const Error& error) { return error == Errc::resource_exhausted; }

// Calls until memory suffices. A call that memory refused changed nothing, so the same call again is right.
template <typename Call>
auto insist(Call call) {
  auto result = call();
  for (int i = 0; i < 100 && !result && no_memory(result.error()); ++i) {
    result = call();
  }
  return result;
}

struct Shape {
  std::size_t parts;
  std::size_t size;
};

// The first part of a message may be refused for lack of room or of a peer; the others may not.
bool send(Socket& socket, Shape shape) {
  for (std::size_t i = 0; i < shape.parts; ++i) {
    const More more = i + 1 < shape.parts ? More::yes : More::no;
    const Bytes bytes = Bytes(payload()).first(shape.size);
    Result<void> sent = Errc::other;
    if (i % 2 == 0) {
      sent = insist([&] { return socket.try_send(bytes, more); });
    } else {
      auto message = insist([&] { return Message::copy_of(bytes); });
      sent = insist([&] {
        auto result = socket.try_send(std::move(*message), more);
        EXPECT_TRUE(result || message->size() == shape.size) << "a refused message was lost";
        return result;
      });
    }
    if (!sent) {
      EXPECT_TRUE(i == 0) << sent.error().message() << ", part " << i;
      EXPECT_TRUE(sent.error() == Errc::would_block || sent.error() == Errc::unreachable ||
                  sent.error() == Errc::invalid_state)
          << sent.error().message();
      return false;
    }
  }
  return true;
}

// The name of a peer, in memory of its own.
struct Name {
  std::array<std::uint8_t, 255> bytes{};
  std::size_t size = 0;
};

// `head`: parts in front of the payload that the pattern adds; `first` gets the first of them.
bool receive(Socket& socket, Shape shape, std::size_t head = 0, Name* first = nullptr) {
  const Instant deadline = sys::now() + kAttempt;
  for (std::size_t i = 0; i < head + shape.parts; ++i) {
    auto part = insist([&] { return socket.recv_until(deadline); });
    if (!part) {
      EXPECT_EQ(i, 0u) << part.error().message();
      return false;
    }
    if (i == 0 && first != nullptr) {
      first->size = part->size();
      copy_bytes(first->bytes.data(), part->bytes());
    }
    if (i >= head) {
      EXPECT_EQ(part->size(), shape.size);
      EXPECT_TRUE(std::equal(part->bytes().begin(), part->bytes().end(), payload().begin())) << "a torn part";
    }
    EXPECT_EQ(part->more(), i + 1 < head + shape.parts) << "a torn message";
  }
  return true;
}

struct Scenario {
  const char* name;
  SocketType binds;
  SocketType connects;
  std::string endpoint;
  Shape shape;
  // Sends one message to and fro. Returns false if it got lost with a failure.
  std::function<bool(Socket& bound, Socket& connected, Shape shape)> exchange;
  std::function<Result<void>(Socket& socket, bool binds)> prepare = [](Socket&, bool) { return Result<void>(); };
  std::function<Result<void>(Socket& socket)> enrol = [](Socket&) { return Result<void>(); };  // after connect()
};

bool to_bound(Socket& bound, Socket& connected, Shape shape) { return send(connected, shape) && receive(bound, shape); }
bool to_connected(Socket& bound, Socket& connected, Shape shape) {
  return send(bound, shape) && receive(connected, shape);
}
bool both_ways(Socket& bound, Socket& connected, Shape shape) {
  return to_bound(bound, connected, shape) && to_connected(bound, connected, shape);
}
bool through_router(Socket& bound, Socket& connected, Shape shape) {
  Name name;
  if (!send(connected, shape) || !receive(bound, shape, 1, &name)) {
    return false;
  }
  const auto named = insist([&] { return bound.try_send(Bytes(name.bytes).first(name.size), More::yes); });
  return named && send(bound, shape) && receive(connected, shape);
}
bool through_server(Socket& bound, Socket& connected, Shape shape) {
  if (!send(connected, shape)) {
    return false;
  }
  auto request = insist([&] { return bound.recv_until(sys::now() + kAttempt); });
  if (!request) {
    return false;
  }
  EXPECT_EQ(request->size(), shape.size);
  const auto sent = insist([&] { return bound.try_send(std::move(*request)); });
  return sent && receive(connected, shape);
}
bool by_group(Socket& bound, Socket& connected, Shape shape) {
  auto message = insist([&] { return Message::copy_of(Bytes(payload()).first(shape.size)); });
  if (!message || !insist([&] { return message->set_group("group"); }) ||
      !insist([&] { return bound.try_send(std::move(*message)); })) {
    return false;
  }
  return receive(connected, shape);
}
bool by_request(Socket& bound, Socket& connected, Shape shape) {
  constexpr int kOlderRequests = 20;  // whose replies came too late
  bool replied = send(connected, shape) && receive(bound, shape) && send(bound, shape);
  for (int i = 0; i < kOlderRequests && replied; ++i) {
    if (receive(connected, shape)) {
      return true;
    }
    replied = receive(bound, shape) && send(bound, shape);
  }
  return false;
}
Result<void> relax(Socket& socket, bool binds) {
  if (!binds) {
    WEFT_TRY(socket.set(option::req_relaxed, true));
    WEFT_TRY(socket.set(option::req_correlate, true));
  }
  return {};
}

// One run: everything from the context to its end. `usable`: memory suffices again from here on.
void run(const Scenario& scenario, const std::function<void()>& usable) {
  std::optional<Context> context;
  try {
    context.emplace();
  } catch (const std::bad_alloc&) {
    return;  // as any constructor
  }
  auto bound = insist([&] { return context->socket(scenario.binds); });
  auto connected = insist([&] { return context->socket(scenario.connects); });
  ASSERT_TRUE(bound && connected);
  for (Socket* socket : {&*bound, &*connected}) {
    ASSERT_TRUE(insist([&] { return socket->set(option::linger, 0ms); }));
    ASSERT_TRUE(insist([&] { return socket->set(option::reconnect_interval, 1ms); }));
    ASSERT_TRUE(insist([&] { return socket->set(option::reconnect_interval_max, 0ms); }));
    ASSERT_TRUE(insist([&] {
      try {
        return scenario.prepare(*socket, socket == &*bound);
      } catch (const std::bad_alloc&) {  // of a text that the scenario makes
        return Result<void>(Errc::resource_exhausted);
      }
    }));
  }
  const auto at = insist([&] { return bound->bind(scenario.endpoint); });
  ASSERT_TRUE(at) << at.error().message();
  ASSERT_TRUE(insist([&] { return connected->connect(*at); }));
  const auto enrolled = insist([&] { return scenario.enrol(*connected); });
  ASSERT_TRUE(enrolled || enrolled.error() == Errc::invalid_argument) << enrolled.error().message();
  (void)scenario.exchange(*bound, *connected, scenario.shape);
  (void)scenario.exchange(*bound, *connected, scenario.shape);
  usable();
  const Instant deadline = sys::now() + kPatience;
  bool works = false;
  while (!works && sys::now() < deadline) {
    works = scenario.exchange(*bound, *connected, scenario.shape);
  }
  EXPECT_TRUE(works) << "the sockets do not recover";
  const auto ended = insist([&] { return connected->disconnect(*at); });
  EXPECT_TRUE(ended) << ended.error().message();
}

void torture(const Scenario& scenario) {
  SCOPED_TRACE(scenario.name);
  if (testing::Test::HasFailure()) {
    return;
  }
  // The process keeps the properties of peers that are gone, within its bound: so many blocks each run.
  constexpr std::int64_t kRuns = 4;
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < 2 * kRuns; ++i) {
    before = i == kRuns ? test::live_allocations() : before;
    run(scenario, [] {});
  }
  const std::int64_t each = (test::live_allocations() - before + kRuns - 1) / kRuns;
  before = test::live_allocations();
  std::int64_t points = 0;
  const auto walk = [&](auto make_memory) {
    for (std::size_t spared = 0;; ++spared, ++points) {
      SCOPED_TRACE(spared);
      ASSERT_LT(spared, kPointsMax);
      auto memory = make_memory(spared);
      run(scenario, [&] { memory.end(); });
      memory.end();
      ASSERT_FALSE(testing::Test::HasFailure());
      if (!memory.failed()) {
        return;
      }
    }
  };
  walk([](std::size_t spared) { return FailingMemory(spared, FailingMemory::Length::one); });
  walk([](std::size_t spared) { return OthersFailingMemory(spared); });
  run(scenario, [] {});
  // The pools of the threads keep some buffers more or less.
  constexpr std::int64_t kKept = 64;
  // After a failure there may be a second connection, and its peer.
  EXPECT_LT(test::live_allocations(), before + 2 * each * points + kKept) << "after " << points << " points";
}

constexpr Shape kSmall{1, 64};
const char* const kTcp = "tcp://127.0.0.1:*";
const char* const kIpc = "ipc://*";
const char* const kInproc = "inproc://exhaustion";

TEST(SocketExhaustion, PushAndPull) {
  torture({"64 B, tcp", SocketType::pull, SocketType::push, kTcp, kSmall, to_bound});
  torture({"8 KB, ipc", SocketType::pull, SocketType::push, kIpc, {1, 8192}, to_bound});
  torture({"1 MB, tcp", SocketType::pull, SocketType::push, kTcp, {1, 1 << 20}, to_bound});
  torture({"64 B, inproc", SocketType::pull, SocketType::push, kInproc, kSmall, to_bound});
  torture({"1 MB, inproc", SocketType::pull, SocketType::push, kInproc, {1, 1 << 20}, to_bound});
}

TEST(SocketExhaustion, MessagesOfManyParts) {
  torture({"2 parts, inproc", SocketType::pull, SocketType::push, kInproc, {2, 200}, to_bound});
  torture({"100 parts, inproc", SocketType::pull, SocketType::push, kInproc, {100, 200}, to_bound});
  torture({"100 parts, tcp", SocketType::pull, SocketType::push, kTcp, {100, 64}, to_bound});
  torture({"5 parts of 8 KB, tcp", SocketType::pull, SocketType::push, kTcp, {5, 8192}, to_bound});
}

TEST(SocketExhaustion, PairsAndDealers) {
  torture({"pair, tcp", SocketType::pair, SocketType::pair, kTcp, {2, 300}, both_ways});
  torture({"pair, inproc", SocketType::pair, SocketType::pair, kInproc, {2, 300}, both_ways});
  torture({"dealer, ipc", SocketType::dealer, SocketType::dealer, kIpc, {1, 300}, both_ways});
}

TEST(SocketExhaustion, RoutersWithNames) {
  const auto name = [](Socket& socket, bool binds) {
    return binds ? Result<void>() : socket.set(option::routing_id, std::string("a peer with a rather long name"));
  };
  torture({"router, tcp", SocketType::router, SocketType::dealer, kTcp, {2, 300}, through_router, name});
  torture({"router, inproc", SocketType::router, SocketType::dealer, kInproc, {2, 300}, through_router, name});
}

TEST(SocketExhaustion, RequestsAndReplies) {
  torture({"tcp", SocketType::rep, SocketType::req, kTcp, {1, 300}, by_request, relax});
  torture({"inproc", SocketType::rep, SocketType::req, kInproc, {2, 300}, by_request, relax});
}

TEST(SocketExhaustion, ServersAndGroups) {
  torture({"server, tcp", SocketType::server, SocketType::client, kTcp, {1, 300}, through_server});
  torture({"scatter, inproc", SocketType::gather, SocketType::scatter, kInproc, {1, 300}, to_bound});
  torture({"radio, tcp",
           SocketType::radio,
           SocketType::dish,
           kTcp,
           {1, 300},
           by_group,
           [](Socket&, bool) { return Result<void>(); },
           [](Socket& dish) { return dish.join("group"); }});
}

// The bound socket receives: a DISH, which joins before. A second attempt finds that it has joined.
TEST(SocketExhaustion, Datagrams) {
  const auto join = [](Socket& socket, bool binds) {
    const auto joined = binds ? socket.join("group") : Result<void>();
    return joined || joined.error() != Errc::invalid_argument ? joined : Result<void>();
  };
  torture({"radio, udp",
           SocketType::dish,
           SocketType::radio,
           "udp://127.0.0.1:*",
           {1, 300},
           [](Socket& dish, Socket& radio, Shape shape) { return by_group(radio, dish, shape); },
           join});
}

TEST(SocketExhaustion, WebSocket) {
  torture({"router, ws", SocketType::router, SocketType::dealer, "ws://127.0.0.1:*/path", {2, 300}, through_router});
  torture({"1 MB, ws", SocketType::pull, SocketType::push, "ws://127.0.0.1:*", {1, 1 << 20}, to_bound});
}

#ifdef WEFT_HAVE_OPENSSL
// The allocations of Weft around OpenSSL; those inside its library do not fail here. Both sides demand a certificate.
class EncryptedExhaustion : public testing::Test {
 protected:
  static void torture_with_certificate(Scenario scenario) {
    (void)conformance::certificate();  // files, made while memory suffices
    scenario.prepare = [](Socket& socket, bool) -> Result<void> {
      WEFT_TRY(socket.set(option::tls_certificate, conformance::certificate().certificate));
      WEFT_TRY(socket.set(option::tls_key, conformance::certificate().key));
      return socket.set(option::tls_authorities, conformance::authority().file());
    };
    torture(scenario);
  }
};

TEST_F(EncryptedExhaustion, Tls) {
  torture_with_certificate(
      {"dealer, tls", SocketType::dealer, SocketType::dealer, "tls+tcp://127.0.0.1:*", {1, 300}, both_ways});
}

TEST_F(EncryptedExhaustion, WebSocketOverTls) {
  torture_with_certificate(
      {"dealer, wss", SocketType::dealer, SocketType::dealer, "wss://127.0.0.1:*/path", {1, 300}, both_ways});
}
#endif

TEST(SocketExhaustion, Curve) {
  if (!zmtp::curve_available()) {
    GTEST_SKIP() << "built without libsodium";
  }
  const auto server = zmtp::make_curve_key_pair();
  const auto client = zmtp::make_curve_key_pair();
  ASSERT_TRUE(server && client);
  const auto text = [](const zmtp::CurveKey& key) { return std::string(as_text(Bytes(key))); };
  torture({"curve",
           SocketType::router,
           SocketType::dealer,
           kTcp,
           {1, 300},
           through_router,
           [&](Socket& socket, bool binds) -> Result<void> {
             if (binds) {
               WEFT_TRY(socket.set(option::curve_secret_key, text(server->secret_key)));
               return socket.set(option::curve_server, true);
             }
             WEFT_TRY(socket.set(option::curve_public_key, text(client->public_key)));
             WEFT_TRY(socket.set(option::curve_secret_key, text(client->secret_key)));
             return socket.set(option::curve_server_key, text(server->public_key));
           }});
}

TEST(SocketExhaustion, MonitorsAndPolls) {
  torture({"monitor and poll", SocketType::pull, SocketType::push, kTcp, kSmall,
           [](Socket& bound, Socket& connected, Shape shape) {
             if (!send(connected, shape)) {
               return false;
             }
             PollItem item;
             item.socket = &bound;
             item.want_input = true;
             (void)insist([&] { return poll({&item, 1}, kAttempt); });
             while (insist([&] { return connected.next_event(0ms); })) {
             }
             return receive(bound, shape);
           },
           [](Socket& socket, bool) { return socket.watch_events(); }});
}

}  // namespace
}  // namespace weft
