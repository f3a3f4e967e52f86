// SPDX-License-Identifier: MIT
// Names of endpoints: the names that zmq_unbind and zmq_disconnect accept, and the end of their connections.
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class CapiEndpointTest : public CapiTest {
 protected:
  void* make(int type) {
    void* const socket = zmq_socket(context_, type);
    const int zero = 0;
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &kLong, sizeof kLong), 0);
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_SNDTIMEO, &kLong, sizeof kLong), 0);
    return socket;
  }
  static std::string bind(void* socket, const char* endpoint) {
    EXPECT_EQ(zmq_bind(socket, endpoint), 0);
    char exact[256];
    std::size_t size = sizeof exact;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, exact, &size), 0);
    return exact;
  }
  static std::string receive(void* socket, int flags = 0) {
    char text[64];
    const int size = zmq_recv(socket, text, sizeof text, flags);
    return size < 0 ? zmq_strerror(zmq_errno()) : std::string(text, static_cast<std::size_t>(size));
  }
};

TEST_F(CapiEndpointTest, AnUnknownEndpointIsRefusedWithTheErrnoOfItsFault) {
  void* const socket = make(ZMQ_PULL);
  struct Row {
    const char* endpoint;
    int number;
  };
  constexpr Row kRows[] = {{"", EINVAL},
                           {"://", EINVAL},
                           {"://coop", EINVAL},
                           {"tcp", EINVAL},
                           {"tcp://", EINVAL},
                           {"inproc://", EINVAL},
                           {"carrier-pigeon://coop", EPROTONOSUPPORT},
                           {"tcp://127.0.0.1:1", ENOENT},
                           {"tcp://127.0.0.1", ENOENT},
                           {"ipc:///tmp/nobody", ENOENT},
                           {"inproc://nobody", ENOENT}};
  for (const Row& row : kRows) {
    EXPECT_ERRNO(row.number, zmq_unbind(socket, row.endpoint)) << row.endpoint;
    EXPECT_ERRNO(row.number, zmq_disconnect(socket, row.endpoint)) << row.endpoint;
  }
  EXPECT_ERRNO(EINVAL, zmq_unbind(socket, nullptr));
  EXPECT_ERRNO(EINVAL, zmq_disconnect(socket, nullptr));
  EXPECT_ERRNO(ENOTSOCK, zmq_unbind(nullptr, "inproc://a"));
  EXPECT_ERRNO(ENOTSOCK, zmq_disconnect(nullptr, "inproc://a"));
  zmq_close(socket);
}

TEST_F(CapiEndpointTest, EitherCallEndsEitherKind) {
  for (const char* wanted : {"tcp://127.0.0.1:*", "ipc://*", "inproc://either"}) {
    void* const binder = make(ZMQ_PULL);
    void* const connector = make(ZMQ_PUSH);
    const std::string endpoint = bind(binder, wanted);
    ASSERT_EQ(zmq_connect(connector, endpoint.c_str()), 0);
    EXPECT_EQ(zmq_unbind(connector, endpoint.c_str()), 0);
    EXPECT_ERRNO(ENOENT, zmq_disconnect(connector, endpoint.c_str()));
    EXPECT_EQ(zmq_disconnect(binder, endpoint.c_str()), 0);
    EXPECT_ERRNO(ENOENT, zmq_unbind(binder, endpoint.c_str()));
    zmq_close(connector);
    zmq_close(binder);
  }
}

TEST_F(CapiEndpointTest, AWildcardIsNoNameForUnbind) {
  void* const socket = make(ZMQ_PULL);
  for (const char* wanted : {"tcp://127.0.0.1:*", "tcp://*:*", "ipc://*"}) {
    const std::string endpoint = bind(socket, wanted);
    EXPECT_ERRNO(ENOENT, zmq_unbind(socket, wanted)) << wanted;
    EXPECT_EQ(zmq_unbind(socket, endpoint.c_str()), 0) << endpoint;
  }
  zmq_close(socket);
}

