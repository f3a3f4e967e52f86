// SPDX-License-Identifier: MIT
// Frames that wait for room in the queues of sessions on any core: Server::send_wait() and publish_wait().
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;
using test::kLong;
using test::Signal;
using Frame = HeaderCodec::Frame;

constexpr GroupId kGroup{7};
constexpr std::size_t kPublishBudget = 256 * 1024;
constexpr std::uint32_t kJoin = 1;
constexpr std::uint32_t kPublishFill = 2;

SharedFrame frame_with(std::string_view text) {
  return std::move(SharedFrame::encode(HeaderCodec(), {9, 0}, as_bytes(text))).value();
}

// Keeps the queue of a session full until a wait of 1 ms fails: then the kernel takes nothing either.
rt::Task<void> fill_for_good(HeaderSession* session, Signal* filled) {
  const std::string body(8000, 'f');
  Result<void> waited;
  while (waited) {
    while (session->has_room()) {
      EXPECT_TRUE(session->send({kPublishFill, 0}, as_bytes(body)));
    }
    waited = co_await session->writable(sys::now() + std::chrono::milliseconds(1));
  }
  EXPECT_EQ(waited.error(), Errc::timed_out);
  while (session->has_room()) {
    EXPECT_TRUE(session->send({kPublishFill, 0}, as_bytes(body)));
  }
  filled->give();
}

// Two cores, and clients on each in turn: the first one is on core 0. Frame 1 joins the group. Frame 2 fills the queue.
class ServerPublish : public test::ServerTest {
 protected:
  void SetUp() override {
    start_runtime(2);
    script_.on_frame = [this](HeaderSession& session, const Frame& frame) {
      if (frame.header.id == kJoin) {
        EXPECT_TRUE(session.join(kGroup));
        last_ = session.id();
        joined_.give();
        test::echo(session, frame);
      } else {
        EXPECT_TRUE(session.spawn(fill_for_good(&session, &filled_)));
      }
    };
  }
  std::string listen_in_turn(SlowConsumer policy = SlowConsumer::disconnect) {
    ListenerOptions options;
    options.accept = AcceptMode::hand_off;
    options.limits.write_budget = kPublishBudget;
    options.limits.slow_consumer = policy;
    return listen(options);
  }
  // Returns a member of the group.
  std::unique_ptr<Client> join(const std::string& endpoint, SessionId* id = nullptr) {
    auto client = std::make_unique<Client>(endpoint);
    client->send(kJoin, "in");
    EXPECT_TRUE(joined_.take());
    EXPECT_EQ(client->receive(), "in");
    if (id != nullptr) {
      *id = last_;
    }
    return client;
  }
  void fill(Client& client) {
    client.send(kPublishFill, "");
    ASSERT_TRUE(filled_.take());
  }
  // The next frame that was not to fill a queue.
  static std::string next(Client& client) {
    for (;;) {
      const auto body = client.receive();
      if (!body || body->size() != 8000) {
        return body.value_or("the stream ended");
      }
    }
  }
  // Runs the task on core 0.
  template <typename T>
  auto spawn(rt::Task<T> task) {
    return std::move(rt::spawn(runtime_->core(0), std::move(task))).value();
  }
  rt::Task<Result<PublishOutcome>> publish(std::string_view text, Instant deadline = kNever) {
    return server_->publish_wait(kGroup, frame_with(text), deadline);
  }

  SessionId last_;  // of the last member
  Signal joined_;
  Signal filled_;
};

TEST_F(ServerPublish, EachMemberOnEachCoreHasTheFrameAndIsCounted) {
  const std::string endpoint = listen_in_turn();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(join(endpoint));
  }
  const Result<PublishOutcome> published = spawn(publish("news")).get();
  ASSERT_TRUE(published);
  EXPECT_EQ(published->taken, 4u);
  EXPECT_TRUE(published->complete());
  for (const auto& client : clients) {
    EXPECT_EQ(next(*client), "news");
  }
  const Result<PublishOutcome> nobody = spawn(server_->publish_wait(GroupId{8}, frame_with("x"))).get();
  ASSERT_TRUE(nobody);
  EXPECT_EQ(nobody->taken, 0u);
  EXPECT_TRUE(nobody->complete());
}

class EveryPolicyOfPublish : public ServerPublish, public testing::WithParamInterface<SlowConsumer> {};

TEST_P(EveryPolicyOfPublish, AMemberWithoutRoomDelaysThePublisherAndNoOtherMember) {
  const std::string endpoint = listen_in_turn(GetParam());
  const auto slow_near = join(endpoint);
  const auto slow_far = join(endpoint);
  const auto quick_near = join(endpoint);
  const auto quick_far = join(endpoint);
  fill(*slow_near);
  fill(*slow_far);
  auto published = spawn(publish("important"));
  EXPECT_EQ(next(*quick_near), "important");
  EXPECT_EQ(next(*quick_far), "important");
  EXPECT_EQ(next(*slow_far), "important");
  EXPECT_EQ(next(*slow_near), "important");
  const Result<PublishOutcome> result = published.get();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->taken, 4u);
  EXPECT_TRUE(result->complete());
  EXPECT_EQ(server_->counters().closed_total(), 0u);
}

