// SPDX-License-Identifier: MIT
// Counts every allocation of the test program, to prove that a steady flow of messages makes none.
#include <atomic>
#include <string>

#include "tests/support/count_allocations.h"
#include "tests/support/settles.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

#ifdef WEFT_COUNTS_ALLOCATIONS

namespace weft::serve {
namespace {

using Frame = HeaderCodec::Frame;
using test::Client;
using test::HeaderSession;

class QuietServer : public test::ServerTest {
 protected:
  // Rounds of pipelined frames.
  testing::AssertionResult settles(Client& client, std::uint32_t id) {
    constexpr int kFrames = 50;
    std::string frames;
    for (int i = 0; i < kFrames; ++i) {
      frames += test::frame_of(id, std::string(300, 'x'));
    }
    std::string answers;
    answers.resize(frames.size());
    return weft::test::settles([&] {
      client.write(frames);
      ASSERT_TRUE(read_exactly(client, answers));
      ASSERT_EQ(answers, frames);
    });
  }

 private:
  static bool read_exactly(Client& client, std::string& into) {
    std::size_t have = 0;
    while (have < into.size()) {
      sys::PollFd polled{.fd = client.stream().fd(), .want = sys::Interest::readable};
      if (sys::poll_fds({&polled, 1}, test::kLong).value_or(std::size_t{0}) != 1) {
        return false;
      }
      MutableBytes rest(reinterpret_cast<std::uint8_t*>(into.data()) + have, into.size() - have);
      const sys::IoResult result = client.stream().read({&rest, 1});
      if (result.status == sys::IoResult::Status::end_of_stream || result.status == sys::IoResult::Status::failed) {
        return false;
      }
      have += result.bytes;
    }
    return true;
  }
};

TEST_F(QuietServer, PlainHandlersAndCoroutinesMakeNoneWhetherTheyWaitOrNot) {
  Dispatcher<HeaderSession> dispatcher;
  ASSERT_TRUE(dispatcher.on(1, test::echo));
  ASSERT_TRUE(dispatcher.on(2, [](HeaderSession& session, const Frame& frame) -> rt::Task<Result<void>> {
    co_return session.send(frame.header, frame.body);
  }));
  ASSERT_TRUE(dispatcher.on(3, [](HeaderSession& session, const Frame& frame) -> rt::Task<> {
    (void)co_await rt::yield();
    (void)session.send(frame.header, frame.body);
  }));
  ASSERT_TRUE(dispatcher.on(4, [this](HeaderSession& session, const Frame& frame) -> rt::Task<Result<void>> {
    const auto other = 1 - session.id().core();
    const auto called = co_await runtime_->call(other, []() -> rt::Task<int> {
      (void)co_await rt::yield();
      co_return 1;
    });
    co_return called ? session.send(frame.header, frame.body) : Result<void>(called.error());
  }));
  script_.on_frame = [&dispatcher](HeaderSession& session, const Frame& frame) { dispatcher.dispatch(session, frame); };
  ListenerOptions options;
  options.accept = AcceptMode::hand_off;
  Client client(listen(options));
  for (std::uint32_t id = 1; id <= 4; ++id) {
    EXPECT_TRUE(settles(client, id)) << id;
  }
}

}  // namespace
}  // namespace weft::serve

#endif
