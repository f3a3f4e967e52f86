// SPDX-License-Identifier: MIT
// udp through the C interface: errnos, the options of multicast, and a message each way.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class DatagramOptions : public CapiTest {
 protected:
  void* make(int type) {
    void* const socket = zmq_socket(context_, type);
    EXPECT_NE(socket, nullptr) << zmq_strerror(zmq_errno());
    set(socket, ZMQ_RCVTIMEO, kLong);
    set(socket, ZMQ_LINGER, 0);
    return socket;
  }
  static void set(void* socket, int option, int value) {
    EXPECT_EQ(zmq_setsockopt(socket, option, &value, sizeof value), 0) << option;
  }
  static std::string bound(void* socket) {
    char endpoint[64];
    std::size_t size = sizeof endpoint;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    return endpoint;
  }
  static int ask(int fd, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0) << level << ' ' << name;
    return value;
  }
  // The first UDP descriptor of this process.
  static int udp_descriptor() {
    rlimit limit{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int fd = 0; fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 4096)); ++fd) {
      int type = 0;
      sockaddr_storage address{};
      socklen_t type_size = sizeof type;
      socklen_t size = sizeof address;
      if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_DGRAM &&
          ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 && address.ss_family == AF_INET) {
        return fd;
      }
    }
    return -1;
  }
};

TEST_F(DatagramOptions, MulticastIsSentAsTheOptionsSay) {
  for (const bool changed : {false, true}) {
    void* const radio = make(ZMQ_RADIO);
    if (changed) {
      set(radio, ZMQ_MULTICAST_HOPS, 7);
      set(radio, ZMQ_MULTICAST_LOOP, 0);
      set(radio, ZMQ_SNDBUF, 50'000);
    }
    ASSERT_EQ(zmq_connect(radio, "udp://127.0.0.1;239.12.34.59:5555"), 0) << zmq_strerror(zmq_errno());
    const int fd = udp_descriptor();
    ASSERT_GE(fd, 0);
    EXPECT_EQ(ask(fd, IPPROTO_IP, IP_MULTICAST_TTL), changed ? 7 : 1);
    EXPECT_EQ(ask(fd, IPPROTO_IP, IP_MULTICAST_LOOP), changed ? 0 : 1);
    if (changed) {
      EXPECT_EQ(ask(fd, SOL_SOCKET, SO_SNDBUF), 100'000);  // the system doubles it
    }
    in_addr interface{};
    socklen_t size = sizeof interface;
    EXPECT_EQ(::getsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &interface, &size), 0);
    EXPECT_EQ(interface.s_addr, htonl(INADDR_LOOPBACK));
    zmq_disconnect(radio, "udp://127.0.0.1;239.12.34.59:5555");
    zmq_close(radio);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLong);
    while (udp_descriptor() >= 0 && std::chrono::steady_clock::now() < end) {  // the I/O thread closes it
      std::this_thread::yield();
    }
  }
}

TEST_F(DatagramOptions, ErrnosAreLibzmqs) {
  void* const radio = make(ZMQ_RADIO);
  void* const dish = make(ZMQ_DISH);
  void* const dgram = make(ZMQ_DGRAM);
  void* const pub = make(ZMQ_PUB);
  EXPECT_ERRNO(ENOCOMPATPROTO, zmq_bind(radio, "udp://*:5556"));
  EXPECT_ERRNO(ENOCOMPATPROTO, zmq_connect(dish, "udp://127.0.0.1:5556"));
  EXPECT_ERRNO(ENOCOMPATPROTO, zmq_connect(dgram, "udp://127.0.0.1:5556"));
  EXPECT_ERRNO(ENOCOMPATPROTO, zmq_bind(pub, "udp://*:5556"));
  EXPECT_ERRNO(EINVAL, zmq_connect(radio, "udp://127.0.0.1"));
  EXPECT_ERRNO(EINVAL, zmq_connect(radio, "udp://lo;127.0.0.1:5556"));
  EXPECT_ERRNO(EINVAL, zmq_bind(dish, "udp://239.0.0.1;239.0.0.2:5556"));
  EXPECT_ERRNO(ENODEV, zmq_bind(dish, "udp://no-such-nic;239.0.0.1:5556"));
  for (void* const socket : {radio, dish, dgram, pub}) {
    zmq_close(socket);
  }
}

TEST_F(DatagramOptions, AMessageEachWay) {
  void* const here = make(ZMQ_DGRAM);
  void* const there = make(ZMQ_DGRAM);
  ASSERT_EQ(zmq_bind(here, "udp://127.0.0.1:*"), 0);
  ASSERT_EQ(zmq_bind(there, "udp://127.0.0.1:*"), 0);
  const std::string address = bound(there).substr(6);
  EXPECT_ERRNO(EINVAL, zmq_send(here, "alone", 5, 0));
  ASSERT_EQ(zmq_send(here, address.data(), address.size(), ZMQ_SNDMORE), static_cast<int>(address.size()));
  EXPECT_ERRNO(EINVAL, zmq_send(here, "x", 1, ZMQ_SNDMORE));
  ASSERT_EQ(zmq_send(here, "hello", 5, 0), 5);
  char from[64];
  const int size = zmq_recv(there, from, sizeof from, 0);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(from, static_cast<std::size_t>(size)), bound(here).substr(6) + '\0');
  int more = 0;
  std::size_t more_size = sizeof more;
  ASSERT_EQ(zmq_getsockopt(there, ZMQ_RCVMORE, &more, &more_size), 0);
  EXPECT_EQ(more, 1);
  char body[8];
  ASSERT_EQ(zmq_recv(there, body, sizeof body, 0), 5);
  EXPECT_EQ(std::string(body, 5), "hello");
  ASSERT_EQ(zmq_unbind(here, bound(here).c_str()), 0);
  EXPECT_ERRNO(EAGAIN, zmq_send(here, address.data(), address.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT));
  zmq_close(here);
  zmq_close(there);
}

}  // namespace
}  // namespace weft::capi