INSTANTIATE_TEST_SUITE_P(ServerPublish, EveryPolicyOfPublish,
                         testing::Values(SlowConsumer::disconnect, SlowConsumer::drop_newest,
                                         SlowConsumer::drop_oldest));

// Publishes until a member has missed a frame, because the kernel may still take some, or until no member is left.
rt::Task<Result<PublishOutcome>> publish_until_missed(Server* server, SharedFrame frame,
                                                      Duration each = std::chrono::milliseconds(20)) {
  for (;;) {
    const Result<PublishOutcome> published = co_await server->publish_wait(kGroup, frame, sys::now() + each);
    if (!published || published->missed != 0 || published->taken == 0) {
      co_return published;
    }
  }
}

TEST_F(ServerPublish, AMemberThatDoesNotReadUntilTheDeadlineIsReportedAsMissed) {
  const std::string endpoint = listen_in_turn();
  const auto quick = join(endpoint);
  const auto slow = join(endpoint);
  fill(*slow);
  const std::string large(std::size_t{64} * 1024, 'l');
  auto published = spawn(publish_until_missed(server_.get(), frame_with(large)));
  std::thread reader([&] { (void)quick->read_to_end(); });
  const Result<PublishOutcome> result = published.get();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->missed, 1u);
  EXPECT_FALSE(result->complete());
  EXPECT_EQ(result->why, Errc::timed_out);
  EXPECT_EQ(server_->counters().closed_total(), 0u) << "the policy is to disconnect, but the frame waited";
  (void)stop_now();
  reader.join();
}

TEST_F(ServerPublish, AMemberThatDiesMeanwhileIsReportedAsMissed) {
  const std::string endpoint = listen_in_turn();
  auto near = join(endpoint);
  auto far = join(endpoint);
  fill(*near);
  fill(*far);
  const std::string large(std::size_t{4} * 1024 * 1024, 'l');  // more than the kernel takes for a peer that reads not
  const std::uint64_t waits = server_->counters().room_waits;
  auto published = spawn(publish_until_missed(server_.get(), frame_with(large), std::chrono::hours(1)));
  until([waits](const CounterValues& counters) { return counters.room_waits >= waits + 2; });
  near.reset();
  far.reset();
  const Result<PublishOutcome> result = published.get();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->missed != 0 || result->taken == 0);
  EXPECT_EQ(result->complete(), result->why == Errc::ok);
}

TEST_F(ServerPublish, ATaskMaySendToOneSessionOfAnyCore) {
  const std::string endpoint = listen_in_turn();
  SessionId ids[2];
  const std::unique_ptr<Client> clients[] = {join(endpoint, &ids[0]), join(endpoint, &ids[1])};
  ASSERT_NE(ids[0].core(), ids[1].core());
  for (int i = 0; i < 2; ++i) {
    fill(*clients[i]);
    auto sent = spawn(server_->send_wait(ids[i], frame_with("for you")));
    EXPECT_EQ(next(*clients[i]), "for you");
    EXPECT_TRUE(sent.get());
  }
  const Result<void> nowhere = spawn(server_->send_wait(SessionId(), frame_with("x"))).get();
  EXPECT_EQ(nowhere.error(), Errc::unreachable);
  clients[0]->close();
  clients[1]->close();
  until([](const CounterValues& counters) { return counters.closed_total() == 2; });
  for (const SessionId id : ids) {
    EXPECT_EQ(spawn(server_->send_wait(id, frame_with("x"))).get().error(), Errc::unreachable);
  }
}

rt::Task<Result<PublishOutcome>> cancel_soon(rt::Task<Result<PublishOutcome>> publishing) {
  co_return co_await rt::with_timeout(std::move(publishing), std::chrono::milliseconds(20));
}

TEST_F(ServerPublish, APublisherThatIsCancelledWaitsNoMore) {
  const std::string endpoint = listen_in_turn();
  const auto near = join(endpoint);
  const auto far = join(endpoint);
  fill(*near);
  fill(*far);
  // Each frame is larger than the room that is left.
  Result<PublishOutcome> last = PublishOutcome{};
  while (last) {
    last = spawn(cancel_soon(publish(std::string(std::size_t{1} << 20, 'c')))).get();
  }
  EXPECT_EQ(last.error(), Errc::timed_out);
}

