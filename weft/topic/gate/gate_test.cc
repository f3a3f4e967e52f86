// SPDX-License-Identifier: MIT
// The parts of a gate without connections. tests/topic/gate_test.cc has servers.
#include "weft/topic/gate/gate.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/random.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/poll.h"
#include "weft/topic/gate/gate_interest.h"
#include "weft/topic/gate/gate_queue.h"
#include "weft/topic/gate/outbox.h"
#include "weft/topic/gate/subject_topic.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

Filter tokens(std::string_view text) { return Filter::parse(text).value(); }

TEST(GateInterest, AFilterIsSubscribedWithItsFirstHandleAndEndsWithItsLast) {
  GateInterest interest;
  const std::uint64_t number = interest.want(tokens("a.*")).value();
  EXPECT_NE(number, 0U);
  EXPECT_EQ(interest.want(tokens("a.*")).value(), 0U);
  EXPECT_EQ(interest.unwant(tokens("a.*")), 0U);
  EXPECT_EQ(interest.unwant(tokens("b")), 0U);
  EXPECT_EQ(interest.unwant(tokens("a.*")), number);
  EXPECT_EQ(interest.unwant(tokens("a.*")), 0U);
  EXPECT_EQ(interest.size(), 0U);
}

TEST(GateInterest, TheOldestFilterThatMatchesBringsTheMessage) {
  GateInterest interest;
  const std::uint64_t one = interest.want(tokens("a.b")).value();
  const std::uint64_t all = interest.want(tokens(">")).value();
  const std::uint64_t star = interest.want(tokens("*.b")).value();
  EXPECT_TRUE(interest.is_first(one, "a.b"));
  EXPECT_FALSE(interest.is_first(all, "a.b"));
  EXPECT_FALSE(interest.is_first(star, "a.b"));
  EXPECT_TRUE(interest.is_first(all, "c.b"));
  EXPECT_FALSE(interest.is_first(star, "c.b"));
  EXPECT_EQ(interest.unwant(tokens("a.b")), one);
  EXPECT_TRUE(interest.is_first(all, "a.b"));
  EXPECT_EQ(interest.unwant(tokens(">")), all);
  EXPECT_TRUE(interest.is_first(star, "a.b"));
}

// More tokens filters than the index decides at once.
TEST(GateInterest, OfThousandsOfFiltersOneBringsTheMessage) {
  GateInterest interest;
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 2000; ++i) {
    numbers.push_back(interest.want(tokens("t." + std::to_string(i) + ".>")).value());
  }
  const std::uint64_t last = interest.want(tokens("t.*.x")).value();
  EXPECT_TRUE(interest.is_first(numbers[1999], "t.1999.x"));
  EXPECT_FALSE(interest.is_first(last, "t.1999.x"));
  EXPECT_TRUE(interest.is_first(last, "t.2000.x"));
}

