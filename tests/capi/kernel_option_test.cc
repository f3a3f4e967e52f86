// SPDX-License-Identifier: MIT
// Options that the library passes to the system: the tests read each back from the descriptors of its connections.
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tests/capi/plain_peer.h"

namespace weft::capi {
namespace {

// A TCP descriptor of this process.
struct Descriptor {
  int fd = -1;
  bool listens = false;
  int port = -1;
  int peer_port = -1;  // -1: none
};

int port_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (ask(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return -1;
  }
  switch (address.ss_family) {
    case AF_INET: return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    case AF_INET6: return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    default: return -1;
  }
}

int ask_number(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0) << level << ' ' << name;
  return value;
}

std::vector<Descriptor> tcp_descriptors() {
  std::vector<Descriptor> found;
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  for (int fd = 0; fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 4096)); ++fd) {
    const int port = port_of(fd, [](int f, sockaddr* a, socklen_t* n) { return ::getsockname(f, a, n); });
    if (port >= 0) {
      found.push_back({fd, ask_number(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1, port,
                       port_of(fd, [](int f, sockaddr* a, socklen_t* n) { return ::getpeername(f, a, n); })});
    }
  }
  return found;
}

// The three descriptors of one connection within this process.
struct Trio {
  int listener = -1;
  int accepted = -1;
  int connected = -1;
};

class KernelOptions : public CapiTest {
 protected:
  using Prepare = std::function<void(void* socket)>;

  // Makes a connection of two sockets that `prepare` set up first, and calls `look` while it is in use.
  void connect(const Prepare& prepare, const std::function<void(const Trio&)>& look) {
    void* const pull = zmq_socket(context_, ZMQ_PULL);
    void* const push = zmq_socket(context_, ZMQ_PUSH);
    for (void* const socket : {pull, push}) {
      ASSERT_EQ(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &kLong, sizeof kLong), 0);
      prepare(socket);
    }
    ASSERT_EQ(zmq_bind(pull, "tcp://127.0.0.1:*"), 0);
    char endpoint[64];
    std::size_t size = sizeof endpoint;
    ASSERT_EQ(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    const int port = std::atoi(std::strrchr(endpoint, ':') + 1);
    ASSERT_EQ(zmq_connect(push, endpoint), 0);
    ASSERT_EQ(zmq_send(push, "x", 1, 0), 1);
    char byte = 0;
    ASSERT_EQ(zmq_recv(pull, &byte, 1, 0), 1);
    Trio trio;
    for (const Descriptor& each : tcp_descriptors()) {
      if (each.peer_port == port) {
        trio.connected = each.fd;
      } else if (each.port == port) {
        (each.listens ? trio.listener : trio.accepted) = each.fd;
      }
    }
    EXPECT_TRUE(trio.listener >= 0 && trio.accepted >= 0 && trio.connected >= 0);
    look(trio);
    zmq_close(push);
    zmq_close(pull);
  }
  static void set(void* socket, int option, int value) {
    EXPECT_EQ(zmq_setsockopt(socket, option, &value, sizeof value), 0) << option;
  }
};

struct KernelRow {
  const char* what;
  int option;
  int value;
  int level;
  int name;
  int expected;
  bool switched = false;  // counts only with ZMQ_TCP_KEEPALIVE
};

constexpr KernelRow kRows[] = {
    {"ZMQ_SNDBUF", ZMQ_SNDBUF, 50'000, SOL_SOCKET, SO_SNDBUF, 100'000},  // the system doubles it
    {"ZMQ_RCVBUF", ZMQ_RCVBUF, 60'000, SOL_SOCKET, SO_RCVBUF, 120'000},
    {"ZMQ_TOS", ZMQ_TOS, 0x28, IPPROTO_IP, IP_TOS, 0x28},
    {"ZMQ_TCP_KEEPALIVE", ZMQ_TCP_KEEPALIVE, 1, SOL_SOCKET, SO_KEEPALIVE, 1},
    {"ZMQ_TCP_KEEPALIVE_CNT", ZMQ_TCP_KEEPALIVE_CNT, 7, IPPROTO_TCP, TCP_KEEPCNT, 7, true},
    {"ZMQ_TCP_KEEPALIVE_IDLE", ZMQ_TCP_KEEPALIVE_IDLE, 1234, IPPROTO_TCP, TCP_KEEPIDLE, 1234, true},
    {"ZMQ_TCP_KEEPALIVE_INTVL", ZMQ_TCP_KEEPALIVE_INTVL, 43, IPPROTO_TCP, TCP_KEEPINTVL, 43, true},
    {"ZMQ_TCP_MAXRT", ZMQ_TCP_MAXRT, 4321, IPPROTO_TCP, TCP_USER_TIMEOUT, 4321},
};

