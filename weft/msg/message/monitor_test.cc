// SPDX-License-Identifier: MIT
#include "weft/msg/message/monitor.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

TEST(Monitor, KeepsNothingUntilItIsEnabled) {
  Monitor monitor;
  monitor.emit({EventKind::listening, "a"});
  EXPECT_EQ(monitor.receive(0ms).error(), Errc::timed_out);  // enables
  monitor.emit({EventKind::accepted, "b"});
  const auto event = monitor.receive(0ms);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, EventKind::accepted);
  EXPECT_EQ(event->endpoint, "b");
}

TEST(Monitor, GivesEventsInOrderWithTheirParticulars) {
  Monitor monitor;
  monitor.enable();
  monitor.emit({EventKind::connect_failed, "a", Error(Errc::connection_failed, "refused", 111)});
  monitor.emit({EventKind::connect_retried, "b", Error(), 7ms});
  const auto first = monitor.receive(0ms);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, EventKind::connect_failed);
  EXPECT_EQ(first->reason.os_errno(), 111);
  const auto second = monitor.receive(0ms);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->kind, EventKind::connect_retried);
  EXPECT_EQ(second->delay, 7ms);
}

TEST(Monitor, DropsTheNewestBeyondItsBoundAndCountsThem) {
  Monitor monitor;
  monitor.enable();
  for (std::size_t i = 0; i < Monitor::kEventsMax + 3; ++i) {
    monitor.emit({EventKind::accepted, std::to_string(i)});
  }
  EXPECT_EQ(monitor.dropped(), 3u);
  EXPECT_EQ(monitor.receive(0ms)->endpoint, "0");
  monitor.emit({EventKind::accepted, "room again"});
  EXPECT_EQ(monitor.dropped(), 3u);
}

TEST(Monitor, TheLongestTimeToWaitLastsUntilTheEvent) {
  for (const Duration longest : {Duration::max(), Duration::max() - 1ns, Duration::min()}) {
    Monitor monitor;
    monitor.enable();
    std::thread emitter([&] { monitor.emit({EventKind::accepted, "x"}); });
    EXPECT_TRUE(monitor.receive(longest));
    emitter.join();
  }
}

TEST(Monitor, AReceiverIsWokenByAnEventAndByTheEnd) {
  Monitor monitor;
  monitor.enable();
  std::thread emitter([&] { monitor.emit({EventKind::accepted, "x"}); });
  EXPECT_TRUE(monitor.receive(-1ms));
  emitter.join();
  std::thread ender([&] { monitor.end(Errc::closed); });
  EXPECT_EQ(monitor.receive(-1ms).error(), Errc::closed);
  ender.join();
}

TEST(Monitor, EventsBeforeTheEndAreGivenBeforeTheEnd) {
  Monitor monitor;
  monitor.enable();
  monitor.emit({EventKind::accepted, "x"});
  monitor.end(Errc::terminated);
  EXPECT_TRUE(monitor.receive(-1ms));
  EXPECT_EQ(monitor.receive(-1ms).error(), Errc::terminated);
  monitor.end(Errc::closed);
  EXPECT_EQ(monitor.receive(-1ms).error(), Errc::closed);
}

TEST(Monitor, ASinkGetsEachEventAndAtItsEndStopped) {
  Monitor monitor;
  std::vector<EventKind> kinds;
  monitor.set_sink([&](const MonitorEvent& event) {
    kinds.push_back(event.kind);
    return true;
  });
  monitor.emit({EventKind::listening, "a"});
  monitor.emit({EventKind::closed, "a"});
  EXPECT_EQ(monitor.receive(0ms).error(), Errc::timed_out);  // the sink's events do not enter the queue
  monitor.set_sink(nullptr);
  monitor.emit({EventKind::listening, "b"});
  EXPECT_EQ(kinds, (std::vector{EventKind::listening, EventKind::closed, EventKind::stopped}));
}

TEST(Monitor, AnEventThatASinkRefusesIsCounted) {
  Monitor monitor;
  monitor.set_sink([](const MonitorEvent& event) { return event.kind != EventKind::accepted; });
  monitor.emit({EventKind::listening, "a"});
  monitor.emit({EventKind::accepted, "a"});
  EXPECT_EQ(monitor.dropped(), 1u);
}

TEST(Monitor, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(EventKind::stopped); ++i) {
    const std::string_view name = event_name(static_cast<EventKind>(i));
    EXPECT_NE(name, "unknown event");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(event_name(static_cast<EventKind>(static_cast<int>(EventKind::stopped) + 1)), "unknown event");
}

TEST(Monitor, CountsEventsOfASocketWithoutAWatcher) {
  Monitor monitor;
  monitor.emit({EventKind::accepted, "a"});
  monitor.emit({EventKind::accepted, "b"});
  monitor.enable();
  monitor.emit({EventKind::disconnected, "a"});
  EXPECT_EQ(monitor.count(EventKind::accepted), 2u);
  EXPECT_EQ(monitor.count(EventKind::disconnected), 1u);
  EXPECT_EQ(monitor.count(EventKind::stopped), 0u);
  EXPECT_EQ(monitor.dropped(), 0u);
}

TEST(Monitor, ATimeOutHasTheLastReasonOfAnEndpointThatIsMissing) {
  const auto text = [](Monitor& monitor) {
    const Error error = monitor.timed_out();
    EXPECT_EQ(error, Errc::timed_out);
    return std::string(error.text());
  };
  Monitor monitor;
  EXPECT_EQ(text(monitor), "");
  monitor.emit(EventKind::connect_failed, "tcp://a:1", Error(Errc::connection_failed, "connect"));
  EXPECT_EQ(text(monitor), "last: tcp://a:1: connection failed: connect");
  monitor.emit(EventKind::handshake_failed, "tcp://b:2", Error(Errc::incompatible_peer));
  EXPECT_EQ(text(monitor), "last: tcp://b:2: incompatible peer");
  monitor.emit(EventKind::handshake_succeeded, "tcp://a:1");
  EXPECT_EQ(text(monitor), "last: tcp://b:2: incompatible peer");
  monitor.emit(EventKind::handshake_succeeded, "tcp://b:2");
  EXPECT_EQ(text(monitor), "");
}

}  // namespace
}  // namespace weft
