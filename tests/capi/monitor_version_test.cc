// SPDX-License-Identifier: MIT
// Monitors of the second version: events as parts of 64 bits, both ends' endpoints, and the messages queued per peer.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

struct VersionedEvent {
  std::uint64_t number = 0;
  std::vector<std::uint64_t> values;
  std::string local;
  std::string remote;
};

class MonitorVersions : public CapiTest {
 protected:
  [[nodiscard]] void* open(int type) {
    void* socket = zmq_socket(context_, type);
    const int zero = 0;
    const int long_time = 20'000;
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &long_time, sizeof long_time), 0);
    return socket;
  }
  [[nodiscard]] void* open_reader(int type, const char* endpoint) {
    void* reader = open(type);
    EXPECT_EQ(zmq_connect(reader, endpoint), 0);
    return reader;
  }
  [[nodiscard]] static std::string bind_any(void* socket) {
    EXPECT_EQ(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
    char exact[256] = {};
    std::size_t size = sizeof exact;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, exact, &size), 0);
    return exact;
  }
  [[nodiscard]] static std::string part(void* reader, bool more) {
    zmq_msg_t msg;
    EXPECT_EQ(zmq_msg_init(&msg), 0);
    EXPECT_GE(zmq_msg_recv(&msg, reader, 0), 0) << zmq_strerror(zmq_errno());
    EXPECT_EQ(zmq_msg_more(&msg), more ? 1 : 0);
    std::string text(static_cast<const char*>(zmq_msg_data(&msg)), zmq_msg_size(&msg));
    EXPECT_EQ(zmq_msg_close(&msg), 0);
    return text;
  }
  [[nodiscard]] static std::uint64_t number(void* reader) {
    const std::string text = part(reader, true);
    std::uint64_t value = 0;
    EXPECT_EQ(text.size(), sizeof value);
    std::memcpy(&value, text.data(), std::min(text.size(), sizeof value));
    return value;
  }
  [[nodiscard]] static VersionedEvent next(void* reader) {
    VersionedEvent event;
    event.number = number(reader);
    const std::uint64_t count = number(reader);
    while (event.values.size() < count && !HasFailure()) {
      event.values.push_back(number(reader));
    }
    event.local = part(reader, true);
    event.remote = part(reader, false);
    return event;
  }
  [[nodiscard]] static VersionedEvent wait_for(void* reader, std::uint64_t number) {
    VersionedEvent event;
    do {
      event = next(reader);
    } while (event.number != number && !HasFailure());
    return event;
  }
  static void close(std::initializer_list<void*> sockets) {
    for (void* socket : sockets) {
      EXPECT_EQ(zmq_close(socket), 0);
    }
  }
};