TEST_F(KernelOptions, AreThoseOfBothEndsOfAConnection) {
  for (const KernelRow& row : kRows) {
    SCOPED_TRACE(row.what);
    connect(
        [&](void* socket) {
          if (row.switched) {
            set(socket, ZMQ_TCP_KEEPALIVE, 1);
          }
          set(socket, row.option, row.value);
        },
        [&](const Trio& trio) {
          EXPECT_EQ(ask_number(trio.accepted, row.level, row.name), row.expected);
          EXPECT_EQ(ask_number(trio.connected, row.level, row.name), row.expected);
        });
  }
}

TEST_F(KernelOptions, SomeAreTriedAndTheSystemMayRefuseThem) {
  constexpr KernelRow kTried[] = {{"ZMQ_PRIORITY", ZMQ_PRIORITY, 5, SOL_SOCKET, SO_PRIORITY, 5},
                                  {"ZMQ_PRIORITY", ZMQ_PRIORITY, 1'000'000, SOL_SOCKET, SO_PRIORITY, 1'000'000},
                                  {"ZMQ_BUSY_POLL", ZMQ_BUSY_POLL, 70, SOL_SOCKET, SO_BUSY_POLL, 70}};
  for (const KernelRow& row : kTried) {
    SCOPED_TRACE(row.what);
    const Plain probe(::socket(AF_INET, SOCK_STREAM, 0));
    const bool may = ::setsockopt(probe.fd(), row.level, row.name, &row.value, sizeof row.value) == 0;
    connect([&](void* socket) { set(socket, row.option, row.value); },
            [&](const Trio& trio) {
              EXPECT_EQ(ask_number(trio.accepted, row.level, row.name) == row.expected, may);
              EXPECT_EQ(ask_number(trio.connected, row.level, row.name) == row.expected, may);
            });
  }
}

TEST_F(KernelOptions, AMarkBelowTheDefaultBoundsWhatTheKernelHasNotSent) {
  const struct {
    int mark;
    int bytes;
  } rows[] = {{1, 65'536}, {500, 128'000}, {1000, 0}, {0, 0}, {5000, 0}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.mark);
    connect([&](void* socket) { set(socket, ZMQ_SNDHWM, row.mark); },
            [&](const Trio& trio) {
              const int usual = ask_number(trio.listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT);
              for (const int fd : {trio.accepted, trio.connected}) {
                EXPECT_EQ(ask_number(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), row.bytes == 0 ? usual : row.bytes);
              }
            });
  }
}

TEST_F(KernelOptions, ANewMarkActsOnAConnectionThatIsThere) {
  std::vector<void*> sockets;
  connect([&](void* socket) { sockets.push_back(socket); },
          [&](const Trio& trio) {
            const int usual = ask_number(trio.listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT);
            for (const int mark : {1, 1000}) {
              const int wanted = mark == 1 ? 65'536 : usual;
              for (void* const socket : sockets) {
                set(socket, ZMQ_SNDHWM, mark);
              }
              for (const int fd : {trio.accepted, trio.connected}) {
                const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                while (ask_number(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT) != wanted) {
                  ASSERT_LT(std::chrono::steady_clock::now(), end);
                  std::this_thread::yield();
                }
              }
            }
          });
}

