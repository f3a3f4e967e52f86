// SPDX-License-Identifier: MIT
#include "weft/serve/server/server.h"

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

using ServerTest = test::ServerTest;

// The threads that called read() and write() of the streams of one listener.
struct Threads {
  std::mutex mutex;
  std::map<const net::ByteStream*, std::set<std::thread::id>> seen;

  void note(const net::ByteStream* stream) {
    const std::lock_guard lock(mutex);
    seen[stream].insert(std::this_thread::get_id());
  }
};

class WatchedStream final : public net::ByteStream {
 public:
  WatchedStream(std::unique_ptr<net::ByteStream> inner, Threads& threads)
      : inner_(std::move(inner)), threads_(threads) {}
  [[nodiscard]] int fd() const override { return inner_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    threads_.note(this);
    return inner_->read(into);
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    threads_.note(this);
    return inner_->write(from);
  }
  void shutdown_write() override { inner_->shutdown_write(); }
  [[nodiscard]] std::string peer_address() const override { return inner_->peer_address(); }

 private:
  std::unique_ptr<net::ByteStream> inner_;
  Threads& threads_;
};

struct Mode {
  const char* name;
  const char* endpoint;
  AcceptMode accept;
};
class EveryAcceptMode : public ServerTest, public testing::WithParamInterface<Mode> {};

