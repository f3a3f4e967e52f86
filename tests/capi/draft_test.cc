// SPDX-License-Identifier: MIT
// The draft socket types and their functions.
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class Drafts : public CapiTest {
 protected:
  [[nodiscard]] void* open(int type) {
    void* socket = zmq_socket(context_, type);
    EXPECT_NE(socket, nullptr) << zmq_strerror(zmq_errno());
    const int zero = 0;
    const int long_time = 20'000;
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &long_time, sizeof long_time), 0);
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_SNDTIMEO, &long_time, sizeof long_time), 0);
    return socket;
  }
  static void send(void* socket, const char* text) {
    EXPECT_EQ(zmq_send(socket, text, std::strlen(text), 0), static_cast<int>(std::strlen(text)))
        << zmq_strerror(zmq_errno());
  }
  [[nodiscard]] static std::string receive(void* socket) {
    char bytes[256];
    const int size = zmq_recv(socket, bytes, sizeof bytes, 0);
    EXPECT_GE(size, 0) << zmq_strerror(zmq_errno());
    return {bytes, static_cast<std::size_t>(size < 0 ? 0 : size)};
  }
  static void close(std::initializer_list<void*> sockets) {
    for (void* socket : sockets) {
      EXPECT_EQ(zmq_close(socket), 0);
    }
  }
};

TEST_F(Drafts, TheTypesOfOnePartSayThatTheyAreThreadSafeAndRefuseMore) {
  for (const int type : {ZMQ_SERVER, ZMQ_CLIENT, ZMQ_RADIO, ZMQ_DISH, ZMQ_GATHER, ZMQ_SCATTER, ZMQ_PEER, ZMQ_CHANNEL}) {
    void* socket = open(type);
    int value = -1;
    std::size_t size = sizeof value;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_THREAD_SAFE, &value, &size), 0);
    EXPECT_EQ(value, 1) << type;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_TYPE, &value, &size), 0);
    EXPECT_EQ(value, type);
    const bool sends = type != ZMQ_GATHER && type != ZMQ_DISH;
    EXPECT_ERRNO(sends ? EINVAL : ENOTSUP, zmq_send(socket, "a", 1, ZMQ_SNDMORE | ZMQ_DONTWAIT));
    close({socket});
  }
  EXPECT_ERRNO(EINVAL, zmq_socket(context_, ZMQ_CHANNEL + 1));
}

TEST_F(Drafts, ScatterSendsToGather) {
  void* gather = open(ZMQ_GATHER);
  void* scatter = open(ZMQ_SCATTER);
  ASSERT_EQ(zmq_bind(gather, "inproc://gather"), 0);
  ASSERT_EQ(zmq_connect(scatter, "inproc://gather"), 0);
  send(scatter, "work");
  EXPECT_EQ(receive(gather), "work");
  EXPECT_ERRNO(ENOTSUP, zmq_send(gather, "a", 1, 0));
  char byte = 0;
  EXPECT_ERRNO(ENOTSUP, zmq_recv(scatter, &byte, 1, 0));
  close({gather, scatter});
}

