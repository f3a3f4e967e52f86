// SPDX-License-Identifier: MIT
// Every socket option of the C interface: its default, the values that it takes and refuses, and the value read back.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#define ZMQ_BUILD_DRAFT_API
#include "capi/zmq.h"
#include <gtest/gtest.h>

namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

struct IntOption {
  int id;
  const char* name;
  std::vector<int> types;      // the test uses the first; unless empty, every other type must refuse the option
  std::optional<int> initial;  // nothing: write-only
  std::vector<int> taken;
  std::vector<int> refused;
  bool read_only = false;
};

const std::vector<int> kEvery;
const std::vector<int> kPublishers{ZMQ_XPUB, ZMQ_PUB};
constexpr int kMax = INT_MAX;

#define WEFT_OPTION(name) name, #name

const std::vector<IntOption> kInts = {
    {WEFT_OPTION(ZMQ_WSS_TRUST_SYSTEM), kEvery, std::nullopt, {0, 1}, {-1, 2}},
    {WEFT_OPTION(ZMQ_RATE), kEvery, 100, {1, kMax}, {0, -1}},
    {WEFT_OPTION(ZMQ_RECOVERY_IVL), kEvery, 10'000, {0, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_SNDBUF), kEvery, -1, {-1, 0, 4096, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_RCVBUF), kEvery, -1, {-1, 0, 4096, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_LINGER), kEvery, -1, {-1, 0, kMax}, {-2, INT_MIN}},
    {WEFT_OPTION(ZMQ_RECONNECT_IVL), kEvery, 100, {-1, 0, 1, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_BACKLOG), kEvery, 100, {0, 1, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_RECONNECT_IVL_MAX), kEvery, 0, {0, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_SNDHWM), kEvery, 1000, {0, 1, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_RCVHWM), kEvery, 1000, {0, 1, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_MULTICAST_HOPS), kEvery, 1, {1, kMax}, {0, -1}},
    {WEFT_OPTION(ZMQ_RCVTIMEO), kEvery, -1, {-1, 0, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_SNDTIMEO), kEvery, -1, {-1, 0, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_IPV4ONLY), kEvery, 1, {0, 1}, {2, -1}},
    {WEFT_OPTION(ZMQ_ROUTER_MANDATORY), {ZMQ_ROUTER, ZMQ_REP}, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_FAIL_UNROUTABLE), {ZMQ_ROUTER, ZMQ_REP}, {}, {0, 1}, {-1}},
    {WEFT_OPTION(ZMQ_TCP_KEEPALIVE), kEvery, -1, {-1, 0, 1}, {2, -2}},
    {WEFT_OPTION(ZMQ_TCP_KEEPALIVE_CNT), kEvery, -1, {-1, 0, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_TCP_KEEPALIVE_IDLE), kEvery, -1, {-1, 0, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_TCP_KEEPALIVE_INTVL), kEvery, -1, {-1, 0, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_IMMEDIATE), kEvery, 0, {0, 1}, {2, -1}},
    {WEFT_OPTION(ZMQ_DELAY_ATTACH_ON_CONNECT), kEvery, 0, {0, 1}, {2, -1}},
    {WEFT_OPTION(ZMQ_XPUB_VERBOSE), kPublishers, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_XPUB_VERBOSER), kPublishers, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_XPUB_NODROP), kPublishers, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_XPUB_MANUAL), kPublishers, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_XPUB_MANUAL_LAST_VALUE), kPublishers, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_ONLY_FIRST_SUBSCRIBE), {ZMQ_XSUB, ZMQ_XPUB, ZMQ_PUB}, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_XSUB_VERBOSE_UNSUBSCRIBE), {ZMQ_XSUB}, {}, {0, 1, 2, -1}, {}},
    {WEFT_OPTION(ZMQ_TOPICS_COUNT), {ZMQ_SUB}, 0, {}, {0}, true},
    {WEFT_OPTION(ZMQ_ROUTER_NOTIFY), {ZMQ_ROUTER, ZMQ_REP}, 0, {0, 1, 2, 3}, {4, -1}},
    {WEFT_OPTION(ZMQ_ROUTER_RAW), {ZMQ_ROUTER, ZMQ_REP}, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_STREAM_NOTIFY), {ZMQ_STREAM}, {}, {0, 1}, {2, -1}},
    {WEFT_OPTION(ZMQ_IPV6), kEvery, 0, {0, 1}, {2, -1}},
    {WEFT_OPTION(ZMQ_PROBE_ROUTER), {ZMQ_DEALER, ZMQ_REQ, ZMQ_ROUTER, ZMQ_REP}, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_REQ_CORRELATE), {ZMQ_REQ}, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_REQ_RELAXED), {ZMQ_REQ}, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_CONFLATE), kEvery, 0, {0, 1}, {2, -1}},
    {WEFT_OPTION(ZMQ_ROUTER_HANDOVER), {ZMQ_ROUTER, ZMQ_REP}, {}, {0, 1, 2}, {-1}},
    {WEFT_OPTION(ZMQ_TOS), kEvery, 0, {0, 1, 255, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_PRIORITY), kEvery, 0, {0, 1, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_BUSY_POLL), kEvery, 0, {0, 1, kMax, -1}, {}},
    {WEFT_OPTION(ZMQ_IN_BATCH_SIZE), kEvery, 8192, {1, kMax}, {0, -1}},
    {WEFT_OPTION(ZMQ_OUT_BATCH_SIZE), kEvery, 8192, {1, kMax}, {0, -1}},
    {WEFT_OPTION(ZMQ_HANDSHAKE_IVL), kEvery, 30'000, {0, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_INVERT_MATCHING), kEvery, 0, {0, 1}, {}},
    {WEFT_OPTION(ZMQ_HEARTBEAT_IVL), kEvery, 0, {0, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_HEARTBEAT_TTL), kEvery, 0, {0, 100, 6'553'500}, {-100, 6'553'600}},
    {WEFT_OPTION(ZMQ_HEARTBEAT_TIMEOUT), kEvery, -1, {0, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_CONNECT_TIMEOUT), kEvery, 0, {0, 1, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_TCP_MAXRT), kEvery, 0, {0, 1, kMax}, {-1}},
    {WEFT_OPTION(ZMQ_USE_FD), kEvery, -1, {-1, 0, 7, kMax}, {-2}},
    {WEFT_OPTION(ZMQ_RECONNECT_STOP), kEvery, 0, {0, 1, 2, 3, 7, 8, -1}, {}},
    {WEFT_OPTION(ZMQ_MULTICAST_LOOP), kEvery, 1, {0, 1}, {}},
    {WEFT_OPTION(ZMQ_MULTICAST_MAXTPDU), kEvery, 1500, {1, kMax}, {0, -1}},
    {WEFT_OPTION(ZMQ_ZAP_ENFORCE_DOMAIN), kEvery, 0, {0, 1}, {}},
    {WEFT_OPTION(ZMQ_LOOPBACK_FASTPATH), kEvery, 0, {0, 1}, {}},
    {WEFT_OPTION(WEFT_CONNECTIONS_MAX), kEvery, 0, {0, 1, 1 << 24}, {-1, kMax}},
    {WEFT_OPTION(WEFT_ADDRESS_CONNECTIONS_MAX), kEvery, 0, {0, 1, 1 << 24}, {-1, kMax}},
    {WEFT_OPTION(WEFT_ADDRESS_RATE_MAX), kEvery, 0, {0, 1, 1 << 24}, {-1, kMax}},
    {WEFT_OPTION(WEFT_ANNOUNCE_FILTERS), kEvery, 0, {0, 1}, {-1, 2}},
    {WEFT_OPTION(WEFT_RECONNECT_AFTER_FAULT), kEvery, 0, {0, 1}, {-1, 2}},
    {WEFT_OPTION(WEFT_SUBSCRIPTIONS_MAX), kEvery, 1'048'576, {0, 1, 1 << 30}, {-1, kMax}},
    {WEFT_OPTION(WEFT_MESSAGE_PARTS_MAX), kEvery, 262'144, {0, 1, 1 << 30}, {-1, kMax}},
    {WEFT_OPTION(WEFT_TLS_CLIENT_REQUIRED), kEvery, 1, {0, 1}, {2, -1}},
    {WEFT_OPTION(WEFT_TLS_VERIFY), kEvery, 1, {0, 1}, {2, -1}},
    {WEFT_OPTION(ZMQ_TYPE), kEvery, ZMQ_DEALER, {}, {0}, true},
    {WEFT_OPTION(ZMQ_RCVMORE), kEvery, 0, {}, {0}, true},
    {WEFT_OPTION(ZMQ_MECHANISM), kEvery, ZMQ_NULL, {}, {0}, true},
    {WEFT_OPTION(ZMQ_THREAD_SAFE), kEvery, 0, {}, {0}, true},
};

class Options : public testing::Test {
 protected:
  Options() : context_(zmq_ctx_new()) {}
  ~Options() override {
    for (void* socket : sockets_) {
      zmq_close(socket);
    }
    zmq_ctx_term(context_);
  }
  void* open(int type) {
    sockets_.push_back(zmq_socket(context_, type));
    EXPECT_NE(sockets_.back(), nullptr) << type;
    return sockets_.back();
  }

  static int set(void* socket, int id, int value) { return zmq_setsockopt(socket, id, &value, sizeof value); }
  static int set(void* socket, int id, const std::string& text) {
    return zmq_setsockopt(socket, id, text.data(), text.size());
  }
  static std::optional<int> get(void* socket, int id) {
    int value = -12345;
    std::size_t size = sizeof value;
    return zmq_getsockopt(socket, id, &value, &size) == 0 && size == sizeof value ? std::optional(value) : std::nullopt;
  }
  static std::optional<std::string> get_text(void* socket, int id, std::size_t room = 256) {
    std::string text(room, '?');
    std::size_t size = room;
    if (zmq_getsockopt(socket, id, text.data(), &size) != 0) {
      return std::nullopt;
    }
    return text.substr(0, size);
  }
  // -1 with EINVAL.
  static bool refused(int result) { return result == -1 && errno == EINVAL; }

  void* context_;
  std::vector<void*> sockets_;
};

TEST_F(Options, EveryNumberHasItsDefaultAndIsReadBack) {
  for (const IntOption& row : kInts) {
    void* socket = open(row.types.empty() ? ZMQ_DEALER : row.types[0]);
    EXPECT_EQ(get(socket, row.id), row.initial) << row.name;
    for (const int value : row.taken) {
      EXPECT_EQ(set(socket, row.id, value), 0) << row.name << ' ' << value;
      if (row.initial) {
        EXPECT_EQ(get(socket, row.id), value) << row.name;
      }
    }
  }
}

TEST_F(Options, EveryNumberRefusesValuesOutOfItsRangeAndKeepsItsValue) {
  for (const IntOption& row : kInts) {
    void* socket = open(row.types.empty() ? ZMQ_DEALER : row.types[0]);
    for (const int value : row.refused) {
      EXPECT_TRUE(refused(set(socket, row.id, value))) << row.name << ' ' << value;
    }
    EXPECT_EQ(get(socket, row.id), row.initial) << row.name;
  }
}

TEST_F(Options, EveryNumberRefusesEveryOtherSize) {
  for (const IntOption& row : kInts) {
    void* socket = open(row.types.empty() ? ZMQ_DEALER : row.types[0]);
    const char bytes[16] = {};
    for (const std::size_t size : {0, 1, 2, 3, 5, 8, 16}) {
      EXPECT_TRUE(refused(zmq_setsockopt(socket, row.id, bytes, size))) << row.name << ' ' << size;
    }
    EXPECT_TRUE(refused(zmq_setsockopt(socket, row.id, nullptr, sizeof(int)))) << row.name;
    char answer[16] = {};
    for (std::size_t size : {0, 1, 2, 3}) {
      EXPECT_TRUE(refused(zmq_getsockopt(socket, row.id, answer, &size))) << row.name << ' ' << size;
    }
  }
}

// Options for the state of the socket can be read into wider integers, too; see below.
TEST_F(Options, AnOptionIsReadWithItsOwnSizeOnly) {
  for (const IntOption& row : kInts) {
    if (!row.initial || row.id == ZMQ_RCVMORE || row.id == ZMQ_THREAD_SAFE) {
      continue;
    }
    char answer[16] = {};
    for (std::size_t size : {5, 8, 16}) {
      EXPECT_TRUE(refused(zmq_getsockopt(open(ZMQ_DEALER), row.id, answer, &size))) << row.name << ' ' << size;
    }
  }
}

TEST_F(Options, AnOptionOfSomeSocketTypesIsRefusedByTheOthers) {
  for (const IntOption& row : kInts) {
    for (int type = ZMQ_PAIR; type <= ZMQ_XSUB && !row.types.empty() && !row.read_only; ++type) {
      const bool takes = std::find(row.types.begin(), row.types.end(), type) != row.types.end();
      void* socket = open(type);
      EXPECT_EQ(set(socket, row.id, 1) == 0, takes) << row.name << " on type " << type;
    }
  }
}

TEST_F(Options, MetadataIsPropertiesWhoseNamesBeginWithX) {
  void* const socket = open(ZMQ_PULL);
  const std::string longest = "X-" + std::string(253, 'n');
  for (const std::string& text : {"X-a:b"s, "X-:b"s, "X-a:b:c"s, "X-a: "s, longest + ":v"}) {
    EXPECT_EQ(set(socket, ZMQ_METADATA, text), 0) << text;
  }
  for (const std::string& text : {""s, ":"s, "X-a"s, "X-a:"s, ":b"s, "a:b"s, "x-a:b"s, longest + "n:v", "X-a:b\0"s}) {
    EXPECT_TRUE(refused(set(socket, ZMQ_METADATA, text))) << text;
  }
  EXPECT_TRUE(refused(zmq_setsockopt(socket, ZMQ_METADATA, nullptr, 5)));
  EXPECT_EQ(get_text(socket, ZMQ_METADATA), std::nullopt);
  EXPECT_TRUE(refused(set(socket, ZMQ_METADATA, "X-much:" + std::string(9000, 'v'))));  // a handshake has bounds
  int count = 5;
  while (count < 1000 && set(socket, ZMQ_METADATA, "X-" + std::to_string(count) + ":v") == 0) {
    ++count;
  }
  EXPECT_EQ(count, 56);
}

TEST_F(Options, WideNumbers) {
  void* socket = open(ZMQ_PUSH);
  std::uint64_t affinity = 1;
  std::int64_t bytes = 0;
  std::size_t size = sizeof affinity;
  EXPECT_EQ(zmq_getsockopt(socket, ZMQ_AFFINITY, &affinity, &size), 0);
  EXPECT_EQ(affinity, 0U);
  affinity = 0x8000'0000'0000'0001;
  EXPECT_EQ(zmq_setsockopt(socket, ZMQ_AFFINITY, &affinity, size), 0);
  affinity = 0;
  EXPECT_EQ(zmq_getsockopt(socket, ZMQ_AFFINITY, &affinity, &size), 0);
  EXPECT_EQ(affinity, 0x8000'0000'0000'0001);
  EXPECT_EQ(zmq_getsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, &size), 0);
  EXPECT_EQ(bytes, -1);
  for (const int id : {ZMQ_AFFINITY, ZMQ_MAXMSGSIZE}) {
    EXPECT_TRUE(refused(set(socket, id, 1)));
    EXPECT_EQ(get(socket, id), std::nullopt);
    EXPECT_TRUE(refused(zmq_setsockopt(socket, id, nullptr, 8)));
  }
  bytes = -7;  // no limit either
  EXPECT_EQ(zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, sizeof bytes), 0);
  bytes = 0;
  EXPECT_EQ(zmq_getsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, &size), 0);
  EXPECT_EQ(bytes, -7);
  bytes = 1'000'000'000'000;
  EXPECT_EQ(zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, sizeof bytes), 0);
  bytes = 0;
  EXPECT_EQ(zmq_getsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, &size), 0);
  EXPECT_EQ(bytes, 1'000'000'000'000);
}