TEST_P(EveryAcceptMode, ASocketIsReadAndWrittenByTheThreadOfItsSessionsCoreAlone) {
  Threads threads;
  std::mutex mutex;
  std::map<unsigned, std::thread::id> cores;  // the thread of each core
  std::set<unsigned> used;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(rt::Core::current()->index(), session.id().core());
    used.insert(session.id().core());
    const auto known = cores.emplace(session.id().core(), std::this_thread::get_id()).first;
    EXPECT_EQ(known->second, std::this_thread::get_id());
    echo(session, frame);
  };
  ListenerOptions options;
  options.accept = GetParam().accept;
  options.wrap = [&threads](std::unique_ptr<net::ByteStream> stream) -> Result<std::unique_ptr<net::ByteStream>> {
    return std::unique_ptr<net::ByteStream>(std::make_unique<WatchedStream>(std::move(stream), threads));
  };
  const std::string endpoint = listen(options, GetParam().endpoint);
  // More than threads; with a shared address the kernel chooses: 2^-39 that all meet one core.
  constexpr int kClients = 40;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint));
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& client : clients) {
      client->send(1, "who reads this?");
    }
    for (auto& client : clients) {
      EXPECT_EQ(client->receive(), "who reads this?");
    }
  }
  EXPECT_EQ(used.size(), 2u);
  EXPECT_EQ(server_->sessions(), static_cast<std::size_t>(kClients));
  clients.clear();
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(threads.seen.size(), static_cast<std::size_t>(kClients));
  for (const auto& [stream, ids] : threads.seen) {
    EXPECT_EQ(ids.size(), 1u);
    EXPECT_TRUE(*ids.begin() == cores[0] || *ids.begin() == cores[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(ServerTest, EveryAcceptMode,
                         testing::Values(Mode{"ReusePort", "tcp://127.0.0.1:0", AcceptMode::automatic},
                                         Mode{"HandOff", "tcp://127.0.0.1:0", AcceptMode::hand_off},
                                         Mode{"Unix", "ipc://*", AcceptMode::automatic}),
                         [](const auto& mode) { return std::string(mode.param.name); });

TEST_F(ServerTest, OnlyTcpListenersShareAnAddress) {
  make_server();
  ListenerOptions options;
  options.accept = AcceptMode::reuse_port;
  const auto bound = server_->listen<HeaderCodec>("ipc://*", options, [this] { return test::ScriptService{&script_}; });
  EXPECT_EQ(bound.error(), Errc::not_supported);
}

TEST_F(ServerTest, APortBelongsToOneListener) {
  const std::string bound = listen();
  EXPECT_EQ(server_->listen<HeaderCodec>(bound, {}, [this] { return test::ScriptService{&script_}; }).error(),
            Errc::address_in_use);
  const auto other = std::move(Server::make(*runtime_)).value();
  for (const AcceptMode mode : {AcceptMode::automatic, AcceptMode::reuse_port, AcceptMode::hand_off}) {
    ListenerOptions options;
    options.accept = mode;
    EXPECT_EQ(other->listen<HeaderCodec>(bound, options, [this] { return test::ScriptService{&script_}; }).error(),
              Errc::address_in_use);
  }
  script_.on_frame = echo;
  Client client(bound);
  client.send(1, "still here");
  EXPECT_EQ(client.receive(), "still here");
}

TEST_F(ServerTest, TwoServersShareAPortThatBothOffer) {
  make_server();
  for (const AcceptMode mode : {AcceptMode::automatic, AcceptMode::hand_off}) {
    ListenerOptions options;
    options.accept = mode;
    options.share_port = true;
    const auto service = [this] { return test::ScriptService{&script_}; };
    const auto bound = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", options, service);
    ASSERT_TRUE(bound);
    const auto other = std::move(Server::make(*runtime_)).value();
    EXPECT_EQ(*other->listen<HeaderCodec>(*bound, options, service), *bound);
    options.share_port = false;
    EXPECT_EQ(other->listen<HeaderCodec>(*bound, options, service).error(), Errc::address_in_use);
    ASSERT_TRUE(other->stop(sys::now() + kLong));
  }
  ListenerOptions options;
  options.share_port = true;
  const auto unix_one =
      server_->listen<HeaderCodec>("ipc://*", options, [this] { return test::ScriptService{&script_}; });
  EXPECT_EQ(unix_one.error(), Errc::not_supported);
}

struct Lines {
  void on_frame(SessionOf<DelimiterCodec>& session, const DelimiterCodec::Frame& frame) {
    (void)session.send({}, frame.body);
  }
};
TEST_F(ServerTest, SeveralListenersHaveTheirOwnCodecsAndServices) {
  script_.on_frame = echo;
  Client framed(listen());
  const auto lines = server_->listen<DelimiterCodec>("ipc://*", {}, [] { return Lines(); });
  ASSERT_TRUE(lines);
  Client text(*lines);
  framed.send(1, "with a header");
  text.write("a line\nand more\n");
  EXPECT_EQ(framed.receive(), "with a header");
  EXPECT_EQ(text.read(16), "a line\nand more\n");
}

TEST_F(ServerTest, AServiceThatCannotBeMadeIsAnErrorOfListen) {
  make_server();
  const auto bound = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [this]() -> test::ScriptService {
    if (rt::Core::current()->index() == 1) {
      throw std::runtime_error("no");
    }
    return {&script_};
  });
  EXPECT_EQ(bound.error(), Errc::system);
  script_.on_frame = echo;
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x");
}

// --- ids ---

TEST_F(ServerTest, AnIdFindsItsSessionFromEveryThreadAndNothingAfterItsEnd) {
  watch_close();
  SessionId id;
  Signal opened;
  script_.on_open = [&](HeaderSession& session) {
    id = session.id();
    opened.give();
  };
  const std::string endpoint = listen();
  Client client(endpoint);
  ASSERT_TRUE(opened.take());
  const auto frame = SharedFrame::encode(HeaderCodec(), {5, 0}, as_bytes("by id"));
  ASSERT_TRUE(frame);
  ASSERT_TRUE(server_->send_to(id, *frame));
  EXPECT_EQ(client.receive(), "by id");
  client.close();
  ASSERT_TRUE(closed_.take());
  // The next session on that core takes the same slot, and gets no message for the first one.
  const SessionId old = id;
  std::vector<std::unique_ptr<Client>> clients;
  do {
    clients.push_back(std::make_unique<Client>(endpoint));
    ASSERT_TRUE(opened.take());
  } while (id.core() != old.core());
  EXPECT_EQ(id.slot().slot(), old.slot().slot());
  EXPECT_NE(id, old);
  Signal looked;
  ASSERT_TRUE(server_->post_to(old, [](Session&) { ADD_FAILURE() << "an old id found a session"; }));
  ASSERT_TRUE(server_->post_to(id, [&](Session&) { looked.give(); }));
  ASSERT_TRUE(looked.take());
  EXPECT_EQ(server_->counters().stale_ids, 1u);
}

// If ids restarted at 1 with the process, a message for an old session would reach a stranger.
TEST_F(ServerTest, AfterARestartNoIdOfBeforeFindsAnybody) {
  SessionId id;
  Signal opened;
  script_.on_open = [&](HeaderSession& session) {
    id = session.id();
    opened.give();
  };
  script_.on_frame = echo;
  const std::string endpoint = listen();
  Client before(endpoint);
  ASSERT_TRUE(opened.take());
  const SessionId old = id;
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(before.read_to_end(), "");
  EXPECT_EQ(server_->post_to(old, [](Session&) {}).error(), Errc::closed);
  ASSERT_TRUE(server_->restart());
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint));
    ASSERT_TRUE(opened.take());
    EXPECT_NE(id, old);
  }
  EXPECT_EQ(server_->post_to(old, [](Session&) {}).error(), Errc::unreachable);
  clients[0]->send(1, "served again");
  EXPECT_EQ(clients[0]->receive(), "served again");
}

