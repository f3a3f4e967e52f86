// SPDX-License-Identifier: MIT
// The effects of the options of patterns, over inproc, where every message arrives at once.
#include <poll.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
using Parts = std::vector<std::string>;

class PatternOptions : public CapiTest {
 protected:
  ~PatternOptions() override {
    for (void* const socket : sockets_) {
      zmq_close(socket);
    }
  }
  void* open(int type) {
    sockets_.push_back(zmq_socket(context_, type));
    return sockets_.back();
  }
  static void set(void* socket, int option, int value) {
    ASSERT_EQ(zmq_setsockopt(socket, option, &value, sizeof value), 0) << option;
  }
  static void set(void* socket, int option, const std::string& value) {
    ASSERT_EQ(zmq_setsockopt(socket, option, value.data(), value.size()), 0) << option;
  }
  std::string bind(void* socket) {
    std::string endpoint = "inproc://place " + std::to_string(++places_);
    EXPECT_EQ(zmq_bind(socket, endpoint.c_str()), 0);
    return endpoint;
  }
  void join(void* connecting, void* binding) { EXPECT_EQ(zmq_connect(connecting, bind(binding).c_str()), 0); }
  static void send(void* socket, const Parts& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int flags = ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0);
      ASSERT_EQ(zmq_send(socket, parts[i].data(), parts[i].size(), flags), static_cast<int>(parts[i].size()));
    }
  }
  // The next message; without one, no parts.
  static Parts receive(void* socket) {
    Parts parts;
    int more = 1;
    char bytes[64];
    for (std::size_t size = sizeof more; more != 0;) {
      const int length = zmq_recv(socket, bytes, sizeof bytes, ZMQ_DONTWAIT);
      if (length < 0) {
        return parts;
      }
      parts.emplace_back(bytes, static_cast<std::size_t>(length));
      EXPECT_EQ(zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size), 0);
    }
    return parts;
  }
  // Every message that has arrived.
  static std::vector<Parts> receive_all(void* socket) {
    std::vector<Parts> all;
    for (Parts next; !(next = receive(socket)).empty();) {
      all.push_back(next);
    }
    return all;
  }

  std::vector<void*> sockets_;
  int places_ = 0;
};

const Parts kSubscribed{"\1t"s};
const Parts kUnsubscribed{std::string("\0t", 2)};

TEST_F(PatternOptions, XpubVerboseTellsOfEverySubscriptionXpubVerboserOfUnsubscriptionsToo) {
  struct Row {
    int option;
    std::size_t subscriptions;
    std::size_t unsubscriptions;
  };
  for (const Row& row : {Row{0, 1, 1}, Row{ZMQ_XPUB_VERBOSE, 2, 1}, Row{ZMQ_XPUB_VERBOSER, 2, 2}}) {
    void* const xpub = open(ZMQ_XPUB);
    if (row.option != 0) {
      set(xpub, row.option, 1);
    }
    const std::string endpoint = bind(xpub);
    void* const subs[] = {open(ZMQ_SUB), open(ZMQ_SUB)};
    for (void* const sub : subs) {
      ASSERT_EQ(zmq_connect(sub, endpoint.c_str()), 0);
      set(sub, ZMQ_SUBSCRIBE, "t"s);
    }
    EXPECT_EQ(receive_all(xpub), std::vector<Parts>(row.subscriptions, kSubscribed));
    for (void* const sub : subs) {
      set(sub, ZMQ_UNSUBSCRIBE, "t"s);
    }
    EXPECT_EQ(receive_all(xpub), std::vector<Parts>(row.unsubscriptions, kUnsubscribed));
  }
}

TEST_F(PatternOptions, WithXpubNodropThePublisherIsHeldUp) {
  for (const int on : {0, 1}) {
    void* const pub = open(ZMQ_PUB);
    void* const sub = open(ZMQ_SUB);
    set(pub, ZMQ_XPUB_NODROP, on);
    set(pub, ZMQ_SNDHWM, 1);
    set(sub, ZMQ_RCVHWM, 1);
    set(sub, ZMQ_SUBSCRIBE, ""s);
    join(sub, pub);
    int sent = 0;
    while (sent < 100 && zmq_send(pub, "x", 1, ZMQ_DONTWAIT) == 1) {
      ++sent;
    }
    EXPECT_EQ(sent, on != 0 ? 2 : 100);
  }
}

