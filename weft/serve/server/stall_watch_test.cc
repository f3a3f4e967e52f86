// SPDX-License-Identifier: MIT
// A callback that does not return is named: in the log, on /healthz and on /metrics.
#include "weft/serve/server/stall_watch.h"

#include <mutex>
#include <string>
#include <thread>

#include "weft/rt/task/task_time.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/inspect/core_health.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using std::chrono::milliseconds;
using test::Client;
using test::HeaderSession;
using test::kLong;
using test::ServerTest;
using test::Signal;
using Frame = HeaderCodec::Frame;

class StallWatchTest : public ServerTest {
 public:
  void SetUp() override {
    start_runtime(1);
    ServerOptions options;
    options.stall_after = milliseconds(200);  // a turn that another program delays is reported first
    options.log = [this](const LogRecord& record) {
      if (record.event == LogEvent::core_stalled) {
        const std::lock_guard lock(mutex_);
        std::string line;
        append_line(record, line);
        lines_ += line;
        if (blocked_) {
          named_ = named_ || record.session == blocked_;
          told_.give();
        } else {
          early_ = true;
        }
      }
    };
    make_server(options);
  }
  // The function of the service that blocks.
  void block(HeaderSession& session) {
    {
      const std::lock_guard lock(mutex_);
      blocked_ = session.id();
      if (std::exchange(early_, false)) {
        told_.give();
      }
    }
    EXPECT_TRUE(leave_.take());
    {
      const std::lock_guard lock(mutex_);
      blocked_ = {};
      named_ = false;
    }
    (void)session.send({1, 0}, as_bytes("done"));
  }
  // Sends a frame that blocks the core until leave(), and waits until the watch has reported it. The watch reports a
  // turn once: when another program held up the turn before the handler began, another turn is needed.
  void enter(Client& client, std::uint32_t id) {
    for (bool named = false; !named;) {
      client.send(id, "");
      ASSERT_TRUE(told_.take());
      {
        const std::lock_guard lock(mutex_);
        named = named_;
      }
      if (!named) {
        leave(client);
      }
    }
  }
  void leave(Client& client) {
    leave_.give();
    EXPECT_EQ(client.receive(), "done");
  }
  bool logged(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return lines_.find(text) != std::string::npos;
  }
  // The value in /metrics of the turn of core 0, after it is above 0.
  CounterReading long_turn() {
    const CounterSource source = runtime_->counter_source();
    for (const Instant limit = sys::now() + kLong; sys::now() < limit; std::this_thread::yield()) {
      CounterReadings readings;
      source("", readings);
      for (CounterReading& reading : readings) {
        if (reading.table == &rt::kCoreTurnTable && reading.values.at(0) != 0) {
          return std::move(reading);
        }
      }
    }
    ADD_FAILURE() << "no turn lasts";
    return {};
  }

  Signal leave_;
  Signal told_;
  std::mutex mutex_;
  SessionId blocked_;   // guarded by mutex_, as all that follow: the session whose function blocks
  bool named_ = false;  // the watch reported it
  bool early_ = false;  // the watch reported a turn while no function blocked
  std::string lines_;
};

TEST_F(StallWatchTest, AHandlerThatDoesNotReturnIsNamedInTheLogTheMetricsAndTheHealthOfItsCore) {
  script_.on_frame = [this](HeaderSession& session, const Frame&) { block(session); };
  Client client(listen());
  enter(client, 1);
  EXPECT_TRUE(logged("level=error component=serve.core event=core_stalled core=0 session=0x")) << lines_;
  EXPECT_TRUE(logged("serve::test::ScriptService on_frame has not returned for ")) << lines_;
  const CounterReading turn = long_turn();
  ASSERT_EQ(turn.labels.size(), 3u);
  EXPECT_EQ(turn.labels[0], (CounterLabel{"core", "0"}));
  EXPECT_EQ(turn.labels[1], (CounterLabel{"handler", "on_frame"}));
  EXPECT_EQ(turn.labels[2].name, "service");
  EXPECT_TRUE(turn.labels[2].value.ends_with("serve::test::ScriptService")) << turn.labels[2].value;
  const auto health = std::make_shared<CoreHealth>(*runtime_);
  health->ask(sys::now());
  EXPECT_NE(health->complaints(sys::now()).find("core 0 has not answered for "), std::string::npos);
  EXPECT_NE(health->complaints(sys::now()).find("serve::test::ScriptService on_frame has not returned for "),
            std::string::npos);
  leave(client);
  EXPECT_GE(runtime_->core(0).counts().stalls, 1u);
}

TEST_F(StallWatchTest, TheHandlerOfADispatcherIsNamedByItsFrame) {
  Dispatcher<HeaderSession> dispatcher;
  ASSERT_TRUE(dispatcher.on(4711, [this](HeaderSession& session, const Frame&) { block(session); }));
  script_.on_frame = [&](HeaderSession& session, const Frame& frame) { dispatcher.dispatch(session, frame); };
  Client client(listen());
  enter(client, 4711);
  EXPECT_TRUE(logged("ScriptService on_frame (frame 4711) has not returned for ")) << lines_;
  leave(client);
  (void)stop_now();  // before the dispatcher's end
}

TEST_F(StallWatchTest, ACoroutineThatBlocksIsNamedByItsService) {
  const auto wait_and_block = [](StallWatchTest* self, HeaderSession* session) -> rt::Task<> {
    (void)co_await rt::sleep(milliseconds(1));
    self->block(*session);
  };
  script_.on_frame = [&](HeaderSession& session, const Frame&) {
    EXPECT_TRUE(session.spawn(wait_and_block(this, &session)));
  };
  Client client(listen());
  enter(client, 1);
  EXPECT_TRUE(logged("ScriptService coroutine has not returned for ")) << lines_;
  leave(client);
}

TEST_F(StallWatchTest, TheWatchOfIdleCoresSleepsUntilATurnAndSeesThatItLasts) {
  Signal told;
  const auto log = [&told](const LogRecord& record) {
    if (record.event == LogEvent::core_stalled) {
      told.give();
    }
  };
  const auto made = StallWatch::make(*runtime_, milliseconds(20), log);
  ASSERT_TRUE(made) << made.error().message();
  for (int round = 0; round < 2; ++round) {
    for (const Instant limit = sys::now() + kLong; !(*made)->sleeps() && sys::now() < limit;) {
      std::this_thread::yield();
    }
    ASSERT_TRUE((*made)->sleeps());
    ASSERT_TRUE(runtime_->post(0, [this] { EXPECT_TRUE(leave_.take()); }));
    EXPECT_TRUE(told.take());
    leave_.give();
  }
}

TEST_F(StallWatchTest, AServerThatOutlivesItsRuntimeWatchesNothing) {
  (void)listen();
  runtime_.reset();
  server_.reset();
}

}  // namespace
}  // namespace weft::serve