TEST_F(Options, TheRoutingIdHasUpTo255Bytes) {
  void* socket = open(ZMQ_DEALER);
  EXPECT_EQ(get_text(socket, ZMQ_ROUTING_ID), "");
  EXPECT_TRUE(refused(set(socket, ZMQ_ROUTING_ID, "")));
  EXPECT_TRUE(refused(set(socket, ZMQ_ROUTING_ID, std::string(256, 'x'))));
  EXPECT_TRUE(refused(zmq_setsockopt(socket, ZMQ_ROUTING_ID, nullptr, 3)));
  EXPECT_TRUE(refused(set(socket, ZMQ_ROUTING_ID, std::string("\0abcd", 5)))) << "a ROUTER makes such ids";
  EXPECT_EQ(get_text(socket, ZMQ_ROUTING_ID), "");
  EXPECT_EQ(set(socket, ZMQ_IDENTITY, std::string("a\0b", 3) + std::string(252, 'x')), 0);
  EXPECT_EQ(get_text(socket, ZMQ_ROUTING_ID)->size(), 255U);
  EXPECT_FALSE(get_text(socket, ZMQ_ROUTING_ID, 254));
  EXPECT_EQ(set(socket, ZMQ_ROUTING_ID, "short"), 0);
  EXPECT_EQ(get_text(socket, ZMQ_ROUTING_ID), "short");
}

