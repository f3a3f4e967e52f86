// SPDX-License-Identifier: MIT
// weft_socket_subscribe() and its kin: the refusals, and a glob between two sockets.
#include <string>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class Filters : public CapiTest {
 protected:
  ~Filters() override {
    for (void* socket : sockets_) {
      EXPECT_EQ(zmq_close(socket), 0);
    }
  }
  void* socket(int type) { return sockets_.emplace_back(zmq_socket(context_, type)); }

 private:
  std::vector<void*> sockets_;
};

TEST_F(Filters, TheCallsRefuseWhatIsNoFilter) {
  void* const sub = socket(ZMQ_SUB);
  for (const int kind : {0, 5, -1}) {
    EXPECT_EQ(weft_socket_subscribe(sub, kind, "a", 1), -1);
    EXPECT_EQ(zmq_errno(), EINVAL);
  }
  EXPECT_EQ(weft_socket_subscribe(sub, WEFT_FILTER_GLOB, nullptr, 1), -1);
  EXPECT_EQ(zmq_errno(), EINVAL);
  EXPECT_EQ(weft_socket_subscribe(sub, WEFT_FILTER_TOKENS, "a*", 2), -1);
  EXPECT_EQ(zmq_errno(), EINVAL);
  const std::string longer(256, 'a');
  EXPECT_EQ(weft_socket_subscribe(sub, WEFT_FILTER_EXACT, longer.data(), longer.size()), -1);
  EXPECT_EQ(zmq_errno(), EMSGSIZE);
  EXPECT_EQ(weft_socket_unsubscribe(sub, WEFT_FILTER_EXACT, "a", 1), -1);
  EXPECT_EQ(zmq_errno(), EINVAL);
  EXPECT_EQ(weft_socket_subscribe_glob(sub, nullptr), -1);
  EXPECT_EQ(zmq_errno(), EINVAL);
  EXPECT_EQ(weft_socket_subscribe_glob(sub, "a["), -1);
  EXPECT_EQ(zmq_errno(), EINVAL);
  EXPECT_EQ(weft_socket_unsubscribe_glob(sub, "a*"), -1);
  EXPECT_EQ(zmq_errno(), EINVAL);
  void* const pub = socket(ZMQ_PUB);
  EXPECT_EQ(weft_socket_subscribe_glob(pub, "a*"), -1);
  EXPECT_EQ(zmq_errno(), EINVAL);
  EXPECT_EQ(weft_socket_subscribe(nullptr, WEFT_FILTER_GLOB, "a*", 2), -1);
  EXPECT_EQ(zmq_errno(), ENOTSOCK);
  EXPECT_EQ(weft_socket_unsubscribe(nullptr, WEFT_FILTER_GLOB, "a*", 2), -1);
  EXPECT_EQ(zmq_errno(), ENOTSOCK);
  EXPECT_EQ(weft_socket_subscribe_glob(nullptr, "a*"), -1);
  EXPECT_EQ(zmq_errno(), ENOTSOCK);
  EXPECT_EQ(weft_socket_unsubscribe_glob(nullptr, "a*"), -1);
  EXPECT_EQ(zmq_errno(), ENOTSOCK);
}

TEST_F(Filters, EachKindReceivesWhatItMatches) {
  void* const xpub = socket(ZMQ_XPUB);
  void* const sub = socket(ZMQ_SUB);
  ASSERT_EQ(zmq_bind(xpub, "inproc://filters"), 0);
  ASSERT_EQ(zmq_connect(sub, "inproc://filters"), 0);
  ASSERT_EQ(weft_socket_subscribe_glob(sub, "a:*:b"), 0);
  ASSERT_EQ(weft_socket_subscribe(sub, WEFT_FILTER_TOKENS, "px.*", 4), 0);
  ASSERT_EQ(weft_socket_subscribe(sub, WEFT_FILTER_TOKENS, "plain", 5), 0);
  ASSERT_EQ(weft_socket_subscribe(sub, WEFT_FILTER_EXACT, "player:1", 8), 0);
  ASSERT_EQ(weft_socket_subscribe(sub, WEFT_FILTER_PREFIX, "end", 3), 0);
  ASSERT_EQ(weft_socket_subscribe_glob(sub, "x*"), 0);
  ASSERT_EQ(weft_socket_unsubscribe_glob(sub, "x*"), 0);
  for (const char* topic :
       {"a:x:c", "a:x:b", "px.1.2", "px.1", "plainer", "plain", "player:10", "player:1", "x", "end."}) {
    ASSERT_GE(zmq_send(xpub, topic, std::string(topic).size(), 0), 0);
  }
  for (const char* topic : {"a:x:b", "px.1", "plain", "player:1", "end."}) {
    char got[16] = {};
    ASSERT_GE(zmq_recv(sub, got, sizeof got - 1, 0), 0);
    EXPECT_STREQ(got, topic);
  }
}

}  // namespace
}  // namespace weft::capi