TEST(Outbox, OperationsOfEachSizeComeOutInOrderHoweverManyWait) {
  Random random(3);
  Outbox box;
  std::deque<std::string> wanted;
  std::size_t bytes = 0;
  for (int round = 0; round < 200; ++round) {
    for (std::uint64_t i = random.below(200); i != 0; --i) {
      const std::size_t size = random.below(50) == 0 ? random.below(200'000) : random.below(600);
      wanted.emplace_back(size, static_cast<char>('a' + random.below(26)));
      box.append({Outbox::Kind::publish, "topic", {}, {}, as_bytes(wanted.back())});
    }
    if (round % 10 == 0) {
      Outbox other;
      other.swap(box);
      box.swap(other);
      ASSERT_TRUE(other.empty());
    }
    for (std::uint64_t i = round % 20 == 0 ? wanted.size() : random.below(wanted.size() + 1); i != 0; --i) {
      ASSERT_EQ(box.front().subject, "topic");
      ASSERT_EQ(as_text(box.front().body), wanted.front());
      box.pop();
      wanted.pop_front();
    }
    ASSERT_EQ(box.count(), wanted.size());
    ASSERT_EQ(box.empty(), wanted.empty());
    bytes = 0;
    for (const std::string& each : wanted) {
      bytes += each.size();
    }
    ASSERT_GE(box.bytes(), bytes);
    ASSERT_LE(box.bytes(), bytes + wanted.size() * 64);
  }
}

TEST(Outbox, OperationsComeOutWholeAndInOrder) {
  Outbox box;
  const std::string large(100'000, 'x');
  box.append({Outbox::Kind::publish, "a.b", "re", as_bytes("headers"), as_bytes(large)});
  box.append({Outbox::Kind::want, "f", {}, {}, {}});
  EXPECT_EQ(box.count(), 2U);
  EXPECT_GT(box.bytes(), large.size());
  Outbox taken;
  taken.swap(box);
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.bytes(), 0U);
  const Outbox::Operation first = taken.front();
  EXPECT_EQ(first.kind, Outbox::Kind::publish);
  EXPECT_EQ(first.subject, "a.b");
  EXPECT_EQ(first.reply, "re");
  EXPECT_EQ(as_text(first.headers), "headers");
  EXPECT_EQ(as_text(first.body), large);
  taken.pop();
  EXPECT_EQ(taken.front().kind, Outbox::Kind::want);
  EXPECT_EQ(taken.front().subject, "f");
  EXPECT_TRUE(taken.front().body.empty());
  taken.pop();
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(taken.bytes(), 0U);
}

// Whether the event was signalled; not any longer afterwards.
bool take_signal(sys::EventFd& event) {
  sys::PollFd fd{event.fd(), sys::Interest::readable};
  const bool signalled = sys::poll_fds({&fd, 1}, Duration::zero()).value() != 0;
  event.drain();
  return signalled;
}

Outbox::Operation message(std::string_view body) { return {Outbox::Kind::publish, "a", {}, {}, as_bytes(body)}; }

TEST(GateQueue, TheFirstOperationOfABatchWakesTheCore) {
  GateQueue queue(0);
  EXPECT_TRUE(queue.append(message("1"), queue.bytes_max()).value());
  EXPECT_FALSE(queue.append(message("2"), queue.bytes_max()).value());
  queue.take_batch();
  EXPECT_TRUE(queue.append(message("3"), queue.bytes_max()).value());
  queue.not_woken();
  EXPECT_TRUE(queue.append(message("4"), queue.bytes_max()).value());
}

TEST(GateQueue, ABatchIsSentBeforeTheNextOneAndCountsAsQueued) {
  GateQueue queue(0);
  for (const char* const each : {"1", "2"}) {
    ASSERT_TRUE(queue.append(message(each), queue.bytes_max()));
  }
  queue.take_batch();
  ASSERT_TRUE(queue.append(message("3"), queue.bytes_max()));
  queue.take_batch();
  std::string sent;
  while (!queue.batch_is_empty()) {
    sent += as_text(queue.front().body);
    queue.pop();
    queue.take_batch();
    EXPECT_EQ(queue.counts().queued, 3 - sent.size());
  }
  EXPECT_EQ(sent, "123");
  EXPECT_EQ(queue.counts().published, 3U);
}

TEST(GateQueue, FiltersAreNoMessages) {
  GateQueue queue(0);
  ASSERT_TRUE(queue.append({Outbox::Kind::want, "f", "x", {}, {}}, queue.bytes_max()));
  ASSERT_TRUE(queue.append({Outbox::Kind::unwant, "f", "x", {}, {}}, queue.bytes_max()));
  EXPECT_EQ(queue.counts().published, 0U);
  EXPECT_EQ(queue.counts().queued, 2U);
}

TEST(GateQueue, AFullQueueRefusesAndWakesThoseThatWaitWhenThereIsRoom) {
  GateQueue queue(0);
  const std::string large(queue.bytes_max(), 'x');
  EXPECT_TRUE(queue.expect_room());
  ASSERT_TRUE(queue.append(message(large), queue.bytes_max()));
  EXPECT_EQ(queue.append(message("2"), queue.bytes_max()).error(), Errc::would_block);
  EXPECT_TRUE(queue.append(message("control"), 2 * queue.bytes_max()));
  queue.count_full();
  EXPECT_EQ(queue.counts().published, 3U);
  EXPECT_EQ(queue.counts().dropped_full, 1U);

  EXPECT_FALSE(queue.wake_waiters());  // no caller found the queue full
  EXPECT_FALSE(queue.expect_room());
  EXPECT_TRUE(queue.wake_waiters());
  EXPECT_FALSE(queue.wake_waiters());
  sys::EventFd event = sys::EventFd::make().value();
  queue.add_waiter(event);
  for (int i = 0; i < 2; ++i) {  // until it is removed
    EXPECT_TRUE(queue.wake_waiters());
    EXPECT_TRUE(take_signal(event));
  }
  queue.remove_waiter(event);
  EXPECT_TRUE(queue.wake_waiters());
  EXPECT_FALSE(take_signal(event));
  EXPECT_FALSE(queue.wake_waiters());
}

TEST(GateQueue, NoOperationEntersAfterTheEndAndThoseInItCanBeTaken) {
  GateQueue queue(0);
  ASSERT_TRUE(queue.append(message("1"), queue.bytes_max()));
  queue.end();
  EXPECT_EQ(queue.append(message("2"), queue.bytes_max()).error(), Errc::closed);
  queue.take_batch();
  EXPECT_FALSE(queue.batch_is_empty());
  EXPECT_EQ(queue.counts().published, 1U);
}

TEST(SubjectTopic, TheEnginesOwnSubjectsHaveNoTopic) {
  SubjectTopic topic(Gate::names());
  ASSERT_TRUE(topic.take("a.b"));
  EXPECT_EQ(topic.topic(), "a.b");
  EXPECT_EQ(topic.name().text(), "a.b");
  for (const char* const own : {"_INBOX.1", "$SYS.a", ""}) {
    ASSERT_TRUE(topic.take(own));
    EXPECT_TRUE(topic.name().empty()) << own;
  }
  ASSERT_TRUE(topic.take("a.b"));
  EXPECT_EQ(topic.name().text(), "a.b");
}

}  // namespace
}  // namespace weft::topic