TEST_F(Options, TheRoutingIdOfTheNextConnectIsForRouters) {
  void* router = open(ZMQ_ROUTER);
  EXPECT_EQ(set(router, ZMQ_CONNECT_ROUTING_ID, "x"), 0);
  EXPECT_TRUE(refused(set(router, ZMQ_CONNECT_ROUTING_ID, "")));
  EXPECT_TRUE(refused(set(router, ZMQ_CONNECT_ROUTING_ID, std::string(256, 'x'))));
  EXPECT_FALSE(get_text(router, ZMQ_CONNECT_ROUTING_ID));
  EXPECT_TRUE(refused(set(open(ZMQ_DEALER), ZMQ_CONNECT_ROUTING_ID, "x")));
}

TEST_F(Options, AReadOnlyOptionCannotBeSet) {
  void* socket = open(ZMQ_DEALER);
  for (const int id : {ZMQ_FD, ZMQ_EVENTS, ZMQ_LAST_ENDPOINT, ZMQ_RCVMORE, ZMQ_TYPE, ZMQ_MECHANISM, ZMQ_THREAD_SAFE}) {
    EXPECT_TRUE(refused(set(socket, id, 0))) << id;
    EXPECT_TRUE(refused(set(socket, id, "x"))) << id;
    EXPECT_TRUE(refused(zmq_setsockopt(socket, id, nullptr, 0))) << id;
    char answer[4];
    std::size_t size = 0;
    EXPECT_TRUE(refused(zmq_getsockopt(socket, id, answer, &size))) << id;
    size = 3;
    EXPECT_TRUE(id == ZMQ_LAST_ENDPOINT || refused(zmq_getsockopt(socket, id, answer, &size))) << id;
  }
}