// --- groups and broadcast ---

TEST_F(ServerTest, AGroupIsReachedOnAllCoresWithOneFrame) {
  Signal joined;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 1) {
      EXPECT_TRUE(session.join(GroupId{7}));
      EXPECT_TRUE(session.join(GroupId{7}));
    } else {
      session.leave(GroupId{7});
      session.leave(GroupId{7});
    }
    joined.give();
  };
  const std::string endpoint = listen();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 24; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint));
    clients.back()->send(i % 3 != 2 ? 1 : 2, "");
    ASSERT_TRUE(joined.take());
  }
  for (const std::size_t size : {10u, 100'000u}) {  // copied, and shared
    const std::string news(size, 'n');
    const auto frame = SharedFrame::encode(HeaderCodec(), {3, 0}, as_bytes(news));
    ASSERT_TRUE(server_->publish(GroupId{7}, *frame));
    ASSERT_TRUE(server_->publish(GroupId{8}, *frame));
    for (int i = 0; i < 24; ++i) {
      if (i % 3 != 2) {
        EXPECT_EQ(clients[static_cast<std::size_t>(i)]->receive(), news);
      }
    }
  }
  const auto all = SharedFrame::encode(HeaderCodec(), {4, 0}, as_bytes("for everybody"));
  ASSERT_TRUE(server_->broadcast(*all));
  for (auto& client : clients) {
    EXPECT_EQ(client->receive(), "for everybody");
  }
}

TEST_F(ServerTest, AMessageToAGroupIsPostedToCoresWithMembersOnly) {
  Signal done;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 1) {
      EXPECT_TRUE(session.join(GroupId{7}));
    } else {
      session.leave(GroupId{7});
    }
    done.give();
  };
  Client client(listen());
  const auto frame = SharedFrame::encode(HeaderCodec(), {3, 0}, as_bytes("news"));
  const auto posts_of_a_publish = [&] {
    const auto posts = [&] {
      std::uint64_t sum = 0;
      for (unsigned core = 0; core < runtime_->size(); ++core) {
        sum += runtime_->core(core).counts().foreign_posted;
      }
      return sum;
    };
    const std::uint64_t before = posts();
    EXPECT_TRUE(server_->publish(GroupId{7}, *frame));
    return posts() - before;
  };
  EXPECT_EQ(posts_of_a_publish(), 0u);
  client.send(1, "");
  ASSERT_TRUE(done.take());
  EXPECT_EQ(posts_of_a_publish(), 1u);
  EXPECT_EQ(client.receive(), "news");
  client.send(2, "");
  ASSERT_TRUE(done.take());
  EXPECT_EQ(posts_of_a_publish(), 0u);
}

TEST_F(ServerTest, AMemberHearsWhatItsCorePublishesAfterTheJoin) {
  const auto frame = SharedFrame::encode(HeaderCodec(), {3, 0}, as_bytes("news"));
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    EXPECT_TRUE(session.join(GroupId{7}));
    EXPECT_TRUE(server_->publish(GroupId{7}, *frame));
  };
  Client client(listen());
  client.send(1, "");
  EXPECT_EQ(client.receive(), "news");
}

TEST_F(ServerTest, MembersMayLeaveJoinAndEndInAnyOrder) {
  Random random(5);
  Signal done;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    const GroupId group{frame.header.id / 3};
    switch (frame.header.id % 3) {
      case 0: (void)session.join(group); break;
      case 1: session.leave(group); break;
      default: session.abort(); break;
    }
    done.give();
  };
  const std::string endpoint = listen();
  std::vector<std::unique_ptr<Client>> clients;
  const auto frame = SharedFrame::encode(HeaderCodec(), {0, 0}, as_bytes("x"));
  for (int step = 0; step < 600; ++step) {
    if (clients.size() < 12) {
      clients.push_back(std::make_unique<Client>(endpoint));
    }
    const std::size_t who = random.below(clients.size());
    const std::uint64_t kind = random.below(12);
    const auto group = static_cast<std::uint32_t>(random.below(4));
    clients[who]->send(group * 3 + (kind == 0 ? 2u : static_cast<std::uint32_t>(kind % 2)), "");
    ASSERT_TRUE(done.take());
    if (kind == 0) {
      clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(who));
    }
    ASSERT_TRUE(server_->publish(GroupId{group}, *frame));
  }
}

