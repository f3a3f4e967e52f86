// SPDX-License-Identifier: MIT
#include "weft/serve/session/record_log.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::kLong;

struct RecordLines {
  std::mutex mutex;
  std::string text;

  logging::LogOptions options() {
    logging::LogOptions options;
    options.output = [this](std::string_view lines) {
      const std::lock_guard lock(mutex);
      text += lines;
    };
    return options;
  }
  std::size_t count(std::string_view part) {
    const std::lock_guard lock(mutex);
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }
};

TEST(RecordLog, ARecordIsALineOfItsComponent) {
  RecordLines lines;
  const auto log = logging::Log::make(lines.options()).value();
  const LogSink sink = log_records(*log).value();
  EXPECT_TRUE(log->set_level("serve.session", logging::Level::off));
  LogRecord record;
  record.event = LogEvent::session_closed;
  record.level = LogLevel::error;
  sink(record);  // its component is off
  record.event = LogEvent::connection_rejected;
  record.core = 3;
  record.peer = "a peer\nlevel=info";
  record.reason = "full";
  sink(record);
  record.event = LogEvent::core_stalled;
  record.what = "stuck";
  sink(record);
  ASSERT_TRUE(log->flush_until(sys::now() + kLong));
  EXPECT_EQ(lines.count("\n"), 2U);
  EXPECT_EQ(lines.count(" level=error component=serve.admission event=connection_rejected core=3 "
                        "peer=\"a peer\\nlevel=info\" reason=full\n"),
            1U);
  EXPECT_EQ(lines.count(" component=serve.core event=core_stalled core=3 "), 1U);
}

TEST(RecordLog, ASinkOutlivesItsLog) {
  RecordLines lines;
  auto log = logging::Log::make(lines.options()).value();
  const LogSink sink = log_records(*log).value();
  log.reset();
  sink({});
  EXPECT_EQ(lines.count("\n"), 0U);
}

using RecordLogServerTest = test::ServerTest;

TEST_F(RecordLogServerTest, TheSinkWritesALineForEachSession) {
  RecordLines lines;
  {
    ServerOptions options;
    options.log = log_to_stderr(lines.options()).value();
    options.stall_after = Duration::zero();  // a turn that another program holds up has no line
    script_.on_frame = echo;
    make_server(options);
    options = {};
    const std::string endpoint = listen();
    for (int i = 0; i < 3; ++i) {
      Client client(endpoint);
      client.send(1, "served");
      EXPECT_EQ(client.receive(), "served");
    }
    ASSERT_TRUE(server_->stop(sys::now() + kLong));
    server_.reset();
    runtime_.reset();
  }
  EXPECT_EQ(lines.count("\n"), 3U);
  EXPECT_EQ(lines.count(" component=serve.session event=session_closed core="), 3U);
}

}  // namespace
}  // namespace weft::serve
