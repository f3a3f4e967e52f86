// SPDX-License-Identifier: MIT
#include "weft/msg/async_socket.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weft/msg/context.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;
using rt::Task;

Message text(const std::string& value) { return std::move(Message::copy_of(value)).value(); }

// A loop with a thread, and sockets over one transport.
class AsyncSocketTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    loop_ = std::move(rt::Loop::make("async-test")).value();
    ASSERT_TRUE(loop_->start(nullptr));
  }
  void TearDown() override { loop_->stop(); }

  Socket socket(SocketType type) { return std::move(context_.socket(type)).value(); }
  std::string bound(Socket& socket) { return socket.bind(GetParam()).value(); }
  template <typename T>
  auto run(Task<T> task) {
    return rt::spawn(*loop_, std::move(task)).get();
  }

  Context context_;
  std::unique_ptr<rt::Loop> loop_;
};

// A coroutine gets the loop and the Socket. It makes the AsyncSocket itself, so that it is destroyed on the loop.
Task<Result<std::vector<std::string>>> take(rt::Loop* loop, Socket socket, int count) {
  Result<AsyncSocket> made = AsyncSocket::make(*loop, std::move(socket));
  AsyncSocket in = std::move(made).value();
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    const Result<Message> message = co_await in.recv();
    if (!message) {
      co_return message.error();
    }
    EXPECT_TRUE(loop->on_loop_thread());
    texts.emplace_back(message->text());
  }
  co_return texts;
}

TEST_P(AsyncSocketTest, ACoroutineReceivesWhatAnotherThreadSendsInOrder) {
  constexpr int kCount = 2000;
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(push.connect(bound(pull)));
  auto taken = rt::spawn(*loop_, take(loop_.get(), std::move(pull), kCount));
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(push.send(std::to_string(i)));
  }
  const auto texts = taken.get();
  ASSERT_TRUE(texts) << texts.error().message();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ((*texts)[static_cast<std::size_t>(i)], std::to_string(i));
  }
}

TEST_P(AsyncSocketTest, ASenderWaitsForRoomAndLosesNothing) {
  constexpr int kCount = 3000;
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 4));
  ASSERT_TRUE(push.set(option::send_high_water_mark, 4));
  ASSERT_TRUE(push.connect(bound(pull)));
  struct Sender {
    static Task<Result<void>> go(rt::Loop* loop, Socket socket) {
      AsyncSocket out = std::move(AsyncSocket::make(*loop, std::move(socket))).value();
      for (int i = 0; i < kCount; ++i) {
        const Result<void> sent = co_await out.send(text(std::to_string(i)));
        if (!sent) {
          co_return sent;
        }
      }
      co_return Result<void>();
    }
  };
  auto sent = rt::spawn(*loop_, Sender::go(loop_.get(), std::move(push)));
  for (int i = 0; i < kCount; ++i) {
    const Result<Message> message = pull.recv();
    ASSERT_TRUE(message);
    ASSERT_EQ(message->text(), std::to_string(i));
  }
  EXPECT_TRUE(sent.get());
}

TEST_P(AsyncSocketTest, TwoSocketsOfOneLoopTalkToEachOther) {
  constexpr int kRounds = 300;
  Socket rep = socket(SocketType::rep);
  Socket req = socket(SocketType::req);
  ASSERT_TRUE(req.connect(bound(rep)));
  struct Talk {
    static Task<void> serve(AsyncSocket* rep) {
      for (;;) {
        Result<std::vector<Message>> request = co_await rep->recv_all();
        if (!request) {
          EXPECT_EQ(request.error(), rt::kCancelled);
          co_return;
        }
        EXPECT_EQ(request->size(), 2u);
        const Result<void> sent = co_await rep->send_all(std::move(*request));
        EXPECT_TRUE(sent);
      }
    }
    static Task<int> ask(AsyncSocket* req) {
      int right = 0;
      for (int i = 0; i < kRounds; ++i) {
        std::vector<Message> parts;
        parts.push_back(text("question"));
        parts.push_back(text(std::to_string(i)));
        const Result<void> sent = co_await req->send_all(std::move(parts));
        EXPECT_TRUE(sent);
        const Result<std::vector<Message>> answer = co_await req->recv_all();
        right += answer && answer->size() == 2 && (*answer)[1].text() == std::to_string(i) ? 1 : 0;
      }
      co_return right;
    }
    static Task<int> go(rt::Loop* loop, Socket rep, Socket req) {
      AsyncSocket server = std::move(AsyncSocket::make(*loop, std::move(rep))).value();
      AsyncSocket client = std::move(AsyncSocket::make(*loop, std::move(req))).value();
      auto first = co_await rt::when_any(serve(&server), ask(&client));
      EXPECT_EQ(first.index(), 1u);
      co_return std::get<1>(first);
    }
  };
  EXPECT_EQ(run(Talk::go(loop_.get(), std::move(rep), std::move(req))).value(), kRounds);
}