TEST_F(Drafts, AServerAnswersAClientByItsRoutingId) {
  void* server = open(ZMQ_SERVER);
  void* client = open(ZMQ_CLIENT);
  ASSERT_EQ(zmq_bind(server, "inproc://server"), 0);
  ASSERT_EQ(zmq_connect(client, "inproc://server"), 0);
  send(client, "question");
  zmq_msg_t msg;
  ASSERT_EQ(zmq_msg_init(&msg), 0);
  EXPECT_EQ(zmq_msg_routing_id(&msg), 0U);
  ASSERT_EQ(zmq_msg_recv(&msg, server, 0), 8);
  const std::uint32_t id = zmq_msg_routing_id(&msg);
  EXPECT_NE(id, 0U);
  ASSERT_EQ(zmq_msg_close(&msg), 0);

  ASSERT_EQ(zmq_msg_init_buffer(&msg, "answer", 6), 0);
  EXPECT_ERRNO(EHOSTUNREACH, zmq_msg_send(&msg, server, 0));
  EXPECT_ERRNO(EINVAL, zmq_msg_set_routing_id(&msg, 0));
  ASSERT_EQ(zmq_msg_set_routing_id(&msg, id + 1), 0);
  EXPECT_ERRNO(EHOSTUNREACH, zmq_msg_send(&msg, server, 0));
  ASSERT_EQ(zmq_msg_set_routing_id(&msg, id), 0);
  zmq_msg_t copy;
  ASSERT_EQ(zmq_msg_init(&copy), 0);
  ASSERT_EQ(zmq_msg_copy(&copy, &msg), 0);
  EXPECT_EQ(zmq_msg_routing_id(&copy), id);
  ASSERT_EQ(zmq_msg_close(&copy), 0);
  EXPECT_ERRNO(EINVAL, zmq_msg_send(&msg, server, ZMQ_SNDMORE));
  EXPECT_EQ(zmq_msg_send(&msg, server, 0), 6);
  EXPECT_EQ(zmq_msg_close(&msg), 0);
  EXPECT_EQ(receive(client), "answer");
  EXPECT_ERRNO(EHOSTUNREACH, zmq_send(server, "a", 1, 0));
  close({server, client});
}

TEST_F(Drafts, AMessageThatIsNoneHasNoRoutingId) {
  zmq_msg_t garbage;
  std::memset(&garbage, 0, sizeof garbage);
  EXPECT_ERRNO(EFAULT, zmq_msg_set_routing_id(&garbage, 1));
  EXPECT_ERRNO(EFAULT, zmq_msg_set_routing_id(nullptr, 1));
  EXPECT_EQ(zmq_msg_routing_id(&garbage), 0U);
  EXPECT_EQ(zmq_msg_routing_id(nullptr), 0U);
}

TEST_F(Drafts, ADishHearsTheGroupsThatItJoined) {
  void* radio = open(ZMQ_RADIO);
  void* dish = open(ZMQ_DISH);
  const std::string longest(ZMQ_GROUP_MAX_LENGTH, 'g');
  ASSERT_EQ(zmq_bind(radio, "inproc://radio"), 0);
  ASSERT_EQ(zmq_connect(dish, "inproc://radio"), 0);
  EXPECT_EQ(zmq_join(dish, "news"), 0);
  EXPECT_EQ(zmq_join(dish, longest.c_str()), 0);
  for (const char* group : {"sport", "news", longest.c_str()}) {
    zmq_msg_t msg;
    ASSERT_EQ(zmq_msg_init_buffer(&msg, "text", 4), 0);
    EXPECT_STREQ(zmq_msg_group(&msg), "");
    EXPECT_EQ(zmq_msg_set_group(&msg, group), 0);
    EXPECT_ERRNO(EINVAL, zmq_msg_set_group(&msg, (longest + "g").c_str()));
    EXPECT_STREQ(zmq_msg_group(&msg), group);
    EXPECT_EQ(zmq_msg_send(&msg, radio, 0), 4);
    EXPECT_STREQ(zmq_msg_group(&msg), "");
    ASSERT_EQ(zmq_msg_close(&msg), 0);
  }
  zmq_msg_t msg;
  ASSERT_EQ(zmq_msg_init(&msg), 0);
  EXPECT_EQ(zmq_msg_recv(&msg, dish, 0), 4);
  EXPECT_STREQ(zmq_msg_group(&msg), "news");
  EXPECT_EQ(zmq_msg_recv(&msg, dish, 0), 4);
  EXPECT_STREQ(zmq_msg_group(&msg), longest.c_str());
  EXPECT_EQ(zmq_msg_more(&msg), 0);
  zmq_msg_t moved;
  ASSERT_EQ(zmq_msg_init(&moved), 0);
  ASSERT_EQ(zmq_msg_move(&moved, &msg), 0);
  EXPECT_STREQ(zmq_msg_group(&moved), longest.c_str());
  EXPECT_STREQ(zmq_msg_group(&msg), "");
  ASSERT_EQ(zmq_msg_close(&moved), 0);
  ASSERT_EQ(zmq_msg_close(&msg), 0);
  EXPECT_EQ(zmq_leave(dish, "news"), 0);
  close({radio, dish});
}

