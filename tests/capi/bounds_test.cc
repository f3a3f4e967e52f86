// SPDX-License-Identifier: MIT
// CapiBounds on a socket's subscriptions and messages.
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class CapiBounds : public CapiTest {
 protected:
  ~CapiBounds() override {
    EXPECT_EQ(zmq_close(sub_), 0);
    EXPECT_EQ(zmq_close(push_), 0);
    EXPECT_EQ(zmq_close(pull_), 0);
  }

  void* const sub_ = zmq_socket(context_, ZMQ_SUB);
  void* const push_ = zmq_socket(context_, ZMQ_PUSH);
  void* const pull_ = zmq_socket(context_, ZMQ_PULL);
};

TEST_F(CapiBounds, ASubscriptionBeyondSubscriptionsMaxIsRefused) {
  const int two = 2;
  ASSERT_EQ(zmq_setsockopt(sub_, WEFT_SUBSCRIPTIONS_MAX, &two, sizeof two), 0);
  EXPECT_EQ(zmq_setsockopt(sub_, ZMQ_SUBSCRIBE, "a", 1), 0);
  EXPECT_EQ(zmq_setsockopt(sub_, ZMQ_SUBSCRIBE, "b", 1), 0);
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(sub_, ZMQ_SUBSCRIBE, "c", 1));
  const std::string topic(65'537, 'x');
  ASSERT_EQ(zmq_setsockopt(sub_, ZMQ_UNSUBSCRIBE, "b", 1), 0);
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(sub_, ZMQ_SUBSCRIBE, topic.data(), topic.size()));
  EXPECT_EQ(zmq_setsockopt(sub_, ZMQ_SUBSCRIBE, topic.data(), topic.size() - 1), 0);
}

TEST_F(CapiBounds, APartBeyondMessagePartsMaxIsRefused) {
  const int two = 2;
  ASSERT_EQ(zmq_setsockopt(push_, WEFT_MESSAGE_PARTS_MAX, &two, sizeof two), 0);
  ASSERT_EQ(zmq_bind(pull_, "inproc://parts"), 0);
  ASSERT_EQ(zmq_connect(push_, "inproc://parts"), 0);
  EXPECT_EQ(zmq_send(push_, "1", 1, ZMQ_SNDMORE), 1);
  EXPECT_ERRNO(EMSGSIZE, zmq_send(push_, "2", 1, ZMQ_SNDMORE));
  EXPECT_EQ(zmq_send(push_, "2", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(zmq_recv(pull_, &byte, 1, 0), 1);
  EXPECT_EQ(zmq_recv(pull_, &byte, 1, 0), 1);
  EXPECT_EQ(byte, '2');
}

}  // namespace
}  // namespace weft::capi