TEST_P(AsyncSocketTest, AReceiverThatTimesOutTakesNothingWithIt) {
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(push.connect(bound(pull)));
  struct Receiver {
    static Task<Result<std::string>> go(rt::Loop* loop, Socket in, Socket* out) {
      AsyncSocket socket = std::move(AsyncSocket::make(*loop, std::move(in))).value();
      const Result<Message> none = co_await rt::with_timeout(socket.recv(), 1ms);
      EXPECT_EQ(none.error(), Errc::timed_out);
      EXPECT_TRUE(out->try_send(as_bytes("late")));
      const Result<Message> late = co_await rt::with_timeout(socket.recv(), 1min);
      if (!late) {
        co_return late.error();
      }
      co_return std::string(late->text());
    }
  };
  // tcp and ipc: send a message first, so that the connection stands and try_send() has room.
  ASSERT_TRUE(push.send("first"));
  ASSERT_EQ(pull.recv()->text(), "first");
  EXPECT_EQ(run(Receiver::go(loop_.get(), std::move(pull), &push)).value(), "late");
}

// In a published queue, one of two coroutines that wait at the same time is forgotten.
TEST_P(AsyncSocketTest, RegressionEachCoroutineThatWaitsForTheSameSocketIsServed) {
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(push.connect(bound(pull)));
  struct Both {
    static Task<std::size_t> one(AsyncSocket* socket) {
      const Result<Message> message = co_await socket->recv();
      co_return message ? message->size() : 0;
    }
    static Task<std::size_t> go(rt::Loop* loop, Socket in) {
      AsyncSocket socket = std::move(AsyncSocket::make(*loop, std::move(in))).value();
      auto [a, b, c] = co_await rt::when_all(one(&socket), one(&socket), one(&socket));
      co_return a + b + c;
    }
  };
  auto sum = rt::spawn(*loop_, Both::go(loop_.get(), std::move(pull)));
  for (const char* message : {"1", "22", "333"}) {
    ASSERT_TRUE(push.send(message));
  }
  EXPECT_EQ(sum.get().value(), 6u);
}

// A published session leaves the coroutines that wait for it suspended for ever when it is closed.
TEST_P(AsyncSocketTest, RegressionCloseEndsAllWaits) {
  Socket pull = socket(SocketType::pull);
  (void)bound(pull);
  struct Waiters {
    static Task<Error> one(AsyncSocket* socket, int* waiting) {
      ++*waiting;
      const Result<Message> message = co_await socket->recv();
      co_return message.error();
    }
    static Task<void> close(AsyncSocket* socket, const int* waiting) {
      EXPECT_EQ(*waiting, 2);
      socket->close();
      co_return;
    }
    static Task<int> go(rt::Loop* loop, Socket in) {
      AsyncSocket socket = std::move(AsyncSocket::make(*loop, std::move(in))).value();
      int waiting = 0;
      auto [a, b, none] =
          co_await rt::when_all(one(&socket, &waiting), one(&socket, &waiting), close(&socket, &waiting));
      const Result<Message> later = co_await socket.recv();
      co_return (a == Errc::closed ? 1 : 0) + (b == Errc::closed ? 1 : 0) + (later.error() == Errc::closed ? 1 : 0);
    }
  };
  EXPECT_EQ(run(Waiters::go(loop_.get(), std::move(pull))).value(), 3);
}

TEST_P(AsyncSocketTest, TheEndOfTheContextEndsAllWaits) {
  Socket pull = socket(SocketType::pull);
  (void)bound(pull);
  auto taken = rt::spawn(*loop_, take(loop_.get(), std::move(pull), 1));
  (void)run([]() -> Task<void> { co_return; }());
  context_.shut_down();
  EXPECT_EQ(taken.get().error(), Errc::terminated);
}