TEST_F(PatternOptions, WithXpubManualTheApplicationSubscribesForThePeer) {
  void* const xpub = open(ZMQ_XPUB);
  void* const sub = open(ZMQ_SUB);
  set(xpub, ZMQ_XPUB_MANUAL, 1);
  join(sub, xpub);
  set(sub, ZMQ_SUBSCRIBE, "t"s);
  EXPECT_EQ(receive(xpub), kSubscribed);
  send(xpub, {"t"});
  EXPECT_EQ(receive(sub), Parts());
  set(xpub, ZMQ_SUBSCRIBE, "t"s);
  send(xpub, {"t"});
  EXPECT_EQ(receive(sub), Parts{"t"});
  set(xpub, ZMQ_UNSUBSCRIBE, "t"s);
  send(xpub, {"t"});
  EXPECT_EQ(receive(sub), Parts());
}

TEST_F(PatternOptions, WithXpubManualLastValueTheNextMessageIsForTheLastSubscriber) {
  void* const xpub = open(ZMQ_XPUB);
  void* const subs[] = {open(ZMQ_SUB), open(ZMQ_SUB)};
  set(xpub, ZMQ_XPUB_MANUAL_LAST_VALUE, 1);
  const std::string endpoint = bind(xpub);
  for (void* const sub : subs) {
    ASSERT_EQ(zmq_connect(sub, endpoint.c_str()), 0);
    set(sub, ZMQ_SUBSCRIBE, "t"s);
    EXPECT_EQ(receive(xpub), kSubscribed);
    set(xpub, ZMQ_SUBSCRIBE, "t"s);
  }
  send(xpub, {"t", "to the second"});
  EXPECT_EQ(receive(subs[0]), Parts());
  EXPECT_EQ(receive(subs[1]), (Parts{"t", "to the second"}));
  send(xpub, {"t"});
  EXPECT_EQ(receive(subs[0]), Parts{"t"});
  EXPECT_EQ(receive(subs[1]), Parts{"t"});
}

TEST_F(PatternOptions, APartBehindTheFirstSubscribesToNothingWithAndWithoutOnlyFirstSubscribe) {
  for (const int on : {0, 1}) {
    void* const xpub = open(ZMQ_XPUB);
    void* const xsub = open(ZMQ_XSUB);
    set(xpub, ZMQ_ONLY_FIRST_SUBSCRIBE, on);
    set(xsub, ZMQ_ONLY_FIRST_SUBSCRIBE, on);
    join(xsub, xpub);
    send(xsub, {"upstream", "\1t"});
    EXPECT_EQ(receive(xpub), (Parts{"upstream", "\1t"}));
    send(xpub, {"t"});
    EXPECT_EQ(receive(xsub), Parts());
  }
}

TEST_F(PatternOptions, WithXsubVerboseUnsubscribeEveryUnsubscriptionIsPassedOn) {
  for (const int on : {0, 1}) {
    void* const xpub = open(ZMQ_XPUB);
    void* const xsub = open(ZMQ_XSUB);
    set(xpub, ZMQ_XPUB_VERBOSER, 1);
    set(xsub, ZMQ_XSUB_VERBOSE_UNSUBSCRIBE, on);
    join(xsub, xpub);
    send(xsub, kSubscribed);
    send(xsub, kSubscribed);
    EXPECT_EQ(receive_all(xpub).size(), 2u);
    send(xsub, kUnsubscribed);
    EXPECT_EQ(receive_all(xpub).size(), on != 0 ? 1u : 0u);
    send(xsub, kUnsubscribed);
    EXPECT_EQ(receive_all(xpub), std::vector<Parts>{kUnsubscribed});
  }
}

