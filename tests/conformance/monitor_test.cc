// SPDX-License-Identifier: MIT
// The events of a socket's endpoints and connections.
#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class Monitoring : public Conformance {
 protected:
  // The next event that is not about an attempt under way.
  static MonitorEvent next(Socket& socket) {
    for (const Instant end = sys::now() + kLong;;) {
      auto event = socket.next_event(time_left(end, sys::now()));
      EXPECT_TRUE(event) << event.error().message();
      if (!event) {
        return {EventKind::closed, event.error().message(), event.error(), {}};
      }
      if (event->kind != EventKind::connect_delayed) {
        return std::move(event).value();
      }
    }
  }
};
WEFT_EVERY_TRANSPORT(Monitoring);
class MonitoringInProcess : public Monitoring {};
WEFT_TRANSPORTS_WHERE(MonitoringInProcess, in_process);
class MonitoringOverStreams : public Monitoring {};
WEFT_TRANSPORTS_WHERE(MonitoringOverStreams, over_streams);

TEST_P(Monitoring, TellsOfTheEndpointFromBindToUnbind) {
  Socket socket = make(SocketType::rep);
  ASSERT_TRUE(socket.watch_events());
  const std::string endpoint = bind(socket);
  const MonitorEvent listening = next(socket);
  EXPECT_EQ(listening.kind, EventKind::listening);
  EXPECT_EQ(listening.endpoint, endpoint);
  Socket another = make(SocketType::rep);
  ASSERT_TRUE(another.watch_events());
  EXPECT_FALSE(another.bind(endpoint));
  const MonitorEvent failed = next(another);
  EXPECT_EQ(failed.kind, EventKind::bind_failed);
  EXPECT_EQ(failed.reason, Errc::address_in_use);
  ASSERT_TRUE(socket.unbind(endpoint));
  const MonitorEvent closed = next(socket);
  EXPECT_EQ(closed.kind, EventKind::closed);
  EXPECT_EQ(closed.endpoint, endpoint);
}

TEST_P(MonitoringOverStreams, TellsOfAConnectionFromBothEndsInOrder) {
  Socket bound = make(SocketType::pair);
  Socket connected = make(SocketType::pair);
  ASSERT_TRUE(bound.watch_events());
  ASSERT_TRUE(connected.watch_events());
  const std::string endpoint = bind(bound);
  connect(connected, endpoint);
  EXPECT_EQ(next(bound).kind, EventKind::listening);
  const MonitorEvent accepted = next(bound);
  EXPECT_EQ(accepted.kind, EventKind::accepted);
  const MonitorEvent greeted = next(bound);
  EXPECT_EQ(greeted.kind, EventKind::handshake_succeeded);
  EXPECT_EQ(accepted.other, greeted.other);
  const std::string scheme = endpoint.substr(0, endpoint.find("://") + 3);
  EXPECT_TRUE(accepted.other.starts_with(scheme)) << accepted.other;
  EXPECT_EQ(accepted.other == scheme, scheme == "ipc://") << "an ipc peer has no name";
  EXPECT_EQ(next(connected).kind, EventKind::connected);
  const MonitorEvent succeeded = next(connected);
  EXPECT_EQ(succeeded.kind, EventKind::handshake_succeeded);
  EXPECT_EQ(succeeded.endpoint, endpoint);
  bound.close();
  const MonitorEvent lost = next(connected);
  EXPECT_EQ(lost.kind, EventKind::disconnected);
  EXPECT_EQ(lost.reason, Errc::connection_closed);
  const MonitorEvent retried = next(connected);
  EXPECT_EQ(retried.kind, EventKind::connect_retried);
  EXPECT_GT(retried.delay, 0ms);
  const MonitorEvent failed = next(connected);
  EXPECT_EQ(failed.kind, EventKind::connect_failed);
  EXPECT_FALSE(failed.reason == Errc::ok);
  EXPECT_EQ(next(connected).kind, EventKind::connect_retried);
}

TEST_P(MonitoringOverStreams, TellsWhyAHandshakeFailed) {
  Socket pub = make(SocketType::pub);
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pub.watch_events());
  ASSERT_TRUE(pull.set(option::linger, 0ms));
  connect(pull, bind(pub));
  EXPECT_EQ(wait_for_event(pub, EventKind::handshake_failed).reason, Errc::incompatible_peer);
  EXPECT_EQ(pub.statistics()->handshakes, 0u);
}

