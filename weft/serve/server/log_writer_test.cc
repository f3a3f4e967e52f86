// SPDX-License-Identifier: MIT
#include "weft/serve/server/log_writer.h"

#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/serve/server/test_client.h"
#include "weft/serve/session/test_log.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::kLong;
using test::read_log_line;
using test::Signal;

struct Output {
  std::mutex mutex;
  std::string text;
  LogWriterOptions options() {
    LogWriterOptions options;
    options.output = [this](std::string_view lines) {
      const std::lock_guard lock(mutex);
      text += lines;
    };
    return options;
  }
};
std::vector<test::LogLine> lines_of(const std::string& text) {
  std::vector<test::LogLine> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_NE(end, std::string::npos);
    const auto line = read_log_line(std::string_view(text).substr(at, end - at));
    EXPECT_TRUE(line) << text.substr(at, end - at);
    lines.push_back(line.value_or(test::LogLine()));
    at = end + 1;
  }
  return lines;
}

TEST(LogWriter, WritesEveryLineOfEveryThreadWhole) {
  Output output;
  LogWriterOptions options = output.options();
  options.lines = {};
  constexpr unsigned kLines = 500;
  {
    const auto writer = LogWriter::make(options);
    ASSERT_TRUE(writer);
    std::vector<std::thread> threads;
    for (unsigned core = 0; core < 2; ++core) {
      threads.emplace_back([&writer, core] {
        for (unsigned i = 0; i < kLines; ++i) {
          LogRecord record;
          record.core = core;
          record.counts.frames_in = i;
          (*writer)->write(record);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
  unsigned next[2] = {};
  for (const test::LogLine& line : lines_of(output.text)) {
    unsigned& count = next[line.at("core") == u"1" ? 1 : 0];
    const std::string expected = std::to_string(count++);
    EXPECT_EQ(line.at("frames_in"), std::u16string(expected.begin(), expected.end()));
  }
  EXPECT_EQ(next[0], kLines);
  EXPECT_EQ(next[1], kLines);
}

TEST(LogWriter, LinesThatComeTooFastAreSuppressedCountedAndReported) {
  Output output;
  LogWriterOptions options = output.options();
  options.lines = {1, 3};
  std::uint64_t suppressed = 0;
  {
    const auto writer = LogWriter::make(options);
    ASSERT_TRUE(writer);
    for (int i = 0; i < 50; ++i) {
      (*writer)->write({});
    }
    suppressed = (*writer)->suppressed();
  }
  EXPECT_GT(suppressed, 0u);
  EXPECT_LE(suppressed, 47u);
  std::uint64_t reported = 0;
  std::uint64_t written = 0;
  for (const test::LogLine& line : lines_of(output.text)) {
    if (line.at("event") == u"suppressed") {
      const std::u16string& lines = line.at("lines");
      reported += std::stoul(std::string(lines.begin(), lines.end()));
    } else {
      ++written;
    }
  }
  EXPECT_EQ(reported, suppressed);
  EXPECT_EQ(written + reported, 50u);
}

TEST(LogWriter, AnOutputThatDoesNotTakeItsLinesDelaysNoCaller) {
  Signal stuck;
  Signal proceed;
  LogWriterOptions options;
  options.lines = {};
  options.pending_max = 1000;
  bool first = true;
  std::size_t written = 0;
  options.output = [&](std::string_view lines) {
    if (std::exchange(first, false)) {
      stuck.give();
      EXPECT_TRUE(proceed.take());
    }
    written += lines.size();
  };
  auto writer = LogWriter::make(options);
  ASSERT_TRUE(writer);
  (*writer)->write({});
  ASSERT_TRUE(stuck.take());
  for (int i = 0; i < 100; ++i) {
    (*writer)->write({});
  }
  EXPECT_GT((*writer)->suppressed(), 50u);
  proceed.give();
  writer = Error(Errc::closed);
  EXPECT_LT(written, 2000u);
}

using LogWriterServerTest = test::ServerTest;

TEST_F(LogWriterServerTest, TheSinkWritesALineForEachSession) {
  Output output;
  {
    ServerOptions options;
    options.log = log_to_stderr(output.options()).value();
    options.stall_after = Duration::zero();  // a turn that another program holds up has no line
    script_.on_frame = echo;
    make_server(options);
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
  EXPECT_EQ(lines_of(output.text).size(), 3u);
}

}  // namespace
}  // namespace weft::serve
