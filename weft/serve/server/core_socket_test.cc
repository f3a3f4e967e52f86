// SPDX-License-Identifier: MIT
// Message sockets on a core, beside its sessions: one thread runs both.
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weft/msg/async_socket.h"
#include "weft/msg/context.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::HeaderSession;
using test::kLong;
using test::Signal;

constexpr GroupId kEverybody{1};

// Sessions ask a worker behind a ROUTER, which answers over the same core.
struct Router {
  std::unique_ptr<AsyncSocket> socket;  // of the core's thread

  static rt::Task<void> answers(Router* self, Socket own, Server* server, Signal* ready) {
    self->socket = std::make_unique<AsyncSocket>(
        std::move(AsyncSocket::make(rt::Core::current()->loop(), std::move(own))).value());
    for (;;) {
      const Result<std::vector<Message>> parts = co_await self->socket->recv_all();
      if (!parts) {
        break;
      }
      if ((*parts)[1].text() == "hello") {  // from now on the router has the worker
        ready->give();
        continue;
      }
      EXPECT_EQ(parts->size(), 3u);
      const SessionId id{std::stoull(std::string((*parts)[1].text()))};
      const auto frame = SharedFrame::encode(HeaderCodec(), {4, 0}, (*parts)[2].bytes());
      EXPECT_TRUE(frame && server->send_to(id, *frame));
    }
    self->socket.reset();
  }
};

class CoreSocketTest : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }

  Socket socket(SocketType type) { return std::move(context_.socket(type)).value(); }
  [[nodiscard]] rt::Loop& loop() { return runtime_->core(0).loop(); }
  // A client whose session is in the group.
  std::unique_ptr<Client> member(const std::string& endpoint) {
    auto client = std::make_unique<Client>(endpoint);
    client->send(1, "join");
    EXPECT_EQ(client->receive(), "join");
    return client;
  }
  std::string listen_members() {
    script_.on_frame = [](HeaderSession& session, const HeaderCodec::Frame& frame) {
      EXPECT_TRUE(session.join(kEverybody));
      echo(session, frame);
    };
    return listen();
  }

  // Publishes the messages of the socket to the group, until the core ends or a receive times out.
  static rt::Task<Result<void>> forward(Socket socket, Server* server, Signal* ready) {
    rt::Core& core = *rt::Core::current();
    AsyncSocket in = std::move(AsyncSocket::make(core.loop(), std::move(socket))).value();
    ready->give();
    for (;;) {
      const Result<Message> message = co_await in.recv();
      EXPECT_EQ(rt::Core::current(), &core);
      if (!message) {
        co_return message.error();
      }
      const auto frame = SharedFrame::encode(HeaderCodec(), {2, 0}, message->bytes());
      EXPECT_TRUE(frame && server->publish(kEverybody, *frame));
      if (!frame) {
        co_return frame.error();
      }
    }
  }

  Context context_;
  Router router_;  // its coroutine ends with the runtime, before this
};

TEST_F(CoreSocketTest, MessagesThatASocketPullsReachTheSessionsInOrder) {
  constexpr int kCount = 500;
  const std::string endpoint = listen_members();
  const auto first = member(endpoint);
  const auto second = member(endpoint);
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(push.connect(pull.bind("tcp://127.0.0.1:*").value()));
  Signal ready;
  const auto forwarded = rt::spawn(loop(), forward(std::move(pull), server_.get(), &ready));
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(push.send(std::to_string(i)));
    if (i % 100 == 99) {  // the publishing core has lanes of 1024
      for (int seen = i - 99; seen <= i; ++seen) {
        ASSERT_EQ(first->receive(), std::to_string(seen));
        ASSERT_EQ(second->receive(), std::to_string(seen));
      }
    }
  }
}

TEST_F(CoreSocketTest, ASocketOfOneCoreIsRefusedOnAnother) {
  start_runtime(2);
  const auto use = [](rt::Runtime* runtime, Socket pull, std::vector<std::string>* texts) -> rt::Task<void> {
    AsyncSocket in = std::move(AsyncSocket::make(rt::Core::current()->loop(), std::move(pull))).value();
    const auto elsewhere = [&in, texts]() -> rt::Task<void> {
      const Result<Message> message = co_await in.recv();
      texts->push_back(message.error().message());
      const Result<void> sent = co_await in.send("x");
      texts->push_back(sent.error().message());
      texts->push_back(in.try_send(std::move(Message::copy_of(as_bytes("x"))).value()).error().message());
      EXPECT_TRUE(in.socket().set(option::receive_timeout, kLong));
      const Result<Message> timed = co_await in.recv();
      texts->push_back(timed.error().message());
    };
    const auto used = co_await runtime->call(1, elsewhere);
    EXPECT_TRUE(used);
  };
  std::vector<std::string> texts;
  ASSERT_TRUE(rt::spawn(loop(), use(runtime_.get(), socket(SocketType::pair), &texts)).get());
  EXPECT_EQ(texts, std::vector<std::string>(4, "not allowed in this state: socket of core 0 used on core 1"));
}

