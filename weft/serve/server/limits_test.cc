// SPDX-License-Identifier: MIT
// Bad peers, and a machine at its limits: each peer is limited with a counted reason, and the others are served.
#include "weft/sys/limits.h"

#include <algorithm>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "weft/serve/server/test_slow_consumer.h"
#include "weft/sys/event_fd.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

class LimitsTest : public test::ServerTest {
 protected:
  void SetUp() override {
    start_runtime(1);
    watch_close();
    script_.on_frame = echo;
  }
};

TEST_F(LimitsTest, AWrongVersionClosesThatPeerBehindItsAnswers) {
  const std::string endpoint = listen();
  Client good(endpoint);
  Client bad(endpoint);
  bad.write(frame_of(1, "good") + std::string(12, '\3'));
  EXPECT_EQ(bad.read_to_end(), frame_of(1, "good"));
  bad.close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::refused_frame);
  good.send(1, "served");
  EXPECT_EQ(good.receive(), "served");
}

TEST_F(LimitsTest, ABodyAboveTheMaximumIsRefusedBeforeItComes) {
  make_server();
  const auto endpoint = server_->listen<HeaderCodec>(
      "tcp://127.0.0.1:0", {}, [this] { return test::ScriptService{&script_}; }, HeaderCodec(1000));
  ASSERT_TRUE(endpoint);
  Client client(*endpoint);
  client.write(frame_of(1, std::string(1001, 'x')).substr(0, 12));
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::refused_frame);
}

TEST_F(LimitsTest, AFrameThatIsOnlyAnnouncedTakesNoMemory) {
  ServerOptions options;
  options.memory_max = options.core_memory_max = 4 * 1024 * 1024;  // half of it is for half-received frames
  make_server(options);
  const std::string endpoint = listen();
  const std::string beginning = frame_of(1, std::string(1000, 'x')).substr(0, 6) + std::string("\1\0\0\0\0\0some", 10);
  std::vector<std::unique_ptr<Client>> many;
  for (int i = 0; i < 12; ++i) {  // 16 MiB each, if the server allocated the announced sizes
    many.push_back(std::make_unique<Client>(endpoint));
    many.back()->write(beginning);
  }
  until([](const CounterValues& counters) { return counters.reads == 12; });
  Client good(endpoint);
  good.send(1, "served");
  EXPECT_EQ(good.receive(), "served");
  EXPECT_EQ(server_->counters().closed_total(), 0u);
}

TEST_F(LimitsTest, APeerWhoseFramesDoNotFitIntoTheBudgetIsClosedAndTheOthersAreServed) {
  ServerOptions options;
  options.memory_max = options.core_memory_max = 512 * 1024;
  make_server(options);
  const std::string endpoint = listen();
  Client greedy(endpoint);
  const std::string frame = frame_of(1, std::string(4 * 1024 * 1024, 'g'));
  (void)greedy.write_some(frame.substr(0, frame.size() - 1), kLong);
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::out_of_memory);
  Client good(endpoint);
  good.send(1, "served");
  EXPECT_EQ(good.receive(), "served");
}

TEST_F(LimitsTest, ASlowHandshakeIsCutOffHoweverManyBytesDripIn) {
  ListenerOptions options;
  options.limits.handshake_timeout = std::chrono::milliseconds(30);
  Client client(listen(options));
  const std::string frame = frame_of(1, std::string(100'000, 's'));
  std::size_t sent = 0;
  Signal over;
  std::thread dripping([&] {  // never whole, never idle
    while (sent < frame.size() - 1 && client.write_some(std::string_view(frame).substr(sent, 1), kLong) == 1) {
      ++sent;
      std::this_thread::yield();
    }
    over.give();
  });
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::handshake_timeout);
  ASSERT_TRUE(over.take());
  dripping.join();
}

TEST_F(LimitsTest, APeerThatIsGoneWithoutAWordIsClosedWhenItWasIdleForTooLong) {
  ListenerOptions options;
  options.limits.idle_timeout = std::chrono::milliseconds(30);
  script_.on_open = [](HeaderSession& session) { session.begin_reply(); };  // not idle before its frame, however late
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    echo(session, frame);
    session.end_reply();
  };
  const std::string endpoint = listen(options);
  Client silent(endpoint);
  silent.send(1, "here");
  EXPECT_EQ(silent.receive(), "here");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::idle_timeout);
}