TEST_P(MonitoringInProcess, InsideTheProcessOnlyTypesWithOtherMessagesAreRefused) {
  Socket channel = make(SocketType::channel);
  Socket pull = make(SocketType::pull);
  EXPECT_EQ(pull.connect(bind(channel)).error(), Errc::incompatible_peer);
  Socket pair = make(SocketType::pair);
  Socket dealer = make(SocketType::dealer);
  connect(dealer, bind(pair));
  ASSERT_TRUE(dealer.send("no handshake compares types"));
  EXPECT_EQ(pair.recv().value().text(), "no handshake compares types");
}

TEST_P(Monitoring, TimesOutWithoutNewsAndEndsWithTheSocket) {
  Socket socket = make(SocketType::pair);
  EXPECT_EQ(socket.next_event(0ms).error(), Errc::timed_out);
  EXPECT_EQ(socket.next_event(1ms).error(), Errc::timed_out);
  (void)bind(socket);
  EXPECT_EQ(next(socket).kind, EventKind::listening);
  socket.close();
  Error end;
  while (end == Errc::ok) {
    end = socket.next_event(kLong).error();
  }
  EXPECT_EQ(end, Errc::closed);
}

TEST_P(MonitoringOverStreams, StatisticsCountConnectionsThatNobodyWatches) {
  Socket bound = make(SocketType::pull);
  std::string endpoint;
  {
    Socket connected = make(SocketType::push);
    endpoint = bind(bound);
    connect(connected, endpoint);
    ASSERT_TRUE(connected.send("hello"));
    EXPECT_EQ(bound.recv().value().text(), "hello");
    EXPECT_EQ(bound.statistics()->binds, 1u);
    EXPECT_EQ(bound.statistics()->accepted, 1u);
    EXPECT_EQ(bound.statistics()->handshakes, 1u);
    EXPECT_EQ(bound.statistics()->peers, 1u);
    EXPECT_EQ(connected.statistics()->connected, 1u);
    EXPECT_EQ(connected.statistics()->handshakes, 1u);
    EXPECT_EQ(connected.statistics()->disconnected, 0u);
  }
  ASSERT_TRUE(bound.watch_events());
  while (bound.statistics()->disconnected == 0 && !HasFailure()) {
    EXPECT_EQ(next(bound).kind, EventKind::disconnected);
  }
  EXPECT_EQ(bound.statistics()->disconnected, 1u);
  ASSERT_TRUE(bound.unbind(endpoint));
  Socket alone = make(SocketType::push);
  connect(alone, endpoint);
  ASSERT_TRUE(alone.watch_events());
  while (alone.statistics()->reconnects == 0 && !HasFailure()) {
    (void)next(alone);
  }
  EXPECT_GE(alone.statistics()->connects_failed, 1u);
  EXPECT_EQ(alone.statistics()->peers, 0u);
}

TEST_P(MonitoringInProcess, StatisticsSayWhatIsQueued) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(push.send("waits"));
  }
  EXPECT_EQ(push.statistics()->queued_out, 0u);  // handed over: they wait at the other socket
  EXPECT_EQ(push.statistics()->sent, 3u);
  EXPECT_EQ(pull.statistics()->queued_in, 3u);
  EXPECT_EQ(pull.statistics()->peers, 1u);
  EXPECT_EQ(pull.recv().value().text(), "waits");
  EXPECT_EQ(pull.statistics()->queued_in, 2u);
  EXPECT_EQ(pull.statistics()->queued_out, 0u);
}

TEST_P(Monitoring, EventsFromBeforeAnybodyWatchedAreNotKept) {
  Socket socket = make(SocketType::pair);
  (void)bind(socket);
  EXPECT_EQ(socket.next_event(0ms).error(), Errc::timed_out);
}

TEST_P(MonitoringOverStreams, PipeStatisticsCountTheMessagesOfTheBatchToo) {
  constexpr int kMark = 10;
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 1));
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::send_high_water_mark, kMark));
  ASSERT_TRUE(push.set(option::linger, 0ms));
  connect(push, bind(pull));
  ASSERT_TRUE(push.watch_events());
  const std::string text(100, 'x');
  const Instant end = sys::now() + kLong;
  for (std::uint64_t queued = 0; queued <= kMark;) {
    ASSERT_LT(sys::now(), end);
    while (push.try_send(as_bytes(text))) {
    }
    ASSERT_TRUE(push.report_pipes());
    queued = wait_for_event(push, EventKind::pipe_statistics).queued_out;
  }
  const auto first = pull.recv();
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->text(), text);
}

}  // namespace
}  // namespace weft::conformance