TEST_F(MonitorVersions, TheSecondTellsBothEndsOfAConnection) {
  void* server = open(ZMQ_DEALER);
  void* client = open(ZMQ_DEALER);
  ASSERT_EQ(zmq_socket_monitor_versioned(server, "inproc://server", ZMQ_EVENT_ALL_V2, 2, ZMQ_PAIR), 0);
  ASSERT_EQ(zmq_socket_monitor_versioned(client, "inproc://client", ZMQ_EVENT_ALL_V2, 2, ZMQ_PUSH), 0);
  void* of_server = open_reader(ZMQ_PAIR, "inproc://server");
  void* of_client = open_reader(ZMQ_PULL, "inproc://client");
  const std::string exact = bind_any(server);
  VersionedEvent event = next(of_server);
  EXPECT_EQ(event.number, std::uint64_t{ZMQ_EVENT_LISTENING});
  ASSERT_EQ(event.values.size(), 1U);
  EXPECT_GT(event.values[0], 2U);
  EXPECT_EQ(event.local, exact);
  EXPECT_EQ(event.remote, "");

  ASSERT_EQ(zmq_connect(client, exact.c_str()), 0);
  const VersionedEvent accepted = next(of_server);
  EXPECT_EQ(accepted.number, std::uint64_t{ZMQ_EVENT_ACCEPTED});
  EXPECT_EQ(accepted.local, exact);
  EXPECT_EQ(accepted.remote.rfind("tcp://127.0.0.1:", 0), 0U);
  event = next(of_client);
  if (event.number == ZMQ_EVENT_CONNECT_DELAYED) {
    EXPECT_EQ(event.values, std::vector<std::uint64_t>{EINPROGRESS});
    EXPECT_EQ(event.local, "");
    EXPECT_EQ(event.remote, exact);
    event = next(of_client);
  }
  EXPECT_EQ(event.number, std::uint64_t{ZMQ_EVENT_CONNECTED});
  EXPECT_EQ(event.local, accepted.remote);
  EXPECT_EQ(event.remote, exact);
  event = next(of_client);
  EXPECT_EQ(event.number, std::uint64_t{ZMQ_EVENT_HANDSHAKE_SUCCEEDED});
  EXPECT_EQ(event.local, accepted.remote);
  EXPECT_EQ(wait_for(of_server, ZMQ_EVENT_HANDSHAKE_SUCCEEDED).remote, accepted.remote);
  close({client});
  EXPECT_EQ(wait_for(of_client, ZMQ_EVENT_MONITOR_STOPPED).values, std::vector<std::uint64_t>{0});
  event = next(of_server);
  EXPECT_EQ(event.number, std::uint64_t{ZMQ_EVENT_DISCONNECTED});
  EXPECT_EQ(event.values, accepted.values);
  EXPECT_EQ(event.remote, accepted.remote);
  close({server, of_server, of_client});
}

TEST_F(MonitorVersions, OfAPublisherTheNumberIsTheTopic) {
  void* socket = open(ZMQ_DEALER);
  ASSERT_EQ(zmq_socket_monitor_versioned(socket, "inproc://monitor", ZMQ_EVENT_ALL_V2, 2, ZMQ_PUB), 0);
  void* reader = open(ZMQ_SUB);
  const std::uint64_t topic = ZMQ_EVENT_CLOSED;
  ASSERT_EQ(zmq_setsockopt(reader, ZMQ_SUBSCRIBE, &topic, sizeof topic), 0);
  ASSERT_EQ(zmq_connect(reader, "inproc://monitor"), 0);
  const std::string exact = bind_any(socket);
  ASSERT_EQ(zmq_unbind(socket, exact.c_str()), 0);
  const VersionedEvent event = next(reader);
  EXPECT_EQ(event.number, topic);
  EXPECT_EQ(event.local, exact);
  close({socket, reader});
}

TEST_F(MonitorVersions, TheFirstIsThatOfTheOlderCall) {
  void* socket = open(ZMQ_DEALER);
  ASSERT_EQ(zmq_socket_monitor_versioned(socket, "inproc://monitor", ZMQ_EVENT_ALL_V1, 1, ZMQ_PUSH), 0);
  void* reader = open_reader(ZMQ_PULL, "inproc://monitor");
  const std::string exact = bind_any(socket);
  const std::string head = part(reader, true);
  std::uint16_t event = 0;
  ASSERT_EQ(head.size(), 6U);
  std::memcpy(&event, head.data(), sizeof event);
  EXPECT_EQ(event, ZMQ_EVENT_LISTENING);
  EXPECT_EQ(part(reader, false), exact);
  close({socket, reader});
}