TEST_F(Drafts, JoinAndLeaveRefuseMisuse) {
  void* radio = open(ZMQ_RADIO);
  void* dish = open(ZMQ_DISH);
  void* sub = open(ZMQ_SUB);
  const std::string too_long(ZMQ_GROUP_MAX_LENGTH + 1, 'g');
  EXPECT_EQ(zmq_join(dish, "group"), 0);
  EXPECT_ERRNO(EINVAL, zmq_join(dish, "group"));
  EXPECT_ERRNO(EINVAL, zmq_leave(dish, "other"));
  EXPECT_ERRNO(EINVAL, zmq_join(dish, too_long.c_str()));
  EXPECT_ERRNO(EINVAL, zmq_leave(dish, too_long.c_str()));
  EXPECT_ERRNO(EINVAL, zmq_join(dish, nullptr));
  EXPECT_ERRNO(EINVAL, zmq_leave(dish, nullptr));
  EXPECT_ERRNO(ENOTSUP, zmq_join(radio, "group"));
  EXPECT_ERRNO(ENOTSUP, zmq_leave(sub, "group"));
  EXPECT_ERRNO(ENOTSOCK, zmq_join(nullptr, "group"));
  EXPECT_ERRNO(ENOTSOCK, zmq_leave(context_, "group"));
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(dish, ZMQ_SUBSCRIBE, "a", 1));
  EXPECT_ERRNO(ENOTSUP, zmq_send(dish, "a", 1, 0));
  char byte = 0;
  EXPECT_ERRNO(ENOTSUP, zmq_recv(radio, &byte, 1, 0));
  zmq_msg_t msg;
  std::memset(&msg, 0, sizeof msg);
  EXPECT_ERRNO(EFAULT, zmq_msg_set_group(&msg, "group"));
  EXPECT_ERRNO(EFAULT, zmq_msg_group(&msg));
  ASSERT_EQ(zmq_msg_init(&msg), 0);
  EXPECT_ERRNO(EINVAL, zmq_msg_set_group(&msg, nullptr));
  ASSERT_EQ(zmq_msg_close(&msg), 0);
  const int one = 1;
  EXPECT_EQ(zmq_setsockopt(radio, ZMQ_XPUB_NODROP, &one, sizeof one), 0);
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(radio, ZMQ_XPUB_VERBOSE, &one, sizeof one));
  zmq_ctx_shutdown(context_);
  EXPECT_ERRNO(ETERM, zmq_join(dish, "more"));
  EXPECT_ERRNO(ETERM, zmq_leave(dish, "group"));
  close({radio, dish, sub});
}

TEST_F(Drafts, TheConnectingPeerMaySpeakFirst) {
  void* one = open(ZMQ_PEER);
  void* two = open(ZMQ_PEER);
  ASSERT_EQ(zmq_bind(one, "inproc://peer"), 0);
  const std::uint32_t id = zmq_connect_peer(two, "inproc://peer");
  EXPECT_NE(id, 0U);
  zmq_msg_t msg;
  ASSERT_EQ(zmq_msg_init_buffer(&msg, "hello", 5), 0);
  ASSERT_EQ(zmq_msg_set_routing_id(&msg, id), 0);
  EXPECT_EQ(zmq_msg_send(&msg, two, 0), 5);
  EXPECT_EQ(zmq_msg_recv(&msg, one, 0), 5);
  EXPECT_NE(zmq_msg_routing_id(&msg), 0U);
  EXPECT_EQ(zmq_msg_send(&msg, one, 0), 5);  // back to its sender
  EXPECT_EQ(zmq_msg_recv(&msg, two, 0), 5);
  EXPECT_EQ(zmq_msg_routing_id(&msg), id);
  ASSERT_EQ(zmq_msg_close(&msg), 0);
  close({one, two});
}

