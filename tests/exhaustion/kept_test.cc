// SPDX-License-Identifier: MIT
// Kept topics without memory: the hub's session, and a handle of the program, whose allocations fail one by one.
#include <cstdlib>
#include <filesystem>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "tests/exhaustion/walk.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/topic/hub/session.h"
#include "weft/topic/topics.h"

namespace weft::topic {
namespace {

using namespace std::chrono_literals;
using weft::test::FailingMemory;
using weft::test::made;
using weft::test::OthersFailingMemory;
using weft::test::walk;

class KeptExhaustion : public testing::Test {
 protected:
  KeptExhaustion() {
    if (std::filesystem::exists("/dev/shm")) {  // a walk makes its store anew some hundred times
      ::setenv("TMPDIR", "/dev/shm", 1);
    }
    directory_ = *sys::make_private_directory();
  }
  ~KeptExhaustion() override { std::filesystem::remove_all(directory_); }
  Topics open() {
    TopicsOptions options;
    options.runtime_directory = directory_;
    return *Topics::open(context_, options);
  }

  std::string directory_;
  Context context_;
};

store::Now at(int ms) {
  return {WallTime(1'700'000'000s + std::chrono::milliseconds(ms)), Instant(1h + std::chrono::milliseconds(ms))};
}

// A member of a session without a socket. Its own allocations never fail.
struct Member {
  explicit Member(FailingMemory& with) : memory(with) {}
  FailingMemory& memory;
  HubSession* session = nullptr;
  std::uint32_t id = 0;
  std::set<std::uint32_t> accepted;  // ids whose answer was ok
  std::vector<std::uint64_t> delivered;

  HubSession::Sent take(const Message& message) {
    memory.end();
    if (const auto op = parse_op(message.bytes())) {
      if (op->kind == OpKind::answer && op->error() == Errc::ok) {
        accepted.insert(op->id);
      } else if (op->kind == OpKind::delivery) {
        delivered.push_back(op->number);
      }
    }
    memory.resume();
    return HubSession::Sent::yes;
  }
  std::uint32_t say(Op op, int ms) {
    memory.end();
    op.id = ++id;
    std::vector<std::uint8_t> bytes(encoded_size(op));
    encode_op(op, bytes);
    memory.resume();
    session->handle("member", bytes, at(ms));
    return op.id;
  }
};

// A session that throws ends its hub; the next one finds the answered messages, and none twice.
TEST_F(KeptExhaustion, WhatAHubAnsweredIsKeptAlsoWhenItsMemoryEnds) {
  StreamSettings settings;
  settings.survives = Survives::process;
  const std::string text = write_settings(settings);
  const std::string consumer = write_settings(ConsumerSettings{});
  const std::string path = directory_ + "/store.db";
  std::size_t lives = 0;
  walk([&](FailingMemory& memory) {
    memory.end();
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path + suffix);
    }
    Member member(memory);
    HubCounters counters;
    HubOptions options;
    std::set<std::uint32_t> appends;
    memory.resume();
    try {
      auto store = store::Store::open({path}, at(0));
      if (made(store)) {
        HubSession session(
            *std::move(store), options, at(0),
            [&member](const std::string&, Message& message) { return member.take(message); }, counters);
        member.session = &session;
        (void)member.say({.kind = OpKind::declare, .name = "s", .body = as_bytes(text)}, 1);
        (void)session.finish_turn(at(1));
        for (int turn = 2; turn < 5; ++turn) {
          for (const std::string topic : {"a", "b", "delayed"}) {
            Op append{.kind = OpKind::append, .name = "s", .key = topic, .message_id = "", .body = as_bytes("body")};
            if (topic == "delayed") {  // until the next turn
              append.flags = OpFlags::delayed;
              append.delay_ns = 1'000'000;
            }
            const std::uint32_t id = member.say(append, turn);
            memory.end();
            appends.insert(id);
            memory.resume();
          }
          (void)session.finish_turn(at(turn));
        }
        (void)member.say({.kind = OpKind::consume, .number = 10, .name = "s", .key = "c", .body = as_bytes(consumer)},
                         5);
        (void)session.finish_turn(at(5));
        (void)member.say({.kind = OpKind::ack, .number = 1, .name = "s", .key = "c"}, 6);
        (void)member.say({.kind = OpKind::lease, .number = 1'000'000, .name = "l"}, 6);
        (void)session.finish_turn(at(6));
        session.drop_client("member", at(6));
        (void)session.finish_turn(at(7));
      }
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(memory.failed());
    }
    memory.end();
    ++lives;
    std::size_t accepted = 0;
    for (const std::uint32_t id : appends) {
      accepted += member.accepted.count(id);
    }
    auto store = store::Store::open({path}, at(10));
    ASSERT_TRUE(store) << store.error().text();
    if (const store::StoredStream* stream = (*store)->find("s"); stream != nullptr) {
      const std::uint64_t kept = stream->next() - 1 + stream->delayed().count();
      EXPECT_GE(kept, accepted);
      EXPECT_LE(kept, 9u);
    } else {
      EXPECT_EQ(accepted, 0u);
    }
  });
  EXPECT_GT(lives, 100u);
}

TEST_F(KeptExhaustion, ARefusedCallMayBeRepeated) {
  Topics topics = open();
  const StreamOptions declared{.name = "s", .survives = Survives::process};
  Stream before = *topics.stream(declared);
  std::uint64_t published = 0;
  walk([&](FailingMemory& memory) {
    auto stream = topics.stream(declared);
    if (made(stream)) {
      published += made(stream->publish("a", "x")) ? 1 : 0;
      auto later = stream->publish_later("a", "y");
      published += made(later) && made(later->wait()) ? 1 : 0;
      auto consumer = stream->consumer("c");
      if (made(consumer)) {
        if (auto delivery = consumer->next_until(sys::now() + 10s); made(delivery)) {
          delivery->ack();
        }
      }
      auto reader = stream->read({.from = From::last()});
      if (made(reader)) {
        (void)made(reader->next_until(sys::now() + 10s));
      }
      (void)made(stream->info());
    }
    auto bucket = topics.key_value("b", {.survives = Survives::process});
    if (made(bucket)) {
      (void)made(bucket->put("k", "v"));
      (void)made(bucket->keys());
    }
    memory.end();
    const auto again = before.publish("a", "z");
    ASSERT_TRUE(again) << again.error().text();
    ++published;
  });
  const KeptStatistics all = topics.kept_statistics();
  EXPECT_EQ(all.appended, all.acknowledged + all.refused + all.unknown + all.unsent + all.in_flight);
  EXPECT_GE(before.info()->next - 1, published);
}

// An allocation of the handle's loop, of the hub or of an I/O thread fails: a message may take longer, and a hub may
// end; each acknowledged message is stored once.
TEST_F(KeptExhaustion, WhatWasAcknowledgedIsThereWhenAnotherThreadHasNoMemory) {
  Topics topics = open();
  Stream stream = *topics.stream({.name = "s", .survives = Survives::process});
  std::set<std::string> kept;
  for (std::size_t spared = 0; spared < 300; ++spared) {
    SCOPED_TRACE(spared);
    const std::string text = "m" + std::to_string(spared);
    bool failed = false;
    {
      OthersFailingMemory memory(spared % 60);
      (void)stream.publish("a", text, {.id = text, .deadline = sys::now() + 500ms});
      memory.end();
      failed = memory.failed();
    }
    const auto again = stream.publish("a", text, {.id = text});
    ASSERT_TRUE(again) << again.error().text() << (failed ? " after a failure" : "");
    kept.insert(text);
  }
  Reader reader = *stream.read();
  std::set<std::string> stored;
  while (true) {
    auto message = reader.next_stored();
    ASSERT_TRUE(message) << message.error().text();
    if (!*message) {
      break;
    }
    EXPECT_TRUE(stored.emplace((*message)->text()).second) << (*message)->text() << " is stored twice";
  }
  EXPECT_EQ(stored, kept);
}

}  // namespace
}  // namespace weft::topic