TEST_F(PatternOptions, TheTopicsCountIsThatOfThePeersOrOfTheSocketItself) {
  void* const pub = open(ZMQ_PUB);
  void* const sub = open(ZMQ_SUB);
  join(sub, pub);
  const auto count = [](void* socket) {
    int topics = -1;
    std::size_t size = sizeof topics;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_TOPICS_COUNT, &topics, &size), 0);
    return topics;
  };
  int topics = 0;
  for (const char* topic : {"a", "ab", "abc"}) {
    set(sub, ZMQ_SUBSCRIBE, std::string(topic));
    EXPECT_EQ(count(sub), ++topics);
    EXPECT_EQ(count(pub), topics);
  }
  set(sub, ZMQ_UNSUBSCRIBE, "ab"s);
  EXPECT_EQ(count(sub), 2);
  EXPECT_EQ(count(pub), 2);
  EXPECT_ERRNO(EINVAL, zmq_getsockopt(open(ZMQ_PUSH), ZMQ_TOPICS_COUNT, &topics, nullptr));
}

TEST_F(PatternOptions, TheXpubWelcomeMsgIsTheFirstMessageOfASubscriber) {
  void* const xpub = open(ZMQ_XPUB);
  void* const sub = open(ZMQ_SUB);
  set(xpub, ZMQ_XPUB_WELCOME_MSG, "welcome"s);
  set(sub, ZMQ_SUBSCRIBE, ""s);
  join(sub, xpub);
  EXPECT_EQ(receive(xpub), Parts{"\1"});
  EXPECT_EQ(receive(sub), Parts{"welcome"});
}

TEST_F(PatternOptions, AnUnsubscribedTopicDoesNotCome) {
  void* const pub = open(ZMQ_PUB);
  void* const sub = open(ZMQ_SUB);
  join(sub, pub);
  send(pub, {"t"});
  EXPECT_EQ(receive(sub), Parts());
  set(sub, ZMQ_SUBSCRIBE, "t"s);
  send(pub, {"t"});
  EXPECT_EQ(receive(sub), Parts{"t"});
  set(sub, ZMQ_UNSUBSCRIBE, "t"s);
  send(pub, {"t"});
  EXPECT_EQ(receive(sub), Parts());
}

TEST_F(PatternOptions, WithInvertMatchingUnsubscribedTopicsCome) {
  void* const pub = open(ZMQ_PUB);
  void* const sub = open(ZMQ_SUB);
  set(pub, ZMQ_INVERT_MATCHING, 1);
  set(sub, ZMQ_INVERT_MATCHING, 1);
  set(sub, ZMQ_SUBSCRIBE, "t"s);
  join(sub, pub);
  send(pub, {"t"});
  send(pub, {"u"});
  EXPECT_EQ(receive_all(sub), std::vector<Parts>{Parts{"u"}});
}

TEST_F(PatternOptions, WithConflateOnlyTheNewestIsKept) {
  void* const push = open(ZMQ_PUSH);
  void* const pull = open(ZMQ_PULL);
  set(pull, ZMQ_CONFLATE, 1);
  join(pull, push);  // over inproc the option of the connecting socket counts
  for (const char* text : {"1", "2", "3"}) {
    send(push, {text});
  }
  EXPECT_EQ(receive_all(pull), std::vector<Parts>{Parts{"3"}});
}

TEST_F(PatternOptions, WithReqRelaxedARequestMayFollowARequest) {
  void* const req = open(ZMQ_REQ);
  void* const rep = open(ZMQ_REP);
  join(req, rep);
  send(req, {"1"});
  EXPECT_ERRNO(EFSM, zmq_send(req, "2", 1, ZMQ_DONTWAIT));
  set(req, ZMQ_REQ_RELAXED, 1);
  send(req, {"2"});
}

TEST_F(PatternOptions, WithReqCorrelateARequestIsNumbered) {
  for (const int on : {0, 1}) {
    void* const req = open(ZMQ_REQ);
    void* const router = open(ZMQ_ROUTER);
    set(req, ZMQ_REQ_CORRELATE, on);
    join(req, router);
    send(req, {"q"});
    const Parts got = receive(router);
    ASSERT_EQ(got.size(), on != 0 ? 4u : 3u);
    EXPECT_EQ(got[1].size(), on != 0 ? 4u : 0u);
    EXPECT_EQ(got.back(), "q");
  }
}