TEST_F(Drafts, ConnectPeerRefusesMisuse) {
  const auto refuses = [](void* socket, const char* endpoint, int number) {
    errno = 0;
    EXPECT_EQ(zmq_connect_peer(socket, endpoint), 0U);
    EXPECT_EQ(zmq_errno(), number) << endpoint << ": " << zmq_strerror(zmq_errno());
  };
  void* peer = open(ZMQ_PEER);
  void* client = open(ZMQ_CLIENT);
  void* dealer = open(ZMQ_DEALER);
  ASSERT_EQ(zmq_bind(dealer, "inproc://dealer"), 0);
  refuses(nullptr, "inproc://a", ENOTSOCK);
  refuses(client, "inproc://a", ENOTSUP);
  refuses(peer, nullptr, EINVAL);
  refuses(peer, "nonsense", EINVAL);
  refuses(peer, "foo://a", EPROTONOSUPPORT);
  refuses(peer, "inproc://dealer", ENOCOMPATPROTO);
  const int one = 1;
  ASSERT_EQ(zmq_setsockopt(peer, ZMQ_IMMEDIATE, &one, sizeof one), 0);
  refuses(peer, "inproc://a", EFAULT);
  const int zero = 0;
  ASSERT_EQ(zmq_setsockopt(peer, ZMQ_IMMEDIATE, &zero, sizeof zero), 0);
  zmq_ctx_shutdown(context_);
  refuses(peer, "inproc://a", ETERM);
  close({peer, client, dealer});
}