TEST_F(CapiEndpointTest, AfterDisconnectNothingIsReceivedFromThere) {
  for (const char* wanted : {"tcp://127.0.0.1:*", "ipc://*", "inproc://left"}) {
    void* const push = make(ZMQ_PUSH);
    void* const pull = make(ZMQ_PULL);
    const std::string endpoint = bind(push, wanted);
    ASSERT_EQ(zmq_connect(pull, endpoint.c_str()), 0);
    for (const char* text : {"1", "2"}) {
      ASSERT_EQ(zmq_send(push, text, 1, 0), 1);
    }
    EXPECT_EQ(receive(pull), "1");
    EXPECT_EQ(zmq_disconnect(pull, endpoint.c_str()), 0);
    EXPECT_EQ(receive(pull, ZMQ_DONTWAIT), zmq_strerror(EAGAIN)) << wanted;
    zmq_close(pull);
    zmq_close(push);
  }
}

// A PAIR has room for one peer. The connection that gives up makes room for the next.
TEST_F(CapiEndpointTest, AConnectionThatMayNotReconnectLeavesItsSocket) {
  const std::string abstract = "ipc://@leaves " + std::to_string(::getpid());
  for (const char* wanted : {"tcp://127.0.0.1:*", abstract.c_str()}) {
    void* const binder = make(ZMQ_PAIR);
    void* const connector = make(ZMQ_PAIR);
    const int never = -1;
    const int no_mark = 0;  // a send finds no room only where it finds no peer
    ASSERT_EQ(zmq_setsockopt(connector, ZMQ_RECONNECT_IVL, &never, sizeof never), 0);
    ASSERT_EQ(zmq_setsockopt(connector, ZMQ_SNDHWM, &no_mark, sizeof no_mark), 0);
    const std::string endpoint = bind(binder, wanted);
    ASSERT_EQ(zmq_connect(connector, endpoint.c_str()), 0);
    ASSERT_EQ(zmq_send(binder, "1", 1, 0), 1);
    EXPECT_EQ(receive(connector), "1");
    ASSERT_EQ(zmq_unbind(binder, endpoint.c_str()), 0);
    // Once the connector has noticed, it has no peer.
    while (zmq_send(connector, "lost", 4, ZMQ_DONTWAIT) == 4) {
    }
    while (zmq_bind(binder, endpoint.c_str()) != 0) {
      ASSERT_EQ(zmq_errno(), EADDRINUSE);
    }
    ASSERT_EQ(zmq_connect(connector, endpoint.c_str()), 0);
    ASSERT_EQ(zmq_send(connector, "2", 1, 0), 1);
    EXPECT_EQ(receive(binder), "2") << wanted;
    zmq_close(connector);
    zmq_close(binder);
  }
}

TEST_F(CapiEndpointTest, DisconnectEndsEveryConnectionOfThatName) {
  for (const char* wanted : {"tcp://127.0.0.1:*", "ipc://*", "inproc://twice"}) {
    void* const binder = make(ZMQ_PULL);
    void* const connector = make(ZMQ_PUSH);
    const std::string endpoint = bind(binder, wanted);
    ASSERT_EQ(zmq_connect(connector, endpoint.c_str()), 0);
    ASSERT_EQ(zmq_connect(connector, endpoint.c_str()), 0);
    EXPECT_EQ(zmq_disconnect(connector, endpoint.c_str()), 0);
    EXPECT_ERRNO(EAGAIN, zmq_send(connector, "x", 1, ZMQ_DONTWAIT)) << wanted;
    EXPECT_ERRNO(ENOENT, zmq_disconnect(connector, endpoint.c_str()));
    zmq_close(connector);
    zmq_close(binder);
  }
}