TEST_F(PatternOptions, AProbeIsAnEmptyMessageUnderTheRoutingId) {
  void* const dealer = open(ZMQ_DEALER);
  void* const router = open(ZMQ_ROUTER);
  set(dealer, ZMQ_PROBE_ROUTER, 1);
  set(dealer, ZMQ_ROUTING_ID, "who"s);
  join(dealer, router);
  EXPECT_EQ(receive(router), (Parts{"who", ""}));
}

TEST_F(PatternOptions, WithRouterHandoverTheNewcomerTakesTheRoutingId) {
  for (const int on : {0, 1}) {
    void* const router = open(ZMQ_ROUTER);
    void* const dealers[] = {open(ZMQ_DEALER), open(ZMQ_DEALER)};
    set(router, ZMQ_ROUTER_HANDOVER, on);
    const std::string endpoint = bind(router);
    for (void* const dealer : dealers) {
      set(dealer, ZMQ_ROUTING_ID, "d"s);
      ASSERT_EQ(zmq_connect(dealer, endpoint.c_str()), 0);
    }
    send(router, {"d", "x"});
    EXPECT_EQ(receive(dealers[0]).empty(), on != 0);
    EXPECT_EQ(receive(dealers[1]).empty(), on == 0);
  }
}

TEST_F(PatternOptions, ConnectRoutingIdNamesTheConnectedPeer) {
  void* const router = open(ZMQ_ROUTER);
  void* const dealer = open(ZMQ_DEALER);
  set(router, ZMQ_ROUTER_MANDATORY, 1);
  set(router, ZMQ_CONNECT_ROUTING_ID, "peer"s);
  join(router, dealer);
  send(router, {"peer", "x"});
  EXPECT_EQ(receive(dealer), Parts{"x"});
}

TEST_F(PatternOptions, ATimeoutEndsTheWait) {
  void* const pair = open(ZMQ_PAIR);
  for (const int timeout : {0, 1}) {  // the default is for ever
    set(pair, ZMQ_RCVTIMEO, timeout);
    set(pair, ZMQ_SNDTIMEO, timeout);
    char byte = 0;
    EXPECT_ERRNO(EAGAIN, zmq_recv(pair, &byte, 1, 0));
    EXPECT_ERRNO(EAGAIN, zmq_send(pair, "x", 1, 0));
  }
}

TEST_F(PatternOptions, TheFdIsReadableWhenThereAreEvents) {
  void* const one = open(ZMQ_PAIR);
  void* const two = open(ZMQ_PAIR);
  join(two, one);
  int fd = -1;
  int events = 0;
  std::size_t size = sizeof fd;
  ASSERT_EQ(zmq_getsockopt(one, ZMQ_FD, &fd, &size), 0);
  ASSERT_EQ(zmq_getsockopt(one, ZMQ_EVENTS, &events, &size), 0);
  EXPECT_EQ(events, ZMQ_POLLOUT);
  send(two, {"x"});
  pollfd item{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&item, 1, 20'000), 1);
  ASSERT_EQ(zmq_getsockopt(one, ZMQ_EVENTS, &events, &size), 0);
  EXPECT_EQ(events, ZMQ_POLLIN | ZMQ_POLLOUT);
  EXPECT_EQ(receive(one), Parts{"x"});
  ASSERT_EQ(zmq_getsockopt(one, ZMQ_EVENTS, &events, &size), 0);
  EXPECT_EQ(events, ZMQ_POLLOUT);
}

TEST_F(PatternOptions, TypeAndThreadSafeAreThoseOfTheType) {
  for (int type = ZMQ_PAIR; type <= ZMQ_STREAM; ++type) {
    int value = -1;
    std::size_t size = sizeof value;
    ASSERT_EQ(zmq_getsockopt(open(type), ZMQ_TYPE, &value, &size), 0);
    EXPECT_EQ(value, type);
    ASSERT_EQ(zmq_getsockopt(sockets_.back(), ZMQ_THREAD_SAFE, &value, &size), 0);
    EXPECT_EQ(value, 0);
  }
  int value = -1;
  std::size_t size = sizeof value;
  ASSERT_EQ(zmq_getsockopt(open(ZMQ_SERVER), ZMQ_THREAD_SAFE, &value, &size), 0);
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace weft::capi