TEST_F(CoreSocketTest, ASubscriberOnACoreGetsItsTopicsAndSessionsContinue) {
  const auto client = member(listen_members());
  Socket pub = socket(SocketType::xpub);
  Socket sub = socket(SocketType::sub);
  ASSERT_TRUE(sub.connect(pub.bind("tcp://127.0.0.1:*").value()));
  ASSERT_TRUE(sub.subscribe("news."));
  Signal ready;
  const auto forwarded = rt::spawn(loop(), forward(std::move(sub), server_.get(), &ready));
  ASSERT_EQ(pub.recv()->text(), "\x01news.");
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pub.send("weather.rain"));
    ASSERT_TRUE(pub.send("news." + std::to_string(i)));
    client->send(3, "echo");
    std::multiset<std::string> got{client->receive().value_or(""), client->receive().value_or("")};
    EXPECT_EQ(got, (std::multiset<std::string>{"echo", "news." + std::to_string(i)}));
  }
}

TEST_F(CoreSocketTest, SessionsAskAWorkerBehindARouterFromTheirCallbacks) {
  Router& router = router_;
  script_.on_frame = [&router](HeaderSession& session, const HeaderCodec::Frame& frame) {
    const std::string id = std::to_string(session.id().value);
    EXPECT_TRUE(router.socket->try_send(Message::copy_of("worker").value(), More::yes));
    EXPECT_TRUE(router.socket->try_send(Message::copy_of(id).value(), More::yes));
    EXPECT_TRUE(router.socket->try_send(Message::copy_of(frame.body).value()));
  };
  const std::string endpoint = listen();
  Socket own = socket(SocketType::router);
  Socket worker = socket(SocketType::dealer);
  ASSERT_TRUE(own.set(option::router_mandatory, true));
  ASSERT_TRUE(worker.set(option::routing_id, "worker"));
  ASSERT_TRUE(worker.connect(own.bind("tcp://127.0.0.1:*").value()));
  Signal ready;
  const auto answers = rt::spawn(loop(), Router::answers(&router, std::move(own), server_.get(), &ready));
  ASSERT_TRUE(worker.send("hello"));
  ASSERT_TRUE(ready.take());
  constexpr int kRounds = 100;
  Client first(endpoint);
  Client second(endpoint);
  std::string burst;
  for (int i = 0; i < kRounds; ++i) {
    burst += test::frame_of(1, std::to_string(i));
  }
  first.write(burst);
  second.write(burst);
  for (int i = 0; i < 2 * kRounds; ++i) {
    auto request = worker.recv_all();
    ASSERT_TRUE(request);
    ASSERT_EQ(request->size(), 2u);
    ASSERT_TRUE(worker.send_all(*request));
  }
  for (Client* const client : {&first, &second}) {
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_EQ(client->receive(), std::to_string(i));
    }
  }
}

TEST_F(CoreSocketTest, ASocketThatWaitsInVainKeepsNoSessionWaiting) {
  const auto client = member(listen_members());
  Socket pull = socket(SocketType::pull);
  ASSERT_TRUE(pull.bind("tcp://127.0.0.1:*"));
  Socket patient = socket(SocketType::pull);
  ASSERT_TRUE(patient.bind("tcp://127.0.0.1:*"));
  ASSERT_TRUE(pull.set(option::receive_timeout, std::chrono::milliseconds(1)));
  Signal ready;
  auto waits = rt::spawn(loop(), forward(std::move(patient), server_.get(), &ready));
  auto gives_up = rt::spawn(loop(), forward(std::move(pull), server_.get(), &ready));
  for (int i = 0; i < 20; ++i) {
    client->send(3, "meanwhile");
    EXPECT_EQ(client->receive(), "meanwhile");
  }
  EXPECT_EQ(gives_up.get().error(), Errc::timed_out);
  ASSERT_TRUE(server_->stop(sys::now() + kLong));
  ASSERT_TRUE(runtime_->stop(sys::now() + kLong));
  EXPECT_EQ(waits.get().error(), rt::kCancelled);
}

}  // namespace
}  // namespace weft::serve