TEST_F(ServerTest, AFrameForAnotherCodecIsRefused) {
  Signal tried;
  script_.on_open = [&](HeaderSession& session) {
    const auto frame = SharedFrame::encode(DelimiterCodec(), {}, as_bytes("a line"));
    EXPECT_EQ(session.send_shared(*frame).error(), Errc::invalid_argument);
    tried.give();
  };
  Client client(listen());
  ASSERT_TRUE(tried.take());
}

// --- the end ---

// A stop must deliver the frames that sessions still have to send.
TEST_F(ServerTest, StopDeliversTheAnswersThatAreQueuedAndThoseThatAreOwed) {
  const std::string big(4u * 1024 * 1024, 'r');
  std::mutex mutex;
  std::vector<SessionId> owing;
  Signal asked;
  ListenerOptions options;
  options.limits.write_budget = 64u * 1024 * 1024;
  options.limits.close_timeout = kLong;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 1) {
      EXPECT_TRUE(session.send(frame.header, as_bytes(big)));
    } else {
      session.begin_reply();
      const std::lock_guard lock(mutex);
      owing.push_back(session.id());
    }
    asked.give();
  };
  const std::string endpoint = listen(options);
  Client queued(endpoint);
  Client owed(endpoint);
  queued.send(1, "");
  owed.send(2, "");
  ASSERT_TRUE(asked.take());
  ASSERT_TRUE(asked.take());
  server_->begin_stop(sys::now() + kLong);
  ASSERT_TRUE(server_->post_to(owing.front(), [](Session& session) {
    EXPECT_TRUE(session.send_bytes(as_bytes("in the end")));
    session.end_reply();
  }));
  EXPECT_EQ(owed.read_to_end(), "in the end");
  owed.close();
  EXPECT_TRUE(queued.receive() == big);
  EXPECT_EQ(queued.read_to_end(), "");
  EXPECT_FALSE(queued.reset());
  queued.close();
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
  EXPECT_EQ(closed_for(CloseReason::server_stopped), 2u);
  EXPECT_EQ(server_->counters().undelivered, 0u);
}

TEST_F(ServerTest, SessionsLeftAtTheDeadlineAreAborted) {
  watch_close();
  Signal asked;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame&) {
    session.begin_reply();  // the reply never comes
    asked.give();
  };
  Client client(listen());
  client.send(1, "");
  ASSERT_TRUE(asked.take());
  EXPECT_EQ(stop_now().error(), Errc::timed_out);
  ASSERT_TRUE(closed_.take());
  EXPECT_EQ(reason_, CloseReason::server_stopped);
  EXPECT_EQ(server_->sessions(), 0u);
}

TEST_F(ServerTest, StopInsideACallbackDoesNotWaitAndEndsEverything) {
  watch_close();
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    echo(session, frame);
    EXPECT_TRUE(server_->stop(sys::now() + kLong));
    EXPECT_EQ(server_->restart().error(), Errc::invalid_state);
    EXPECT_EQ(
        server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [] { return test::ScriptService{nullptr}; }).error(),
        Errc::invalid_state);
  };
  Client client(listen());
  client.send(1, "last words");
  EXPECT_EQ(client.receive(), "last words");
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  ASSERT_TRUE(closed_.take());
  EXPECT_TRUE(server_->stop(sys::now() + kLong));
}

TEST_F(ServerTest, NoSessionAndNoServiceOutlivesTheServer) {
  struct Counted {
    std::shared_ptr<int> token;
    void on_frame(HeaderSession& session, const HeaderCodec::Frame& frame) { echo(session, frame); }
  };
  const auto token = std::make_shared<int>(0);
  make_server();
  const auto endpoint = server_->listen<HeaderCodec>("tcp://127.0.0.1:0", {}, [token] { return Counted{token}; });
  ASSERT_TRUE(endpoint);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(*endpoint));
    clients.back()->send(1, "x");
    EXPECT_EQ(clients.back()->receive(), "x");
  }
  clients.resize(10);
  server_.reset();
  EXPECT_EQ(token.use_count(), 1);
  for (auto& client : clients) {
    EXPECT_EQ(client->read_to_end(), "");
  }
}

TEST_F(ServerTest, ARuntimeThatEndsFirstTakesNothingWithIt) {
  script_.on_frame = echo;
  Client client(listen());
  client.send(1, "x");
  EXPECT_EQ(client.receive(), "x");
  EXPECT_TRUE(runtime_->stop(sys::now() + kLong));
  (void)server_->stop(sys::now() + kLong);
  EXPECT_EQ(server_->sessions(), 0u);
  EXPECT_EQ(server_->counters().closed_total(), 1u);
}

}  // namespace
}  // namespace weft::serve