TEST_F(MonitorVersions, MisuseAnswersAnErrno) {
  void* socket = open(ZMQ_DEALER);
  EXPECT_ERRNO(ENOTSOCK, zmq_socket_monitor_versioned(nullptr, "inproc://x", 1, 2, ZMQ_PAIR));
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_socket_monitor_versioned(socket, "tcp://127.0.0.1:9999", 0, 2, ZMQ_PAIR));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_versioned(socket, "nonsense", 1, 2, ZMQ_PAIR));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_versioned(socket, "inproc://x", 1, 0, ZMQ_PAIR));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_versioned(socket, "inproc://x", 1, 3, ZMQ_PAIR));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_versioned(socket, "inproc://x", ZMQ_EVENT_PIPES_STATS, 1, ZMQ_PAIR));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_versioned(socket, "inproc://x", WEFT_EVENT_BOUND_EXCEEDED, 1, ZMQ_PAIR));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_versioned(socket, "inproc://x", 1, 2, ZMQ_DEALER));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_versioned(socket, "inproc://x", 1, 2, 256));
  EXPECT_EQ(zmq_socket_monitor_versioned(socket, nullptr, 0, 2, ZMQ_PAIR), 0);
  zmq_ctx_shutdown(context_);
  EXPECT_ERRNO(ETERM, zmq_socket_monitor_versioned(socket, "inproc://x", 1, 2, ZMQ_PAIR));
  close({socket});
}

// A program for libzmq asks for ZMQ_EVENT_ALL_V2, and meets no number that libzmq does not have.
TEST_F(MonitorVersions, AMessageBeyondABoundIsAnEventOfOursForThoseThatAskForIt) {
  for (const std::uint64_t asked : {std::uint64_t{WEFT_EVENT_BOUND_EXCEEDED}, std::uint64_t{ZMQ_EVENT_ALL_V2}}) {
    const std::string name = "inproc://" + std::to_string(asked);
    void* pull = open(ZMQ_PULL);
    void* push = open(ZMQ_PUSH);
    const int two = 2;
    ASSERT_EQ(zmq_setsockopt(pull, WEFT_MESSAGE_PARTS_MAX, &two, sizeof two), 0);
    ASSERT_EQ(zmq_socket_monitor_versioned(pull, name.c_str(), asked, 2, ZMQ_PAIR), 0);
    void* reader = open_reader(ZMQ_PAIR, name.c_str());
    const std::string exact = bind_any(pull);
    ASSERT_EQ(zmq_connect(push, exact.c_str()), 0);
    for (int message = 0; message < 2; ++message) {
      for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(zmq_send(push, "p", 1, i < 99 ? ZMQ_SNDMORE : 0), 1);
      }
    }
    ASSERT_EQ(zmq_send(push, "next", 4, 0), 4);
    EXPECT_EQ(part(pull, false), "next");
    close({pull});
    VersionedEvent event = next(reader);
    if (asked == WEFT_EVENT_BOUND_EXCEEDED) {
      EXPECT_EQ(event.number, asked);
      EXPECT_EQ(event.values, std::vector<std::uint64_t>{EMSGSIZE});
      EXPECT_EQ(event.local, exact);
      EXPECT_EQ(event.remote.rfind("tcp://127.0.0.1:", 0), 0U) << event.remote;
    } else {
      while (event.number != ZMQ_EVENT_MONITOR_STOPPED && !HasFailure()) {
        EXPECT_EQ(event.number & ~std::uint64_t{ZMQ_EVENT_ALL_V2}, 0U);
        event = next(reader);
      }
    }
    close({push, reader});
  }
}

TEST_F(MonitorVersions, StatisticsCountTheMessagesQueuedAtEachPeer) {
  void* push = open(ZMQ_PUSH);
  ASSERT_EQ(zmq_socket_monitor_versioned(push, "inproc://push", ZMQ_EVENT_PIPES_STATS, 2, ZMQ_PAIR), 0);
  void* reader = open_reader(ZMQ_PAIR, "inproc://push");
  EXPECT_ERRNO(EAGAIN, zmq_socket_monitor_pipes_stats(push));
  // Without a listener at the endpoint every message stays queued.
  void* nobody = open(ZMQ_PULL);
  const std::string exact = bind_any(nobody);
  ASSERT_EQ(zmq_unbind(nobody, exact.c_str()), 0);
  ASSERT_EQ(zmq_connect(push, exact.c_str()), 0);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(zmq_send(push, "x", 1, 0), 1);
  }
  ASSERT_EQ(zmq_socket_monitor_pipes_stats(push), 0);
  VersionedEvent event = next(reader);
  EXPECT_EQ(event.number, std::uint64_t{ZMQ_EVENT_PIPES_STATS});
  EXPECT_EQ(event.values, (std::vector<std::uint64_t>{5, 0}));
  EXPECT_EQ(event.local, "");
  EXPECT_EQ(event.remote, exact);
  close({push, reader, nobody});
}