TEST_F(LimitsTest, AClosedSessionDoesNotWaitForeverForAPeerThatDoesNotRead) {
  ListenerOptions options;
  options.limits.close_timeout = std::chrono::milliseconds(30);
  options.limits.write_budget = 64u * 1024 * 1024;
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
    (void)session.send(frame.header, as_bytes(std::string(16u * 1024 * 1024, 'q')));
    session.close();
  };
  Client client(listen(options));
  client.send(1, "");
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::close_timeout);
  EXPECT_EQ(server_->counters().undelivered, 1u);
}

TEST_F(LimitsTest, APeerThatKeepsSendingAfterCloseIsCutOff) {
  script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame&) { session.close(); };
  ListenerOptions options;
  options.limits.close_timeout = kLong;
  Client client(listen(options));
  const std::string flood(64u * 1024 * 1024, '\2');
  client.send(1, "");
  EXPECT_LT(client.write_some(flood, kLong), flood.size());
  ASSERT_TRUE(closed_.take());
}

// --- slow consumers: a peer that does not read, and a service that still sends ---

class SlowConsumers : public LimitsTest {
 protected:
  static constexpr std::uint32_t kFrames = 4000;  // 32 MB: more than the kernel and the budget take

  std::vector<std::uint32_t> run(SlowConsumer policy) {
    auto run = test::run_slow_consumer(script_, closed_, {}, policy, kFrames, [this](const ListenerOptions& options) {
      return std::make_unique<Client>(listen(options));
    });
    whole_ = run.whole;
    return std::move(run.numbers);
  }
  bool whole_ = false;
};

TEST_F(SlowConsumers, DropNewestKeepsWhatCameFirst) {
  const auto numbers = run(SlowConsumer::drop_newest);
  ASSERT_FALSE(numbers.empty());
  EXPECT_TRUE(whole_);
  EXPECT_EQ(numbers.front(), 0u);
  EXPECT_LT(numbers.back(), kFrames - 1);
  EXPECT_EQ(server_->counters().dropped_newest, kFrames - numbers.size());
}

TEST_F(SlowConsumers, DropOldestKeepsWhatCameLast) {
  const auto numbers = run(SlowConsumer::drop_oldest);
  ASSERT_FALSE(numbers.empty());
  EXPECT_TRUE(whole_);
  EXPECT_EQ(numbers.back(), kFrames - 1);
  EXPECT_EQ(server_->counters().dropped_oldest, kFrames - numbers.size());
}

TEST_F(SlowConsumers, ConflateKeepsTheNewest) {
  const auto numbers = run(SlowConsumer::conflate);
  ASSERT_FALSE(numbers.empty());
  EXPECT_TRUE(whole_);
  EXPECT_EQ(numbers.back(), kFrames - 1);
  EXPECT_EQ(server_->counters().conflated, kFrames - numbers.size());
}

TEST_F(SlowConsumers, DisconnectEndsTheSessionAndCountsWhatItLost) {
  const auto numbers = run(SlowConsumer::disconnect);
  EXPECT_LT(numbers.size(), kFrames);
  EXPECT_EQ(reason_, CloseReason::slow_consumer);
  EXPECT_NE(server_->counters().undelivered, 0u);
}

// Of events and state, mixed, to a peer that reads when all are sent.
class SlowConsumersOfState : public LimitsTest {
 protected:
  static constexpr std::uint32_t kState = 1;
  static constexpr std::uint32_t kEvent = 2;