TEST_F(Drafts, ADisconnectedPeerIsUnreachable) {
  for (const char* place : {"inproc://ended", "tcp://127.0.0.1:*"}) {
    void* one = open(ZMQ_PEER);
    void* two = open(ZMQ_PEER);
    ASSERT_EQ(zmq_bind(one, place), 0);
    char endpoint[256];
    std::size_t size = sizeof endpoint;
    ASSERT_EQ(zmq_getsockopt(one, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    zmq_msg_t msg;
    ASSERT_EQ(zmq_msg_init_buffer(&msg, "hello", 5), 0);
    ASSERT_EQ(zmq_msg_set_routing_id(&msg, zmq_connect_peer(two, endpoint)), 0);
    ASSERT_EQ(zmq_msg_send(&msg, two, 0), 5);
    ASSERT_EQ(zmq_msg_recv(&msg, one, 0), 5);
    EXPECT_EQ(zmq_disconnect_peer(one, zmq_msg_routing_id(&msg)), 0);
    EXPECT_ERRNO(EHOSTUNREACH, zmq_msg_send(&msg, one, 0));
    EXPECT_ERRNO(EHOSTUNREACH, zmq_disconnect_peer(one, zmq_msg_routing_id(&msg)));
    ASSERT_EQ(zmq_msg_close(&msg), 0);
    close({one, two});
  }
}

TEST_F(Drafts, DisconnectPeerRefusesMisuse) {
  void* server = open(ZMQ_SERVER);
  void* router = open(ZMQ_ROUTER);
  EXPECT_ERRNO(ENOTSOCK, zmq_disconnect_peer(nullptr, 1));
  EXPECT_ERRNO(ENOTSUP, zmq_disconnect_peer(router, 1));
  EXPECT_ERRNO(EHOSTUNREACH, zmq_disconnect_peer(server, 0));
  EXPECT_ERRNO(EHOSTUNREACH, zmq_disconnect_peer(server, 1));
  zmq_ctx_shutdown(context_);
  EXPECT_ERRNO(ETERM, zmq_disconnect_peer(server, 1));
  close({server, router});
  EXPECT_ERRNO(ENOTSOCK, zmq_disconnect_peer(server, 1));
}

TEST_F(Drafts, ARouterTellsWhetherAPeerHasRoom) {
  void* router = open(ZMQ_ROUTER);
  void* dealer = open(ZMQ_DEALER);
  const int one = 1;
  ASSERT_EQ(zmq_setsockopt(router, ZMQ_SNDHWM, &one, sizeof one), 0);
  ASSERT_EQ(zmq_setsockopt(dealer, ZMQ_RCVHWM, &one, sizeof one), 0);
  ASSERT_EQ(zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &one, sizeof one), 0);
  ASSERT_EQ(zmq_setsockopt(dealer, ZMQ_ROUTING_ID, "id", 2), 0);
  ASSERT_EQ(zmq_bind(router, "inproc://router"), 0);
  EXPECT_ERRNO(EHOSTUNREACH, zmq_socket_get_peer_state(router, "id", 2));
  ASSERT_EQ(zmq_connect(dealer, "inproc://router"), 0);
  EXPECT_EQ(zmq_socket_get_peer_state(router, "id", 2), ZMQ_POLLOUT);
  EXPECT_ERRNO(EHOSTUNREACH, zmq_socket_get_peer_state(router, "i", 1));
  EXPECT_ERRNO(EHOSTUNREACH, zmq_socket_get_peer_state(router, nullptr, 0));
  while (zmq_send(router, "id", 2, ZMQ_SNDMORE | ZMQ_DONTWAIT) == 2) {
    ASSERT_EQ(zmq_send(router, "x", 1, ZMQ_DONTWAIT), 1);
  }
  EXPECT_EQ(zmq_socket_get_peer_state(router, "id", 2), 0);
  EXPECT_ERRNO(ENOTSUP, zmq_socket_get_peer_state(dealer, "id", 2));
  EXPECT_ERRNO(ENOTSOCK, zmq_socket_get_peer_state(nullptr, "id", 2));
  EXPECT_ERRNO(EFAULT, zmq_socket_get_peer_state(router, nullptr, 2));
  zmq_ctx_shutdown(context_);
  EXPECT_ERRNO(ETERM, zmq_socket_get_peer_state(router, "id", 2));
  close({router, dealer});
}

TEST_F(Drafts, ARouterTellsOfPeersThatComeAndGo) {
  void* router = open(ZMQ_ROUTER);
  void* dealer = open(ZMQ_DEALER);
  const int both = ZMQ_NOTIFY_CONNECT | ZMQ_NOTIFY_DISCONNECT;
  ASSERT_EQ(zmq_setsockopt(router, ZMQ_ROUTER_NOTIFY, &both, sizeof both), 0);
  ASSERT_EQ(zmq_setsockopt(dealer, ZMQ_ROUTING_ID, "X", 1), 0);
  ASSERT_EQ(zmq_bind(router, "tcp://127.0.0.1:*"), 0);
  char endpoint[256];
  std::size_t size = sizeof endpoint;
  ASSERT_EQ(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
  ASSERT_EQ(zmq_connect(dealer, endpoint), 0);
  EXPECT_EQ(receive(router), "X");
  EXPECT_EQ(receive(router), "");
  close({dealer});
  EXPECT_EQ(receive(router), "X");
  EXPECT_EQ(receive(router), "");
  dealer = open(ZMQ_DEALER);
  int value = -1;
  size = sizeof value;
  EXPECT_EQ(zmq_getsockopt(dealer, ZMQ_ROUTER_NOTIFY, &value, &size), 0);
  EXPECT_EQ(value, 0);
  close({router, dealer});
}

TEST_F(Drafts, MessagesComeWithAConnectionAndWithItsEnd) {
  void* server = open(ZMQ_SERVER);
  void* client = open(ZMQ_CLIENT);
  ASSERT_EQ(zmq_setsockopt(server, ZMQ_HELLO_MSG, "welcome", 7), 0);
  ASSERT_EQ(zmq_setsockopt(server, ZMQ_DISCONNECT_MSG, "gone", 4), 0);
  ASSERT_EQ(zmq_setsockopt(client, ZMQ_HELLO_MSG, "unsaid", 6), 0);
  ASSERT_EQ(zmq_setsockopt(client, ZMQ_HELLO_MSG, nullptr, 0), 0);
  ASSERT_EQ(zmq_setsockopt(client, ZMQ_HICCUP_MSG, "", 0), 0);
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(client, ZMQ_HICCUP_MSG, nullptr, 1));
  ASSERT_EQ(zmq_bind(server, "inproc://server"), 0);
  ASSERT_EQ(zmq_connect(client, "inproc://server"), 0);
  EXPECT_EQ(receive(client), "welcome");
  close({client});
  EXPECT_EQ(receive(server), "gone");
  close({server});
}

}  // namespace
}  // namespace weft::capi
