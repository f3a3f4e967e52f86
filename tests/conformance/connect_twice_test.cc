// SPDX-License-Identifier: MIT
// A second connect to an endpoint to which the socket is connected.
#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class ConnectTwice : public Conformance {
 protected:
  // The connections that a socket of this type makes by two connects to one endpoint.
  int connections(SocketType type, SocketType peer) {
    Socket server = make(peer);
    Socket mark = make(peer);
    Socket client = make(type);
    EXPECT_TRUE(client.watch_events());
    const std::string endpoint = bind(server);
    const std::string last = bind(mark);
    connect(client, endpoint);
    connect(client, endpoint);
    connect(client, last);  // the I/O thread connects in this order
    int made = 0;
    const Instant end = sys::now() + kLong;
    for (bool ready = false; !ready || made == 0;) {
      const auto event = client.next_event(time_left(end, sys::now()));
      EXPECT_TRUE(event) << event.error().message();
      if (!event) {
        break;
      }
      made += event->kind == EventKind::connected && event->endpoint == endpoint ? 1 : 0;
      ready |= event->kind == EventKind::handshake_succeeded && event->endpoint == last;
    }
    EXPECT_TRUE(client.disconnect(endpoint));
    EXPECT_EQ(client.disconnect(endpoint).error(), Errc::no_such_endpoint);
    return made;
  }
};
WEFT_TRANSPORTS_WHERE(ConnectTwice, over_streams);

TEST_P(ConnectTwice, MakesOneConnectionOfADealerASubAPubAndAReq) {
  EXPECT_EQ(connections(SocketType::dealer, SocketType::router), 1);
  EXPECT_EQ(connections(SocketType::sub, SocketType::pub), 1);
  EXPECT_EQ(connections(SocketType::pub, SocketType::sub), 1);
  EXPECT_EQ(connections(SocketType::req, SocketType::rep), 1);
}

TEST_P(ConnectTwice, AndAgainAfterADisconnectReachesThePeer) {
  Socket router = make(SocketType::router);
  Socket dealer = make(SocketType::dealer);
  const std::string endpoint = bind(router);
  connect(dealer, endpoint);
  ASSERT_TRUE(dealer.disconnect(endpoint));
  connect(dealer, endpoint);
  connect(dealer, endpoint);
  send(dealer, "a");
  EXPECT_EQ(recv(router).back(), "a");
}

TEST_P(ConnectTwice, ToTheEndpointThatTheSocketBoundMakesNoConnection) {
  Socket dealer = make(SocketType::dealer);
  const std::string own = bind(dealer);
  ASSERT_TRUE(dealer.connect(own));
  EXPECT_EQ(dealer.disconnect(own).error(), Errc::no_such_endpoint);
  Socket other = make(SocketType::dealer);
  connect(other, own);
  send(dealer, "to the other");  // it has no other peer
  send(dealer, "as well");
  EXPECT_EQ(recv_many(other, 2), (Texts{"to the other", "as well"}));
}

class ConnectTwiceInProcess : public Conformance {};
WEFT_TRANSPORTS_WHERE(ConnectTwiceInProcess, in_process);

TEST_P(ConnectTwiceInProcess, MakesTwoLinks) {
  Socket pull = make(SocketType::sub);
  Socket pub = make(SocketType::pub);
  const std::string endpoint = bind(pull);
  ASSERT_TRUE(pull.subscribe(""));
  connect(pub, endpoint);
  connect(pub, endpoint);
  send(pub, "a");
  EXPECT_EQ(recv_many(pull, 2), (Texts{"a", "a"}));
}

}  // namespace
}  // namespace weft::conformance