  // Lets the session send by `send`, and returns the output at the client: the ids of the frames, in order.
  std::string run(const std::function<void(HeaderSession&)>& send) {
    ListenerOptions options;
    options.limits.slow_consumer = SlowConsumer::conflate_state;
    options.limits.write_budget = 256 * 1024;
    options.limits.close_timeout = kLong;  // the client may need that long to read
    Signal sent;
    script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
      send(session);
      session.close();
      sent.give();
    };
    Client client(listen(options));
    client.send(1, "");
    EXPECT_TRUE(sent.take());
    const std::string bytes = client.read_to_end();
    client.close();
    EXPECT_TRUE(closed_.take());
    return bytes;
  }
  static std::string body(std::uint32_t number, std::size_t size) {
    std::string text = "<" + std::to_string(number) + ">";
    text.resize(size, '.');
    return text;
  }
  static std::size_t count(const std::string& bytes, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = bytes.find(what, at)) != std::string::npos; ++at) {
      ++found;
    }
    return found;
  }
};

TEST_F(SlowConsumersOfState, GetEveryEventAndTheNewestState) {
  constexpr std::uint32_t kStates = 4000;  // 32 MB: more than the kernel and the budget take
  std::uint32_t events = 0;
  const std::string bytes = run([&](HeaderSession& session) {
    for (std::uint32_t i = 0; i < kStates; ++i) {
      const auto large = SharedFrame::encode(HeaderCodec(), {kState, 0}, as_bytes(body(i, 8000)), FrameKind::state);
      const auto small = SharedFrame::encode(HeaderCodec(), {kState, 0}, as_bytes("(state)"), FrameKind::state);
      EXPECT_TRUE(i % 2 == 0 ? session.send_state({kState, 0}, as_bytes(body(i, 8000))) : session.send_shared(*large));
      EXPECT_TRUE(session.send_shared(*small));
      if (i % 10 == 0) {
        EXPECT_TRUE(session.send({kEvent, 0}, as_bytes("event " + std::to_string(++events) + ";")));
      }
    }
  });
  for (std::uint32_t event = 1; event <= events; ++event) {
    ASSERT_NE(bytes.find("event " + std::to_string(event) + ";"), std::string::npos) << event;
  }
  EXPECT_NE(bytes.find("<" + std::to_string(kStates - 1) + ">"), std::string::npos) << "the newest state";
  const std::size_t states = count(bytes, "<") + count(bytes, "(state)");
  EXPECT_LT(states, 2 * kStates);
  EXPECT_EQ(server_->counters().conflated, 2 * kStates - states);
  EXPECT_EQ(reason_, CloseReason::service);
}

TEST_F(SlowConsumersOfState, LoseNoEventUnnoticed) {
  Error of_state;
  Error of_event;
  (void)run([&](HeaderSession& session) {
    const std::string large(60'000, 'e');
    while (session.queued() < 256 * 1024) {
      ASSERT_TRUE(session.send({kEvent, 0}, as_bytes(large)));
    }
    of_state = session.send_state({kState, 0}, as_bytes("state")).error();
    EXPECT_TRUE(session.is_open());
    of_event = session.send({kEvent, 0}, as_bytes("event")).error();
  });
  EXPECT_EQ(of_state, Errc::resource_exhausted);
  EXPECT_EQ(of_event, Errc::closed);
  EXPECT_EQ(server_->counters().dropped_newest, 1u);
  EXPECT_EQ(reason_, CloseReason::slow_consumer);
}

// --- bounds on number and rate ---

TEST_F(LimitsTest, MoreSessionsThanThereMayBeAreClosedAndCounted) {
  ServerOptions options;
  options.sessions_max = 3;
  make_server(options);
  const std::string endpoint = listen();
  std::deque<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(endpoint).send(1, "x");
    EXPECT_EQ(clients.back().receive(), "x");
  }
  Client refused(endpoint);
  EXPECT_EQ(refused.read_to_end(), "");
  EXPECT_EQ(server_->counters().rejected_for(Rejection::full), 1u);
  clients.pop_front();
  ASSERT_TRUE(closed_.take());
  until([this](const CounterValues&) { return server_->sessions() == 2; });
  Client welcome(endpoint);
  welcome.send(1, "in");
  EXPECT_EQ(welcome.receive(), "in");
}