TEST_F(Options, AMessageForNewOrLostPeersIsAnyBytesAndCannotBeRead) {
  void* socket = open(ZMQ_ROUTER);
  for (const int id : {ZMQ_HELLO_MSG, ZMQ_DISCONNECT_MSG, ZMQ_HICCUP_MSG}) {
    EXPECT_EQ(set(socket, id, "hello"), 0) << id;
    EXPECT_EQ(zmq_setsockopt(socket, id, nullptr, 0), 0) << id;
    EXPECT_TRUE(refused(zmq_setsockopt(socket, id, nullptr, 1))) << id;
    EXPECT_FALSE(get_text(socket, id)) << id;
  }
}

TEST_F(Options, TheWelcomeMessageIsAnyBytesOfAPublisher) {
  void* xpub = open(ZMQ_XPUB);
  EXPECT_EQ(set(xpub, ZMQ_XPUB_WELCOME_MSG, "W"), 0);
  EXPECT_EQ(zmq_setsockopt(xpub, ZMQ_XPUB_WELCOME_MSG, nullptr, 0), 0);
  EXPECT_TRUE(refused(zmq_setsockopt(xpub, ZMQ_XPUB_WELCOME_MSG, nullptr, 1)));
  EXPECT_TRUE(refused(set(open(ZMQ_SUB), ZMQ_XPUB_WELCOME_MSG, "W")));
}