TEST_P(AsyncSocketTest, ALoopThatStopsEndsAllWaits) {
  Socket pull = socket(SocketType::pull);
  (void)bound(pull);
  auto taken = rt::spawn(*loop_, take(loop_.get(), std::move(pull), 1));
  loop_->stop();
  ASSERT_TRUE(taken.ready());
  EXPECT_EQ(taken.get().error(), rt::kCancelled);
}

TEST_P(AsyncSocketTest, AMessageAfterWaitSubscribersReachesAllSubscribers) {
  Socket pub = socket(SocketType::pub);
  const std::string endpoint = bound(pub);
  struct Publisher {
    static Task<Result<void>> go(rt::Loop* loop, Socket socket) {
      AsyncSocket out = std::move(AsyncSocket::make(*loop, std::move(socket))).value();
      const Result<void> there = co_await out.wait_subscribers(3);
      if (!there) {
        co_return there;
      }
      co_return co_await out.send(text("news"));
    }
  };
  auto published = rt::spawn(*loop_, Publisher::go(loop_.get(), std::move(pub)));
  std::vector<Socket> subscribers;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(published.ready());
    subscribers.push_back(socket(SocketType::sub));
    ASSERT_TRUE(subscribers.back().subscribe("n"));
    ASSERT_TRUE(subscribers.back().connect(endpoint));
  }
  for (Socket& subscriber : subscribers) {
    EXPECT_EQ(subscriber.recv()->text(), "news");
  }
  EXPECT_TRUE(published.get());
}

TEST_P(AsyncSocketTest, OnlyASocketThatPublishesHasSubscribers) {
  struct Wrong {
    static Task<Result<void>> go(rt::Loop* loop, Socket socket) {
      AsyncSocket out = std::move(AsyncSocket::make(*loop, std::move(socket))).value();
      co_return co_await out.wait_subscribers(1);
    }
    static Task<Result<void>> timed(rt::Loop* loop, Socket socket) {
      AsyncSocket out = std::move(AsyncSocket::make(*loop, std::move(socket))).value();
      co_return co_await rt::with_timeout(out.wait_subscribers(1), 1ms);
    }
  };
  EXPECT_EQ(run(Wrong::go(loop_.get(), socket(SocketType::push))).error(), Errc::not_supported);
  Socket pub = socket(SocketType::pub);
  (void)bound(pub);
  EXPECT_EQ(run(Wrong::timed(loop_.get(), std::move(pub))).error(), Errc::timed_out);
}

TEST_P(AsyncSocketTest, AReceiverThatLosesAWhenAnyHasTakenNoMessage) {
  constexpr int kCount = 200;
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(push.connect(bound(pull)));
  struct Race {
    static Task<int> go(rt::Loop* loop, Socket in) {
      AsyncSocket socket = std::move(AsyncSocket::make(*loop, std::move(in))).value();
      int next = 0;
      while (next < kCount) {
        auto first = co_await rt::when_any(socket.recv(), socket.recv(), socket.recv());
        const Result<Message>& message = first.index() == 0   ? std::get<0>(first)
                                         : first.index() == 1 ? std::get<1>(first)
                                                              : std::get<2>(first);
        if (!message || message->text() != std::to_string(next)) {
          co_return -1;
        }
        ++next;
      }
      co_return next;
    }
  };
  auto got = rt::spawn(*loop_, Race::go(loop_.get(), std::move(pull)));
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(push.send(std::to_string(i)));
  }
  EXPECT_EQ(got.get().value(), kCount);
}

