// SPDX-License-Identifier: MIT
// The draft socket types and what goes with them.
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
  for (const int type : {ZMQ_GATHER, ZMQ_SCATTER, ZMQ_CHANNEL, ZMQ_CLIENT, ZMQ_SERVER}) {
    void* socket = open(type);
    int value = -1;
    std::size_t size = sizeof value;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_THREAD_SAFE, &value, &size), 0);
    EXPECT_EQ(value, 1) << type;
    EXPECT_ERRNO(type == ZMQ_GATHER ? ENOTSUP : EINVAL, zmq_send(socket, "a", 1, ZMQ_SNDMORE | ZMQ_DONTWAIT));
    close({socket});
  }
  EXPECT_ERRNO(EINVAL, zmq_socket(context_, ZMQ_DGRAM));
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

}  // namespace
}  // namespace weft::capi