TEST_F(Options, SubscribingIsForSubAndTheManualXpub) {
  void* sub = open(ZMQ_SUB);
  EXPECT_EQ(set(sub, ZMQ_SUBSCRIBE, "a"), 0);
  EXPECT_EQ(zmq_setsockopt(sub, ZMQ_SUBSCRIBE, nullptr, 0), 0);
  EXPECT_TRUE(refused(zmq_setsockopt(sub, ZMQ_SUBSCRIBE, nullptr, 1)));
  EXPECT_EQ(set(sub, ZMQ_UNSUBSCRIBE, "a"), 0);
  EXPECT_EQ(set(sub, ZMQ_UNSUBSCRIBE, "never subscribed to"), 0);
  EXPECT_FALSE(get_text(sub, ZMQ_SUBSCRIBE));
  for (const int type : {ZMQ_XSUB, ZMQ_PUB, ZMQ_XPUB, ZMQ_PUSH}) {
    void* socket = open(type);
    EXPECT_TRUE(refused(set(socket, ZMQ_SUBSCRIBE, "a"))) << type;
    EXPECT_TRUE(refused(set(socket, ZMQ_UNSUBSCRIBE, "a"))) << type;
  }
  void* xpub = open(ZMQ_XPUB);
  EXPECT_EQ(set(xpub, ZMQ_XPUB_MANUAL, 1), 0);
  EXPECT_EQ(set(xpub, ZMQ_SUBSCRIBE, "a"), 0);
}

