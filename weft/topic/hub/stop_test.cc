// SPDX-License-Identifier: MIT
// A hub that stops while members are at work, and hosts again; a second hub of the same store.
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "weft/sys/path.h"
#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

class HubStopTest : public HubTest {
 protected:
  std::unique_ptr<Hub> host() {
    auto hub = HubTest::host();
    EXPECT_NE(hub, nullptr) << error_.message();
    return hub;
  }
};

TEST_F(HubStopTest, AHubThatStopsUnderAFloodLosesNothingAcknowledged) {
  StreamSettings settings;
  settings.survives = Survives::process;
  constexpr std::uint64_t kMessages = 3000;
  std::atomic<std::uint64_t> answered{0};
  std::map<std::string, std::uint64_t> acknowledged;  // the publisher's until it is joined
  std::thread publisher([&] {
    TestMember m(context_, Hub::endpoint(directory_));
    EXPECT_EQ(m.declare("s", settings), Errc::ok);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      const std::string id = "n" + std::to_string(i);
      OwnedOp answer;
      do {  // the hub may be away: the same message again
        answer = m.request(TestMember::append_op("s", "a", id, id), 200ms);
      } while (answer.op.error() == Errc::timed_out);
      EXPECT_EQ(answer.op.error(), Errc::ok) << as_text(answer.op.body);
      acknowledged[id] = answer.op.number;
      answered.store(i + 1);
    }
  });
  std::thread reader([&] {  // a consumer comes and goes meanwhile
    while (answered.load() < kMessages) {
      TestMember m(context_, Hub::endpoint(directory_));
      const std::string text = write_settings(ConsumerSettings{});
      Op consume;
      consume.kind = OpKind::consume;
      consume.name = "s";
      consume.key = "c";
      consume.body = as_bytes(text);
      consume.number = 100;
      (void)m.request(consume, 50ms);
      for (int i = 0; i < 20; ++i) {
        const OwnedOp op = m.next(5ms);
        Op ack;
        ack.kind = OpKind::ack;
        ack.name = "s";
        ack.key = "c";
        ack.number = op.op.number;
        ack.flags = OpFlags::quiet;
        (void)m.send(ack);
      }
    }
  });
  int stops = 0;
  for (std::uint64_t next = 200; next < kMessages; next += 400) {
    while (answered.load() < next) {
      std::this_thread::yield();
    }
    ++stops % 2 == 0 ? hub_->stop() : hub_.reset();
    hub_ = host();
    ASSERT_NE(hub_, nullptr);
  }
  publisher.join();
  reader.join();
  EXPECT_GE(stops, 7);
  TestMember m(context_, Hub::endpoint(directory_));
  Op read;
  read.kind = OpKind::read;
  read.name = "s";
  read.number = 2 * kMessages;
  ASSERT_EQ(m.request(read).op.error(), Errc::ok);
  std::map<std::string, std::uint64_t> stored;
  for (OwnedOp op = m.next(); op.op.kind == OpKind::delivery; op = m.next()) {
    EXPECT_TRUE(stored.emplace(as_text(op.op.body), op.op.number).second);
  }
  EXPECT_EQ(stored.size(), acknowledged.size());
  for (const auto& [id, sequence] : acknowledged) {
    const auto found = stored.find(id);
    EXPECT_TRUE(found != stored.end() && found->second == sequence)
        << id << " at " << sequence << ", stored at " << (found == stored.end() ? 0 : found->second);
  }
}

TEST_F(HubStopTest, StopTwiceAndAStopWithNobodyThereReturn) {
  hub_->stop();
  hub_->stop();
  EXPECT_EQ(hub_->ended(), Error());
  auto again = host();
  ASSERT_NE(again, nullptr);
}

TEST_F(HubStopTest, AContextThatShutsDownEndsTheHub) {
  auto context = std::make_unique<Context>();
  hub_.reset();
  auto hub = Hub::host(*context, options_);
  ASSERT_TRUE(hub);
  context->shut_down();
  (*hub)->stop();
  hub->reset();
  hub_ = host();
  EXPECT_NE(hub_, nullptr);
}

// The kernel drops the POSIX locks of a process when it closes any descriptor of the file.
TEST_F(HubStopTest, ASecondHubOfAStoreIsRefusedAlsoWhenTheDirectoryOfTheFirstIsGone) {
  const std::string base = *sys::make_private_directory();
  HubOptions options = options_;
  options.directory = base + "/run";
  options.store = base + "/store.db";
  auto first = Hub::host(context_, options);
  ASSERT_TRUE(first) << first.error().message();
  for (int pass = 0; pass < 2; ++pass) {  // the first refusal must not drop a lock
    std::filesystem::remove_all(options.directory);
    EXPECT_EQ(Hub::host(context_, options).error(), Errc::conflict);
    options.directory = base + "/other";
  }
  (*first)->stop();
  EXPECT_TRUE(Hub::host(context_, options));
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace weft::topic
