// SPDX-License-Identifier: MIT
// The short forms of Socket's and AsyncSocket's calls.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weft/msg/async_socket.h"
#include "weft/msg/context.h"
#include "weft/rt/task/task_scope.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

class SocketCalls : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(to_.bind("inproc://calls"));
    ASSERT_TRUE(from_.connect("inproc://calls"));
  }
  std::vector<std::string> received() {
    std::vector<std::string> texts;
    const auto parts = to_.recv_all();
    EXPECT_TRUE(parts);
    for (const Message& part : *parts) {
      texts.push_back(part.to_string());
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  Context context_;
  Socket to_ = std::move(context_.socket(SocketType::pull)).value();
  Socket from_ = std::move(context_.socket(SocketType::push)).value();
};

TEST_F(SocketCalls, SendTakesTextsAndBytes) {
  const std::vector<std::uint8_t> bytes = {'b', 'y', 't', 'e'};
  ASSERT_TRUE(from_.send("text"));
  ASSERT_TRUE(from_.send(std::string("string")));
  ASSERT_TRUE(from_.send(bytes));
  ASSERT_TRUE(from_.send(Message("message")));
  ASSERT_TRUE(from_.try_send("tried"));
  for (const char* text : {"text", "string", "byte", "message", "tried"}) {
    EXPECT_EQ(received(), Texts{text});
  }
}

TEST_F(SocketCalls, ABracedListIsAMessageOfSeveralParts) {
  ASSERT_TRUE(from_.send({"topic", "body"}));
  ASSERT_TRUE(from_.send({std::string("a"), "", "c"}));
  ASSERT_TRUE(from_.send({"alone"}));
  EXPECT_EQ(received(), (Texts{"topic", "body"}));
  EXPECT_EQ(received(), (Texts{"a", "", "c"}));
  EXPECT_EQ(received(), (Texts{"alone"}));
}

TEST_F(SocketCalls, AMessageOfNoPartIsRefused) {
  EXPECT_EQ(from_.send(std::initializer_list<std::string_view>()).error(), Errc::invalid_argument);
  EXPECT_EQ(from_.send_all(std::span<Message>()).error(), Errc::invalid_argument);
  EXPECT_EQ(to_.try_recv().error(), Errc::would_block);
}

TEST_F(SocketCalls, RecvWaitsAtMostAsLongAsItIsTold) {
  const Instant begin = sys::now();
  EXPECT_EQ(to_.recv(20ms).error(), Errc::timed_out);
  EXPECT_GE(sys::now() - begin, 20ms);
  EXPECT_EQ(to_.recv(0ms).error(), Errc::timed_out);
  EXPECT_EQ(Socket().recv(1ms).error(), Errc::closed);
  ASSERT_TRUE(from_.send("there"));
  EXPECT_EQ(to_.recv(10s)->text(), "there");
  ASSERT_TRUE(from_.send("for ever"));
  EXPECT_EQ(to_.recv(Duration::max())->text(), "for ever");
  ASSERT_TRUE(from_.send("also"));
  EXPECT_EQ(to_.recv(-1ms)->text(), "also");
}

// A coroutine of the loop.
rt::Task<> send_each_form(rt::Loop* loop, Socket socket) {
  Result<AsyncSocket> made = AsyncSocket::make(*loop, std::move(socket));
  AsyncSocket out = std::move(made).value();
  const std::vector<std::uint8_t> bytes = {'b', 'y', 't', 'e'};
  std::vector<Result<void>> results;
  results.push_back(co_await out.send("text"));
  results.push_back(co_await out.send(std::string(100, 's')));
  results.push_back(co_await out.send(bytes));
  results.push_back(co_await out.send(Message("message")));
  for (const auto& result : results) {
    EXPECT_TRUE(result) << result.error().message();
  }
  const Result<void> none = co_await out.send_all({});
  EXPECT_EQ(none.error(), Errc::invalid_argument);
}

TEST_F(SocketCalls, ACoroutineHasTheSameForms) {
  const auto loop = std::move(rt::Loop::make("calls-test")).value();
  ASSERT_TRUE(loop->start(nullptr));
  EXPECT_TRUE(rt::spawn(*loop, send_each_form(loop.get(), std::move(from_))).get());
  EXPECT_EQ(received(), Texts{"text"});
  EXPECT_EQ(received(), Texts{std::string(100, 's')});
  EXPECT_EQ(received(), Texts{"byte"});
  EXPECT_EQ(received(), Texts{"message"});
  loop->stop();
}

}  // namespace
}  // namespace weft