TEST_F(LimitsTest, OneAddressHasAsManyConnectionsAsItMayAndOthersAreServed) {
  net::AdmissionOptions limits;
  limits.address_connections_max = 2;
  auto admission = net::Admission::make(limits);
  ASSERT_TRUE(admission);
  ListenerOptions options;
  options.admission = std::move(*admission);
  const std::string endpoint = listen(options, "tcp://0.0.0.0:0");
  const std::string port = endpoint.substr(endpoint.rfind(':'));
  const std::string at_one = "tcp://127.0.0.1:0;127.0.0.1" + port;
  std::vector<std::unique_ptr<Client>> flood;
  for (int i = 0; i < 20; ++i) {
    flood.push_back(std::make_unique<Client>(at_one));
  }
  Client other("tcp://127.0.0.2:0;127.0.0.1" + port);
  other.send(1, "from elsewhere");
  EXPECT_EQ(other.receive(), "from elsewhere");
  EXPECT_EQ(server_->counters().rejected_for(Rejection::admission), 18u);
  EXPECT_EQ(server_->sessions(), 3u);
  flood.clear();
  ASSERT_TRUE(closed_.take());
  ASSERT_TRUE(closed_.take());
  until([&](const CounterValues&) { return options.admission->connections() == 1; });
  Client again(at_one);
  again.send(1, "in");
  EXPECT_EQ(again.receive(), "in");
}

TEST_F(LimitsTest, APeerThatSendsTooManyFramesIsReadMoreSlowlyAndLosesNone) {
  ListenerOptions options;
  options.limits.message_rate = {1000, 2};  // a core that is late finds two tokens, and no more
  Client client(listen(options));
  std::string burst;
  for (std::uint32_t i = 0; i < 40; ++i) {
    burst += frame_of(i, "m");
  }
  client.write(burst);
  EXPECT_EQ(client.read(burst.size()), burst);
  EXPECT_GE(server_->counters().rate_pauses, 5u);
}

// One EMFILE must not stop accepting for good.
TEST_F(LimitsTest, AcceptPausesWhenDescriptorsRunOutAndResumesWhenThereAreSome) {
  const std::string endpoint = listen();
  Client first(endpoint);
  first.send(1, "before");
  EXPECT_EQ(first.receive(), "before");
  Client second(endpoint);  // the last connection that gets a descriptor, on both sides
  second.send(1, "last");
  EXPECT_EQ(second.receive(), "last");
  // The client's own next descriptor is the lowest free one: the server cannot get any above it.
  auto probe = sys::EventFd::make();
  ASSERT_TRUE(probe);
  const int lowest = probe->fd();
  probe = Error(Errc::closed);
  const auto before = sys::set_descriptor_limit(static_cast<std::size_t>(lowest) + 1);
  ASSERT_TRUE(before);
  // Do not call a polymorphic object here: UBSan needs descriptors to check one.
  Server& server = *server_;
  Client third(endpoint);
  third.send(1, "patience");
  const Instant limit = sys::now() + kLong;
  while (server.counters().accept_pauses < 2 && sys::now() < limit) {
    std::this_thread::yield();
  }
  const std::uint64_t pauses = server.counters().accept_pauses;
  ASSERT_TRUE(sys::set_descriptor_limit(*before));
  EXPECT_GE(pauses, 2u);
  first.send(1, "still served");
  EXPECT_EQ(first.receive(), "still served");
  EXPECT_EQ(third.receive(), "patience");
}

}  // namespace
}  // namespace weft::serve