TEST_F(ServerPublish, AStopEndsAPublisherThatWaits) {
  const std::string endpoint = listen_in_turn();
  const auto near = join(endpoint);
  const auto far = join(endpoint);
  fill(*near);
  fill(*far);
  const std::uint64_t waits = server_->counters().room_waits;
  auto published = spawn(
      publish_until_missed(server_.get(), frame_with(std::string(std::size_t{4} << 20, 's')), std::chrono::hours(1)));
  until([waits](const CounterValues& counters) { return counters.room_waits >= waits + 2; });
  (void)stop_now();
  const Result<PublishOutcome> result = published.get();
  EXPECT_TRUE(!result || result->missed != 0 || result->taken == 0);
}

// --- frames with keys ---

constexpr std::uint32_t kQuotes = 8;
constexpr std::uint32_t kQuoteRounds = 150;

// "KEY ROUND ...". Half of the keys have frames that the queues copy, the others those that they share: 36 MB, which is
// more than the kernel takes for a peer that does not read.
SharedFrame quote(std::uint32_t key, std::uint32_t round) {
  std::string text = std::to_string(key) + " " + std::to_string(round) + " ";
  text.resize(key % 2 == 0 ? 100 : 60'000, '.');
  return std::move(SharedFrame::encode(HeaderCodec(), {9, 0}, as_bytes(text), FrameKey{key})).value();
}

rt::Task<std::size_t> publish_quotes(Server* server) {
  std::size_t taken = 0;
  for (std::uint32_t round = 0; round < kQuoteRounds; ++round) {
    for (std::uint32_t key = 0; key < kQuotes; ++key) {
      const Result<PublishOutcome> published = co_await server->publish_wait(kGroup, quote(key, round));
      taken += published ? published->taken : 0;
    }
    const Result<PublishOutcome> trade =
        co_await server->publish_wait(kGroup, frame_with("trade " + std::to_string(round)));
    taken += trade ? trade->taken : 0;
  }
  const Result<PublishOutcome> end = co_await server->publish_wait(kGroup, frame_with("end"));
  co_return taken + (end ? end->taken : 0);
}

// Reads to the end. Returns the number of quotes, of which each is newer than the one before with its key.
std::size_t expect_newest_quotes(Client& client) {
  std::vector<std::uint32_t> next(kQuotes);
  std::size_t quotes = 0;
  std::uint32_t trades = 0;
  for (std::string text = client.receive().value_or("end"); text != "end"; text = client.receive().value_or("end")) {
    if (text.starts_with("trade")) {
      EXPECT_EQ(text, "trade " + std::to_string(trades++));
      continue;
    }
    std::uint32_t key = 0;
    std::uint32_t round = 0;
    if (std::sscanf(text.c_str(), "%u %u", &key, &round) != 2 || key >= kQuotes) {
      ADD_FAILURE() << text.substr(0, 20);
      return quotes;
    }
    EXPECT_GE(round, next[key]) << "of key " << key;
    next[key] = round + 1;
    ++quotes;
  }
  EXPECT_EQ(trades, kQuoteRounds);
  EXPECT_EQ(next, std::vector<std::uint32_t>(kQuotes, kQuoteRounds));
  return quotes;
}

TEST_F(ServerPublish, MembersOnEachCoreThatReadLaterGetTheNewestFrameOfEachKeyAndAllOthers) {
  ListenerOptions options;
  options.accept = AcceptMode::hand_off;
  const std::string endpoint = listen(options);
  const auto near = join(endpoint);
  const auto far = join(endpoint);
  constexpr std::size_t kSent = 2 * (kQuotes + 1) * kQuoteRounds + 2;
  EXPECT_EQ(spawn(publish_quotes(server_.get())).get(), kSent);
  const std::size_t quotes = expect_newest_quotes(*near) + expect_newest_quotes(*far);
  EXPECT_LT(quotes, std::size_t{2} * kQuotes * kQuoteRounds);
  const CounterValues counters = server_->counters();
  EXPECT_EQ(counters.conflated, std::size_t{2} * kQuotes * kQuoteRounds - quotes);
  EXPECT_EQ(counters.closed_total(), 0u);
  until([](const CounterValues& values) {
    return values.memory_of(MemoryOwner::queues) == 0 && values.memory_of(MemoryOwner::shared) == 0;
  });
}

TEST_F(ServerPublish, AThreadThatIsNotACoreOfTheServerIsRefused) {
  const std::string endpoint = listen_in_turn();
  const auto member = join(endpoint);
  const auto other = rt::test::start_runtime(1);
  const auto published =
      std::move(rt::spawn(other->core(0), server_->publish_wait(kGroup, frame_with("x")))).value().get();
  EXPECT_EQ(published.error(), Errc::invalid_state);
  const auto sent = std::move(rt::spawn(other->core(0), server_->send_wait(last_, frame_with("x")))).value().get();
  EXPECT_EQ(sent.error(), Errc::invalid_state);
  ASSERT_TRUE(other->stop(sys::now() + kLong));
  (void)stop_now();
  EXPECT_EQ(spawn(publish("x")).get().error(), Errc::closed);
}

}  // namespace
}  // namespace weft::serve
