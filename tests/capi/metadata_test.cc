// SPDX-License-Identifier: MIT
// The properties of a received message, which describe its sender.
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

// Sends one message from a PUSH to a PULL.
class MessageProperties : public testing::Test {
 protected:
  void exchange(const char* endpoint) {
    ASSERT_EQ(zmq_setsockopt(push_, ZMQ_ROUTING_ID, "me", 2), 0);
    ASSERT_EQ(zmq_bind(pull_, endpoint), 0);
    char exact[256];
    size_t size = sizeof exact;
    ASSERT_EQ(zmq_getsockopt(pull_, ZMQ_LAST_ENDPOINT, exact, &size), 0);
    ASSERT_EQ(zmq_connect(push_, exact), 0);
    ASSERT_EQ(zmq_send(push_, "x", 1, 0), 1);
    ASSERT_EQ(zmq_msg_recv(&message_, pull_, 0), 1);
  }
  void SetUp() override { zmq_msg_init(&message_); }
  void TearDown() override {
    zmq_msg_close(&message_);
    zmq_close(push_);
    zmq_close(pull_);
    zmq_ctx_term(context_);
  }
  std::string text(const char* property) {
    const char* value = zmq_msg_gets(&message_, property);
    return value == nullptr ? "(null)" : value;
  }

  void* context_ = zmq_ctx_new();
  void* push_ = zmq_socket(context_, ZMQ_PUSH);
  void* pull_ = zmq_socket(context_, ZMQ_PULL);
  zmq_msg_t message_;
};

TEST_F(MessageProperties, NameThePeerOfAConnection) {
  exchange("tcp://127.0.0.1:*");
  EXPECT_EQ(text("Socket-Type"), "PUSH");
  EXPECT_EQ(text("Peer-Address"), "127.0.0.1");
  EXPECT_ERRNO(EINVAL, zmq_msg_gets(&message_, "User-Id"));
  EXPECT_ERRNO(EINVAL, zmq_msg_gets(&message_, nullptr));
}

TEST_F(MessageProperties, NameTheMetadataOfTheSender) {
  for (const char* property : {"X-hello:world", "X-second:a:b", "X-hello:too late"}) {
    ASSERT_EQ(zmq_setsockopt(push_, ZMQ_METADATA, property, std::strlen(property)), 0);
  }
  exchange("tcp://127.0.0.1:*");
  EXPECT_EQ(text("X-hello"), "world");
  EXPECT_EQ(text("X-second"), "a:b");
  EXPECT_EQ(text("hello"), "(null)");
}

TEST_F(MessageProperties, OutliveTheConnectionAndGoWithCopies) {
  exchange("tcp://127.0.0.1:*");
  ASSERT_EQ(zmq_close(push_), 0);
  push_ = zmq_socket(context_, ZMQ_PUSH);
  zmq_msg_t copy;
  zmq_msg_init(&copy);
  ASSERT_EQ(zmq_msg_copy(&copy, &message_), 0);
  EXPECT_STREQ(zmq_msg_gets(&copy, "Socket-Type"), "PUSH");
  zmq_msg_close(&copy);
  EXPECT_ERRNO(EFAULT, zmq_msg_gets(&copy, "Socket-Type"));
}

TEST_F(MessageProperties, NameTheDescriptorOfTheConnectionWhichMayBeGone) {
  exchange("tcp://127.0.0.1:*");
  const int fd = zmq_msg_get(&message_, ZMQ_SRCFD);
  sockaddr_storage address;
  socklen_t size = sizeof address;
  EXPECT_EQ(::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(text("__fd"), std::to_string(fd));
  zmq_msg_t own;
  zmq_msg_init(&own);
  EXPECT_ERRNO(EINVAL, zmq_msg_get(&own, ZMQ_SRCFD));
  zmq_msg_close(&own);
}

TEST_F(MessageProperties, SayWhetherOthersMaySeeTheBytes) {
  static char bytes[100];
  zmq_msg_t copy;
  zmq_msg_init_data(&message_, bytes, sizeof bytes, nullptr, nullptr);
  EXPECT_EQ(zmq_msg_get(&message_, ZMQ_SHARED), 1) << "constant";
  zmq_msg_close(&message_);
  zmq_msg_init_data(&message_, bytes, sizeof bytes, [](void*, void*) {}, nullptr);
  EXPECT_EQ(zmq_msg_get(&message_, ZMQ_SHARED), 0) << "to be freed";
  zmq_msg_init(&copy);
  ASSERT_EQ(zmq_msg_copy(&copy, &message_), 0);
  EXPECT_EQ(zmq_msg_get(&message_, ZMQ_SHARED), 1);
  EXPECT_EQ(zmq_msg_get(&copy, ZMQ_SHARED), 1);
  zmq_msg_close(&copy);
}

TEST_F(MessageProperties, SayWhetherThereIsMore) {
  EXPECT_EQ(zmq_msg_get(&message_, ZMQ_MORE), 0);
  EXPECT_EQ(zmq_msg_more(&message_), 0);
  ASSERT_EQ(zmq_bind(pull_, "inproc://parts"), 0);
  ASSERT_EQ(zmq_connect(push_, "inproc://parts"), 0);
  ASSERT_EQ(zmq_send(push_, "a", 1, ZMQ_SNDMORE), 1);
  ASSERT_EQ(zmq_send(push_, "b", 1, 0), 1);
  for (const int more : {1, 0}) {
    ASSERT_EQ(zmq_msg_recv(&message_, pull_, 0), 1);
    EXPECT_EQ(zmq_msg_get(&message_, ZMQ_MORE), more);
    EXPECT_EQ(zmq_msg_more(&message_), more);
  }
}

TEST_F(MessageProperties, AreNoneInsideTheProcessAndOfOwnMessages) {
  exchange("inproc://place");
  EXPECT_ERRNO(EINVAL, zmq_msg_gets(&message_, "Socket-Type"));
  zmq_msg_close(&message_);
  zmq_msg_init(&message_);
  EXPECT_ERRNO(EINVAL, zmq_msg_gets(&message_, "Socket-Type"));
}

}  // namespace
}  // namespace weft::capi