TEST_F(KernelOptions, AreTheSystemsOwnWhenNothingWasAskedFor) {
  const Plain fresh(::socket(AF_INET, SOCK_STREAM, 0));
  connect([](void* /*socket*/) {},
          [&](const Trio& trio) {
            for (const KernelRow& row : kRows) {
              const int usual = ask_number(fresh.fd(), row.level, row.name);
              EXPECT_NE(usual, row.expected) << row.what << ": the test above would prove nothing";
              if (row.name != SO_SNDBUF && row.name != SO_RCVBUF) {  // grow by themselves
                EXPECT_EQ(ask_number(trio.accepted, row.level, row.name), usual) << row.what;
                EXPECT_EQ(ask_number(trio.connected, row.level, row.name), usual) << row.what;
              }
            }
          });
}

TEST_F(KernelOptions, TheBacklogIsThatOfTheListener) {
  for (const int backlog : {0, 17, 100}) {
    connect([&](void* socket) { set(socket, ZMQ_BACKLOG, backlog); },
            [&](const Trio& trio) {
              tcp_info info{};
              socklen_t size = sizeof info;
              ASSERT_EQ(::getsockopt(trio.listener, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
              EXPECT_EQ(info.tcpi_sacked,
                        static_cast<unsigned>(backlog));  // a listener's backlog
            });
  }
}

TEST_F(KernelOptions, TheDeviceIsThatOfBothEnds) {
  const Plain probe(::socket(AF_INET, SOCK_STREAM, 0));
  if (::setsockopt(probe.fd(), SOL_SOCKET, SO_BINDTODEVICE, "lo", 2) != 0) {
    GTEST_SKIP() << "this system lets only the superuser choose: " << std::strerror(errno);
  }
  connect([](void* socket) { EXPECT_EQ(zmq_setsockopt(socket, ZMQ_BINDTODEVICE, "lo", 2), 0); },
          [](const Trio& trio) {
            for (const int fd : {trio.listener, trio.connected}) {
              char name[16] = {};
              socklen_t size = sizeof name;
              ASSERT_EQ(::getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &size), 0);
              EXPECT_STREQ(name, "lo");
            }
          });
}

TEST_F(KernelOptions, ADescriptorThatListensAlreadyIsUsed) {
  Plain listener;
  const int port = listener.listen();
  const int given = ::dup(listener.fd());
  const Watched pull(context_, ZMQ_PULL);
  pull.set(ZMQ_USE_FD, given);
  const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(port);
  ASSERT_EQ(zmq_bind(pull.get(), endpoint.c_str()), 0) << "somebody listens there, and it is us";
  Plain push;
  ASSERT_EQ(push.connect(port), 0);
  push.send(greeting("NULL") + command("READY", property("Socket-Type", "PUSH")) + frame(0, "x"));
  char byte = 0;
  EXPECT_EQ(zmq_recv(pull.get(), &byte, 1, 0), 1);
}

// Ipv6 listeners take Ipv4, too.
TEST_F(KernelOptions, TheWildcardIsIpv6WhenThatIsOn) {
  const Plain probe(::socket(AF_INET6, SOCK_STREAM, 0));
  if (probe.fd() < 0) {
    GTEST_SKIP() << "this system has no IPv6";
  }
  struct Row {
    int option;
    int value;
    bool of_context;
    const char* begins;
  };
  for (const Row& row : {Row{ZMQ_IPV6, 0, false, "tcp://0.0.0.0:"}, Row{ZMQ_IPV6, 1, false, "tcp://[::]:"},
                         Row{ZMQ_IPV4ONLY, 0, false, "tcp://[::]:"}, Row{ZMQ_IPV6, 1, true, "tcp://[::]:"}}) {
    ASSERT_EQ(zmq_ctx_set(context_, ZMQ_IPV6, row.of_context ? 1 : 0), 0);
    const Watched pull(context_, ZMQ_PULL);
    if (!row.of_context) {
      pull.set(row.option, row.value);
    }
    ASSERT_EQ(zmq_bind(pull.get(), "tcp://*:*"), 0);
    char endpoint[64];
    std::size_t size = sizeof endpoint;
    ASSERT_EQ(zmq_getsockopt(pull.get(), ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    EXPECT_EQ(std::string(endpoint).rfind(row.begins, 0), 0u) << endpoint;
    Plain client;
    EXPECT_EQ(client.connect(std::atoi(std::strrchr(endpoint, ':') + 1)), 0);
    pull.expect(ZMQ_EVENT_ACCEPTED);
  }
}

}  // namespace
}  // namespace weft::capi
