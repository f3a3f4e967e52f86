// SPDX-License-Identifier: MIT
#include <optional>
#include <string>

#include "tests/exhaustion/failing_memory.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/session/shard.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::HeaderSession;
using test::Signal;
using weft::test::FailingMemory;

class ServerExhaustion : public test::ServerTest {
 protected:
  void SetUp() override { start_runtime(1); }
};

rt::Task<> wait_a_turn() { (void)co_await rt::yield(); }

// The request joins a group, publishes a shared frame, starts a coroutine and is answered.
TEST_F(ServerExhaustion, EveryRequestIsAnsweredOrItsSessionEndsAndTheNextOneIsServed) {
  std::uint64_t group = 0;
  script_.on_frame = [&](HeaderSession& session, const HeaderCodec::Frame& frame) {
    if (frame.header.id == 2) {
      (void)session.join(GroupId{++group});
      if (const auto shared = SharedFrame::encode(HeaderCodec(), {3, 0}, as_bytes(std::string_view("shared")))) {
        (void)session.send_shared(*shared);
      }
      const auto large = SharedFrame::encode(HeaderCodec(), {3, 0}, frame.body);
      if (large) {
        session.shard().publish(GroupId{group}, *large);
      }
      (void)session.spawn(wait_a_turn());
    }
    if (!session.send(frame.header, frame.body)) {
      session.abort();
    }
  };
  const std::string endpoint = listen();
  const std::string body(40'000, 'b');  // more than a pooled block
  for (const auto length : {FailingMemory::Length::one, FailingMemory::Length::all}) {
    for (std::size_t spared = 0; spared < 30; ++spared) {
      SCOPED_TRACE(spared);
      Client client(endpoint);
      client.send(1, "in");
      ASSERT_EQ(client.receive(), "in");
      std::optional<FailingMemory> memory;
      rt::test::on_core(*runtime_, 0, [&] { memory.emplace(spared, length); });
      const std::string frame = test::frame_of(2, body);
      client.write(std::string_view(frame).substr(0, 1000));
      rt::test::on_core(*runtime_, 0, [] {});
      client.write(std::string_view(frame).substr(1000));
      client.end_writing();
      (void)client.read_to_end();
      bool failed = false;
      rt::test::on_core(*runtime_, 0, [&] {
        failed = memory->failed();
        memory.reset();
      });
      Client next(endpoint);
      next.send(1, "next");
      ASSERT_EQ(next.receive(), "next");
      if (!failed) {
        break;
      }
    }
  }
}

}  // namespace
}  // namespace weft::serve