TEST_F(Options, TheLastEndpointIsExactAndEmptyBefore) {
  void* socket = open(ZMQ_PULL);
  EXPECT_EQ(get_text(socket, ZMQ_LAST_ENDPOINT), std::string(1, '\0'));
  EXPECT_TRUE(refused(set(socket, ZMQ_LAST_ENDPOINT, "x")));
  ASSERT_EQ(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
  const std::string exact = *get_text(socket, ZMQ_LAST_ENDPOINT);
  EXPECT_EQ(exact.rfind("tcp://127.0.0.1:", 0), 0U);
  EXPECT_EQ(exact.back(), '\0');
  EXPECT_EQ(exact.find('*'), std::string::npos);
  EXPECT_FALSE(get_text(socket, ZMQ_LAST_ENDPOINT, exact.size() - 1));
  EXPECT_EQ(get_text(socket, ZMQ_LAST_ENDPOINT, exact.size()), exact);
  ASSERT_EQ(zmq_bind(socket, "tcp://*:*"), 0);
  EXPECT_EQ(get_text(socket, ZMQ_LAST_ENDPOINT)->rfind("tcp://0.0.0.0:", 0), 0U);
  ASSERT_EQ(zmq_bind(socket, "inproc://here"), 0);
  EXPECT_EQ(get_text(socket, ZMQ_LAST_ENDPOINT), std::string("inproc://here") + '\0');
  void* other = open(ZMQ_PUSH);
  ASSERT_EQ(zmq_connect(other, exact.c_str()), 0);
  EXPECT_EQ(get_text(other, ZMQ_LAST_ENDPOINT), exact);
}

TEST_F(Options, AWiderIntegerThanTheStateOfTheSocketReadsWell) {
  void* socket = open(ZMQ_DEALER);
  for (const int id : {ZMQ_RCVMORE, ZMQ_EVENTS, ZMQ_THREAD_SAFE}) {
    std::int64_t value = -1;
    std::size_t size = sizeof value;
    EXPECT_EQ(zmq_getsockopt(socket, id, &value, &size), 0);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(size, sizeof(int));
  }
}

TEST_F(Options, NothingIsWrittenBeyondWhatTheCallerGave) {
  void* socket = open(ZMQ_DEALER);
  ASSERT_EQ(set(socket, ZMQ_ROUTING_ID, "id"), 0);
  char bytes[8];
  for (const int id : {ZMQ_ROUTING_ID, ZMQ_LAST_ENDPOINT, ZMQ_SOCKS_PROXY, ZMQ_LINGER}) {
    std::memset(bytes, '#', sizeof bytes);
    std::size_t size = 4;
    EXPECT_EQ(zmq_getsockopt(socket, id, bytes, &size), 0) << id;
    EXPECT_EQ(std::string(bytes + 4, 4), "####") << id;
  }
  EXPECT_TRUE(refused(zmq_getsockopt(socket, ZMQ_LINGER, nullptr, nullptr)));
}

TEST_F(Options, TheCallersBytesBehindATextAreZero) {
  void* socket = open(ZMQ_DEALER);
  for (const int id : {ZMQ_ROUTING_ID, ZMQ_LAST_ENDPOINT, ZMQ_SOCKS_PROXY, ZMQ_SOCKS_USERNAME, ZMQ_SOCKS_PASSWORD,
                       ZMQ_BINDTODEVICE, ZMQ_ZAP_DOMAIN, ZMQ_PLAIN_USERNAME, ZMQ_PLAIN_PASSWORD}) {
    char bytes[] = "####";
    std::size_t size = 4;
    EXPECT_EQ(zmq_getsockopt(socket, id, bytes, &size), 0) << id;
    EXPECT_EQ(std::string(bytes, 4), std::string(4, '\0')) << id;
  }
}

TEST_F(Options, ASubscriberDoesNotLinger) {
  for (const int type : {ZMQ_SUB, ZMQ_XSUB}) {
    EXPECT_EQ(get(open(type), ZMQ_LINGER), 0);
  }
  ASSERT_EQ(zmq_ctx_set(context_, ZMQ_BLOCKY, 0), 0);
  EXPECT_EQ(get(open(ZMQ_DEALER), ZMQ_LINGER), 0) << "in a context that does not block nobody does";
}

TEST_F(Options, AnOptionThatThisBuildLacksIsRefused) {
  void* socket = open(ZMQ_DEALER);
  for (const int id :
       {ZMQ_VMCI_BUFFER_SIZE, ZMQ_VMCI_BUFFER_MIN_SIZE, ZMQ_VMCI_BUFFER_MAX_SIZE, ZMQ_VMCI_CONNECT_TIMEOUT,
        ZMQ_GSSAPI_SERVER, ZMQ_GSSAPI_PRINCIPAL, ZMQ_GSSAPI_SERVICE_PRINCIPAL, ZMQ_GSSAPI_PLAINTEXT,
        ZMQ_GSSAPI_PRINCIPAL_NAMETYPE, ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE, 0, -1, 9999}) {
    EXPECT_TRUE(refused(set(socket, id, 1))) << id;
    EXPECT_EQ(get(socket, id), std::nullopt) << id;
  }
}

TEST_F(Options, OfAProxyAddressNameAndPasswordAreReadBackAndForgotten) {
  void* socket = open(ZMQ_DEALER);
  for (const int id : {ZMQ_SOCKS_PROXY, ZMQ_SOCKS_USERNAME, ZMQ_SOCKS_PASSWORD}) {
    EXPECT_EQ(get_text(socket, id), std::string(1, '\0'));
    EXPECT_EQ(set(socket, id, "127.0.0.1:1080"), 0);
    EXPECT_EQ(get_text(socket, id), std::string("127.0.0.1:1080\0", 15));
    EXPECT_EQ(zmq_setsockopt(socket, id, nullptr, 0), 0);
    EXPECT_EQ(get_text(socket, id), std::string(1, '\0'));
    EXPECT_EQ(set(socket, id, "again"), 0);
    if (id == ZMQ_SOCKS_PROXY) {
      EXPECT_TRUE(refused(set(socket, id, "")));
      EXPECT_EQ(get_text(socket, id), std::string("again\0", 6));
    } else {
      EXPECT_EQ(set(socket, id, ""), 0);
      EXPECT_EQ(get_text(socket, id), std::string(1, '\0'));
    }
  }
  EXPECT_TRUE(refused(set(socket, ZMQ_SOCKS_USERNAME, std::string(256, 'x'))));
  EXPECT_EQ(set(socket, ZMQ_SOCKS_PROXY, "no port"), 0);
  EXPECT_TRUE(refused(zmq_connect(socket, "tcp://127.0.0.1:5555")));
}

TEST_F(Options, OfTlsFilesAndNamesAreReadBackAndForgotten) {
  void* socket = open(ZMQ_DEALER);
  for (const int id : {WEFT_TLS_CERTIFICATE, WEFT_TLS_KEY, WEFT_TLS_AUTHORITIES, WEFT_TLS_SERVER_NAME}) {
    EXPECT_EQ(get_text(socket, id), std::string(1, '\0'));
    const std::string text = id == WEFT_TLS_SERVER_NAME ? "a.host.example" : "/no/such/file";
    EXPECT_EQ(set(socket, id, text), 0);
    EXPECT_EQ(get_text(socket, id), text + '\0');
    EXPECT_EQ(set(socket, id, ""), 0);
    EXPECT_EQ(get_text(socket, id), std::string(1, '\0'));
    EXPECT_TRUE(refused(set(socket, id, std::string(5000, 'x'))));
  }
}

TEST_F(Options, ToReloadCertificatesIsAnActAndNoValue) {
  void* socket = open(ZMQ_DEALER);
  EXPECT_EQ(get(socket, WEFT_TLS_RELOAD), std::nullopt);
  EXPECT_EQ(set(socket, WEFT_TLS_RELOAD, 1), 0) << "nothing is bound";
  EXPECT_TRUE(refused(set(socket, WEFT_TLS_RELOAD, 0)));
}

TEST_F(Options, TheDeviceIsANameOfUpTo16Bytes) {
  void* socket = open(ZMQ_DEALER);
  EXPECT_EQ(get_text(socket, ZMQ_BINDTODEVICE), std::string(1, '\0'));
  EXPECT_EQ(set(socket, ZMQ_BINDTODEVICE, "lo"), 0);
  EXPECT_EQ(get_text(socket, ZMQ_BINDTODEVICE), std::string("lo\0", 3));
  EXPECT_TRUE(refused(set(socket, ZMQ_BINDTODEVICE, std::string(17, 'x'))));
  EXPECT_TRUE(refused(set(socket, ZMQ_BINDTODEVICE, "")));
  EXPECT_EQ(zmq_setsockopt(socket, ZMQ_BINDTODEVICE, nullptr, 0), 0);
  EXPECT_EQ(get_text(socket, ZMQ_BINDTODEVICE), std::string(1, '\0'));
}

TEST_F(Options, AcceptFiltersAddUpUntilTheyAreCleared) {
  void* pull = open(ZMQ_PULL);
  EXPECT_EQ(set(pull, ZMQ_TCP_ACCEPT_FILTER, "::1"), 0);
  EXPECT_EQ(set(pull, ZMQ_TCP_ACCEPT_FILTER, "127.0.0.0/8"), 0);
  for (const char* wrong : {"", "localhost", "127.0.0.1/33", "127.0.0.1,::1"}) {
    EXPECT_TRUE(refused(set(pull, ZMQ_TCP_ACCEPT_FILTER, wrong))) << wrong;
  }
  EXPECT_TRUE(refused(zmq_setsockopt(pull, ZMQ_TCP_ACCEPT_FILTER, nullptr, 1)));
  for (const int id : {ZMQ_IPC_FILTER_PID, ZMQ_IPC_FILTER_UID, ZMQ_IPC_FILTER_GID}) {
    EXPECT_EQ(set(pull, id, 4'000'000), 0);
    EXPECT_EQ(set(pull, id, 4'000'001), 0);
    EXPECT_TRUE(refused(zmq_setsockopt(pull, id, "12345678", 8)));
    EXPECT_EQ(get(pull, id), std::nullopt);
  }
  for (const int id : {ZMQ_IPC_FILTER_PID, ZMQ_IPC_FILTER_UID, ZMQ_IPC_FILTER_GID}) {
    EXPECT_EQ(zmq_setsockopt(pull, id, nullptr, 0), 0);
  }
  for (const char* endpoint : {"tcp://127.0.0.1:*", "ipc://*"}) {
    ASSERT_EQ(zmq_bind(pull, endpoint), 0);
    void* push = open(ZMQ_PUSH);
    ASSERT_EQ(zmq_connect(push, get_text(pull, ZMQ_LAST_ENDPOINT)->c_str()), 0);
    ASSERT_EQ(zmq_send(push, "x", 1, 0), 1);
    char byte;
    EXPECT_EQ(zmq_recv(pull, &byte, 1, 0), 1);
  }
  EXPECT_EQ(zmq_setsockopt(pull, ZMQ_TCP_ACCEPT_FILTER, nullptr, 0), 0);
}

TEST_F(Options, Ipv4OnlyIsTheOppositeOfIpv6) {
  void* socket = open(ZMQ_DEALER);
  EXPECT_EQ(set(socket, ZMQ_IPV4ONLY, 0), 0);
  EXPECT_EQ(get(socket, ZMQ_IPV6), 1);
  EXPECT_EQ(set(socket, ZMQ_IPV6, 0), 0);
  EXPECT_EQ(get(socket, ZMQ_IPV4ONLY), 1);
}

TEST_F(Options, TheTimeToLiveIsInTenthsOfASecond) {
  void* socket = open(ZMQ_DEALER);
  EXPECT_EQ(set(socket, ZMQ_HEARTBEAT_TTL, 6'553'599), 0);
  EXPECT_EQ(get(socket, ZMQ_HEARTBEAT_TTL), 6'553'500);
  EXPECT_EQ(set(socket, ZMQ_HEARTBEAT_TTL, 99), 0);
  EXPECT_EQ(get(socket, ZMQ_HEARTBEAT_TTL), 0);
}

TEST_F(Options, SomeAreOnForEveryNumberButZero) {
  void* socket = open(ZMQ_PUB);
  for (const int id : {ZMQ_INVERT_MATCHING, ZMQ_ZAP_ENFORCE_DOMAIN, ZMQ_LOOPBACK_FASTPATH, ZMQ_MULTICAST_LOOP}) {
    for (const int value : {2, 0, -1}) {
      EXPECT_EQ(set(socket, id, value), 0) << id;
      EXPECT_EQ(get(socket, id), value != 0 ? 1 : 0) << id;
    }
  }
}

TEST_F(Options, ASocketDoesNotInheritTheValuesOfAClosedOne) {
  void* first = zmq_socket(context_, ZMQ_PUSH);
  ASSERT_EQ(set(first, ZMQ_RATE, 7), 0);
  ASSERT_EQ(zmq_close(first), 0);
  EXPECT_EQ(get(open(ZMQ_PUSH), ZMQ_RATE), 100);
}

TEST_F(Options, AfterShutdownTheEventsAreTheContextsEndAndLingerCanStillBeSet) {
  void* socket = open(ZMQ_DEALER);
  ASSERT_EQ(zmq_ctx_shutdown(context_), 0);
  EXPECT_EQ(get(socket, ZMQ_EVENTS), std::nullopt);
  EXPECT_EQ(errno, ETERM);
  EXPECT_EQ(get(socket, ZMQ_FD), std::nullopt);
  EXPECT_EQ(errno, ETERM);
  EXPECT_EQ(set(socket, ZMQ_LINGER, 0), 0);
}

TEST_F(Options, RcvmoreIsAboutThePartThatWasReceivedLast) {
  void* one = open(ZMQ_PAIR);
  void* two = open(ZMQ_PAIR);
  ASSERT_EQ(zmq_bind(one, "inproc://pair"), 0);
  ASSERT_EQ(zmq_connect(two, "inproc://pair"), 0);
  ASSERT_EQ(zmq_send(two, "a", 1, ZMQ_SNDMORE), 1);
  ASSERT_EQ(zmq_send(two, "b", 1, 0), 1);
  char byte;
  ASSERT_EQ(zmq_recv(one, &byte, 1, 0), 1);
  EXPECT_EQ(get(one, ZMQ_RCVMORE), 1);
  ASSERT_EQ(zmq_recv(one, &byte, 1, 0), 1);
  EXPECT_EQ(get(one, ZMQ_RCVMORE), 0);
}

TEST_F(Options, AMandatoryRouterIsWritableWhileSomePeerHasRoom) {
  void* router = open(ZMQ_ROUTER);
  EXPECT_EQ(get(router, ZMQ_EVENTS), ZMQ_POLLOUT) << "what nobody gets is dropped";
  ASSERT_EQ(set(router, ZMQ_ROUTER_MANDATORY, 1), 0);
  EXPECT_EQ(get(router, ZMQ_EVENTS), 0);
  void* dealer = open(ZMQ_DEALER);
  ASSERT_EQ(set(router, ZMQ_SNDHWM, 1), 0);
  ASSERT_EQ(set(dealer, ZMQ_RCVHWM, 1), 0);
  ASSERT_EQ(zmq_setsockopt(dealer, ZMQ_ROUTING_ID, "d", 1), 0);
  ASSERT_EQ(zmq_bind(router, "inproc://mandatory"), 0);
  ASSERT_EQ(zmq_connect(dealer, "inproc://mandatory"), 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(get(router, ZMQ_EVENTS), ZMQ_POLLOUT);
    ASSERT_EQ(zmq_send(router, "d", 1, ZMQ_SNDMORE), 1);
    EXPECT_EQ(get(router, ZMQ_EVENTS), ZMQ_POLLOUT) << "the rest of a message finds room when its beginning did";
    ASSERT_EQ(zmq_send(router, "x", 1, 0), 1);
  }
  EXPECT_EQ(get(router, ZMQ_EVENTS), 0);
  EXPECT_EQ(zmq_send(router, "d", 1, ZMQ_SNDMORE | ZMQ_DONTWAIT), -1);
  EXPECT_EQ(zmq_errno(), EAGAIN);
  EXPECT_EQ(zmq_send(router, "e", 1, ZMQ_SNDMORE | ZMQ_DONTWAIT), -1);
  EXPECT_EQ(zmq_errno(), EHOSTUNREACH);
  char byte;
  ASSERT_EQ(zmq_recv(dealer, &byte, 1, 0), 1);
  ASSERT_EQ(zmq_recv(dealer, &byte, 1, 0), 1);
  EXPECT_EQ(get(router, ZMQ_EVENTS), ZMQ_POLLOUT);
}

TEST_F(Options, ANewHighWaterMarkActsOnConnectionsThatAreThere) {
  void* push = open(ZMQ_PUSH);
  void* pull = open(ZMQ_PULL);
  for (void* socket : {push, pull}) {
    ASSERT_EQ(set(socket, ZMQ_SNDHWM, 2), 0);
    ASSERT_EQ(set(socket, ZMQ_RCVHWM, 2), 0);
  }
  ASSERT_EQ(zmq_bind(pull, "inproc://marks"), 0);
  ASSERT_EQ(zmq_connect(push, "inproc://marks"), 0);
  const auto fill = [&] {
    int count = 0;
    while (zmq_send(push, "x", 1, ZMQ_DONTWAIT) == 1) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(fill(), 4);
  ASSERT_EQ(set(push, ZMQ_SNDHWM, 5), 0);
  EXPECT_EQ(fill(), 3);
  ASSERT_EQ(set(pull, ZMQ_RCVHWM, 3), 0);
  EXPECT_EQ(fill(), 1);
}

}  // namespace