TEST_F(CapiEndpointTest, ANameMayStandForItsAddress) {
  void* const binder = make(ZMQ_PULL);
  void* const connector = make(ZMQ_PUSH);
  const std::string endpoint = bind(binder, "tcp://127.0.0.1:*");
  const std::string named = "tcp://localhost" + endpoint.substr(endpoint.rfind(':'));
  ASSERT_EQ(zmq_connect(connector, endpoint.c_str()), 0);
  EXPECT_EQ(zmq_disconnect(connector, named.c_str()), 0);
  EXPECT_EQ(zmq_unbind(binder, named.c_str()), 0);
  EXPECT_ERRNO(ENOENT, zmq_unbind(binder, endpoint.c_str()));
  zmq_close(connector);
  zmq_close(binder);
}

TEST_F(CapiEndpointTest, UnbindEndsTheConnectionsThatWereMadeThere) {
  for (const char* wanted : {"tcp://127.0.0.1:*", "ipc://*"}) {
    void* const router = make(ZMQ_ROUTER);
    const int one = 1;
    ASSERT_EQ(zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &one, sizeof one), 0);
    const std::string kept = bind(router, "inproc://kept");
    const std::string ended = bind(router, wanted);
    void* const near = make(ZMQ_DEALER);
    void* const far = make(ZMQ_DEALER);
    ASSERT_EQ(zmq_setsockopt(near, ZMQ_ROUTING_ID, "near", 4), 0);
    ASSERT_EQ(zmq_setsockopt(far, ZMQ_ROUTING_ID, "far", 3), 0);
    ASSERT_EQ(zmq_connect(near, kept.c_str()), 0);
    ASSERT_EQ(zmq_connect(far, ended.c_str()), 0);
    ASSERT_EQ(zmq_send(far, "here", 4, 0), 4);
    ASSERT_EQ(receive(router), "far");
    ASSERT_EQ(receive(router), "here");
    ASSERT_EQ(zmq_unbind(router, ended.c_str()), 0);
    EXPECT_ERRNO(EHOSTUNREACH, zmq_send(router, "far", 3, ZMQ_SNDMORE));
    ASSERT_EQ(zmq_send(router, "near", 4, ZMQ_SNDMORE), 4);
    ASSERT_EQ(zmq_send(router, "still here", 10, 0), 10);
    EXPECT_EQ(receive(near), "still here");
    zmq_close(far);
    zmq_close(near);
    zmq_close(router);
  }
}

TEST_F(CapiEndpointTest, MessagesReceivedBeforeUnbindCanStillBeTaken) {
  void* const pull = make(ZMQ_PULL);
  void* const push = make(ZMQ_PUSH);
  const std::string endpoint = bind(pull, "tcp://127.0.0.1:*");
  ASSERT_EQ(zmq_connect(push, endpoint.c_str()), 0);
  for (const char* text : {"first", "second"}) {
    ASSERT_EQ(zmq_send(push, text, std::strlen(text), ZMQ_SNDMORE), static_cast<int>(std::strlen(text)));
    ASSERT_EQ(zmq_send(push, "", 0, 0), 0);
  }
  EXPECT_EQ(receive(pull), "first");
  EXPECT_EQ(receive(pull), "");
  zmq_pollitem_t item = {pull, 0, ZMQ_POLLIN, 0};
  ASSERT_EQ(zmq_poll(&item, 1, kLong), 1);
  ASSERT_EQ(zmq_unbind(pull, endpoint.c_str()), 0);
  EXPECT_EQ(receive(pull), "second");
  zmq_close(push);
  zmq_close(pull);
}

TEST_F(CapiEndpointTest, WithoutAThreadToBeHadConnectionsAreRefusedAndLaterMade) {
  pthread_attr_t usual;
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 46), 0);
  void* const socket = make(ZMQ_PULL);
  if (pthread_setattr_default_np(&huge) == 0) {
    EXPECT_ERRNO(EAGAIN, zmq_bind(socket, "tcp://127.0.0.1:*"));
    EXPECT_ERRNO(EAGAIN, zmq_connect(socket, "tcp://127.0.0.1:1"));
  }
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
  zmq_close(socket);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&usual);
}

}  // namespace
}  // namespace weft::capi