TEST_F(MonitorVersions, StatisticsComeInTheOrderOfConnecting) {
  void* push = open(ZMQ_PUSH);
  ASSERT_EQ(zmq_socket_monitor_versioned(push, "inproc://push", ZMQ_EVENT_PIPES_STATS, 2, ZMQ_PAIR), 0);
  void* reader = open_reader(ZMQ_PAIR, "inproc://push");
  std::vector<std::string> endpoints;
  for (int i = 0; i < 20; ++i) {
    void* nobody = open(ZMQ_PULL);
    endpoints.push_back(i % 4 == 3 ? "inproc://nobody" + std::to_string(i) : bind_any(nobody));
    ASSERT_EQ(zmq_close(nobody), 0);
    ASSERT_EQ(zmq_connect(push, endpoints.back().c_str()), 0);
  }
  for (int i = 0; i < 20 + 7; ++i) {  // one for each, then one more for the first seven
    ASSERT_EQ(zmq_send(push, "x", 1, 0), 1);
  }
  ASSERT_EQ(zmq_socket_monitor_pipes_stats(push), 0);
  for (int i = 0; i < 20; ++i) {
    const VersionedEvent event = next(reader);
    EXPECT_EQ(event.remote, i % 4 == 3 ? "inproc" : endpoints[i]);
    EXPECT_EQ(event.values, (std::vector<std::uint64_t>{i < 7 ? 2U : 1U, 0}));
  }
  close({push, reader});
}

TEST_F(MonitorVersions, StatisticsComeFromInprocPeersToo) {
  void* pull = open(ZMQ_PULL);
  void* push = open(ZMQ_PUSH);
  ASSERT_EQ(zmq_socket_monitor_versioned(pull, "inproc://monitor", ZMQ_EVENT_ALL_V2, 2, ZMQ_PAIR), 0);
  void* reader = open_reader(ZMQ_PAIR, "inproc://monitor");
  ASSERT_EQ(zmq_bind(pull, "inproc://pull"), 0);
  ASSERT_EQ(zmq_connect(push, "inproc://pull"), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(zmq_send(push, "x", 1, 0), 1);
  }
  char byte = 0;
  ASSERT_EQ(zmq_recv(pull, &byte, 1, 0), 1);
  ASSERT_EQ(zmq_socket_monitor_pipes_stats(pull), 0);
  EXPECT_EQ(next(reader).values, (std::vector<std::uint64_t>{0, 2}));
  close({pull, push, reader});
}

TEST_F(MonitorVersions, StatisticsAreOnlyForAMonitorThatAskedForThem) {
  void* socket = open(ZMQ_DEALER);
  EXPECT_ERRNO(ENOTSOCK, zmq_socket_monitor_pipes_stats(nullptr));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_pipes_stats(socket));
  ASSERT_EQ(zmq_socket_monitor_versioned(socket, "inproc://x", ZMQ_EVENT_ALL_V1, 2, ZMQ_PAIR), 0);
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_pipes_stats(socket));
  ASSERT_EQ(zmq_socket_monitor_versioned(socket, "inproc://x", ZMQ_EVENT_ALL_V2, 2, ZMQ_PAIR), 0);
  EXPECT_ERRNO(EAGAIN, zmq_socket_monitor_pipes_stats(socket));
  ASSERT_EQ(zmq_socket_monitor(socket, nullptr, 0), 0);
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor_pipes_stats(socket));
  close({socket});
}

}  // namespace
}  // namespace weft::capi