TEST_P(AsyncSocketTest, AFloodOfMessagesLetsTheOthersOfTheLoopRun) {
  constexpr int kCount = 800;
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(push.connect(bound(pull)));
  struct Busy {
    static Task<int> receive(AsyncSocket* socket) {
      int count = 0;
      while (count < kCount) {
        const Result<Message> message = co_await socket->recv();
        if (!message) {
          break;
        }
        ++count;
      }
      co_return count;
    }
    static Task<void> tick(const bool* done, int* ticks) {
      while (!*done) {
        ++*ticks;
        (void)co_await rt::yield();
      }
    }
    static Task<int> flag(Task<int> task, bool* done) {
      const int value = co_await std::move(task);
      *done = true;
      co_return value;
    }
    static Task<int> go(rt::Loop* loop, Socket in) {
      AsyncSocket socket = std::move(AsyncSocket::make(*loop, std::move(in))).value();
      bool done = false;
      int ticks = 0;
      auto [count, none] = co_await rt::when_all(flag(receive(&socket), &done), tick(&done, &ticks));
      EXPECT_GE(ticks, kCount / static_cast<int>(AsyncSocket::kBurst) / 2);
      co_return count;
    }
  };
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(push.send("x"));
  }
  EXPECT_EQ(run(Busy::go(loop_.get(), std::move(pull))).value(), kCount);
}

TEST_P(AsyncSocketTest, TheOptionReceiveTimeoutEndsAWaitAndTakesNothing) {
  struct Receiver {
    static Task<Result<std::string>> go(rt::Loop* loop, Socket in, Socket* out) {
      AsyncSocket socket = std::move(AsyncSocket::make(*loop, std::move(in))).value();
      for (const Duration timeout : {Duration(1ms), Duration::zero()}) {
        EXPECT_TRUE(socket.socket().set(option::receive_timeout, timeout));
        const Result<Message> none = co_await socket.recv();
        EXPECT_EQ(none.error(), Errc::timed_out);
        const Result<std::vector<Message>> nothing = co_await socket.recv_all();
        EXPECT_EQ(nothing.error(), Errc::timed_out);
      }
      EXPECT_TRUE(socket.socket().set(option::receive_timeout, Duration(-1)));
      EXPECT_TRUE(out->send("one"));
      const Result<Message> one = co_await socket.recv();
      EXPECT_TRUE(one);
      EXPECT_TRUE(out->send("two"));
      // With zero, recv() takes a message that is there, also when it yields to other coroutines first.
      EXPECT_TRUE(socket.socket().set(option::receive_timeout, Duration::zero()));
      for (;;) {
        const Result<Message> two = co_await socket.recv();
        if (two) {
          co_return std::string(two->text());
        }
        EXPECT_EQ(two.error(), Errc::timed_out);
        (void)co_await rt::yield();
      }
    }
  };
  Socket pull = socket(SocketType::pull);
  Socket push = socket(SocketType::push);
  ASSERT_TRUE(push.connect(bound(pull)));
  EXPECT_EQ(run(Receiver::go(loop_.get(), std::move(pull), &push)).value(), "two");
}

TEST_P(AsyncSocketTest, TheOptionSendTimeoutEndsAWaitForAPeer) {
  struct Sender {
    static Task<int> go(rt::Loop* loop, Socket out) {
      AsyncSocket socket = std::move(AsyncSocket::make(*loop, std::move(out))).value();
      int timed_out = 0;
      for (const Duration timeout : {Duration(1ms), Duration::zero()}) {
        EXPECT_TRUE(socket.socket().set(option::send_timeout, timeout));
        const Result<void> sent = co_await socket.send(text("nobody is there"));
        timed_out += sent.error() == Errc::timed_out ? 1 : 0;
        std::vector<Message> parts;
        parts.push_back(text("a"));
        parts.push_back(text("b"));
        const Result<void> all = co_await socket.send_all(std::move(parts));
        timed_out += all.error() == Errc::timed_out ? 1 : 0;
      }
      Message kept = text("kept");
      EXPECT_EQ(socket.try_send(std::move(kept)).error(), Errc::would_block);
      EXPECT_EQ(kept.text(), "kept");  // NOLINT(bugprone-use-after-move): a refused message stays
      co_return timed_out;
    }
  };
  Socket push = socket(SocketType::push);
  (void)bound(push);
  EXPECT_EQ(run(Sender::go(loop_.get(), std::move(push))).value(), 4);
}

INSTANTIATE_TEST_SUITE_P(EveryTransport, AsyncSocketTest,
                         testing::Values("tcp://127.0.0.1:*", "ipc://*", "inproc://async"),
                         [](const testing::TestParamInfo<const char*>& each) {
                           const std::string endpoint(each.param);
                           return endpoint.substr(0, endpoint.find(':'));
                         });

}  // namespace
}  // namespace weft
