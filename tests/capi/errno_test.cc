// SPDX-License-Identifier: MIT
// For every function the errnos that its manual page names, where a program can cause them. The last test has EINTR of
// the blocking calls. Pollers are in poller_test.cc, names of endpoints in endpoint_test.cc.
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class CapiErrnoTest : public testing::Test {
 protected:
  ~CapiErrnoTest() override {
    zmq_msg_close(&message_);
    for (void* const socket : sockets_) {
      zmq_close(socket);
    }
    EXPECT_EQ(zmq_ctx_destroy(context_), 0);
  }
  void* open(int type) {
    void* const socket = zmq_socket(context_, type);
    const int zero = 0;
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    sockets_.push_back(socket);
    return socket;
  }
  static zmq_msg_t make_message() {
    zmq_msg_t message;
    zmq_msg_init_size(&message, 1);
    return message;
  }

  void* const context_ = zmq_init(1);
  std::vector<void*> sockets_;
  zmq_msg_t message_ = make_message();
  zmq_msg_t none_{};  // never initialised
  char byte_ = 0;
  int number_ = 0;
  std::size_t size_ = sizeof number_;
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their allocators end the program
// The allocation fails before a byte of the message is read. Without ZMQ_DONTWAIT the call must not wait either.
TEST_F(CapiErrnoTest, OfMessagesForWhichThereIsNoMemory) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 46;
  EXPECT_ERRNO(ENOMEM, zmq_msg_init_size(&none_, kTooMuch));
  const std::pair<int, int> pairs[] = {{ZMQ_PUSH, ZMQ_PULL}, {ZMQ_DEALER, ZMQ_DEALER}, {ZMQ_PAIR, ZMQ_PAIR},
                                       {ZMQ_PUB, ZMQ_SUB},   {ZMQ_REQ, ZMQ_REP},       {ZMQ_CLIENT, ZMQ_SERVER}};
  for (const char* const endpoint : {"tcp://127.0.0.1:*", "inproc://no-memory"}) {
    for (const auto& [sender, receiver] : pairs) {
      void* const to = open(receiver);
      void* const from = open(sender);
      ASSERT_EQ(zmq_bind(to, endpoint), 0);
      std::array<char, 64> at{};
      std::size_t size = at.size();
      ASSERT_EQ(zmq_getsockopt(to, ZMQ_LAST_ENDPOINT, at.data(), &size), 0);
      if (receiver == ZMQ_SUB) {
        ASSERT_EQ(zmq_setsockopt(to, ZMQ_SUBSCRIBE, "", 0), 0);
      }
      ASSERT_EQ(zmq_connect(from, at.data()), 0);
      if (sender == ZMQ_PUB) {
        zmq_pollitem_t item{to, 0, ZMQ_POLLIN, 0};
        while (zmq_poll(&item, 1, 1) == 0) {  // until the subscription is there
          ASSERT_EQ(zmq_send(from, &byte_, 1, 0), 1);
        }
      }
      EXPECT_ERRNO(ENOMEM, zmq_send(from, &byte_, kTooMuch, 0)) << sender << " over " << endpoint;
      EXPECT_ERRNO(ENOMEM, zmq_send(from, &byte_, kTooMuch, ZMQ_DONTWAIT)) << sender << " over " << endpoint;
      EXPECT_EQ(zmq_send(from, &byte_, 1, 0), 1) << sender << " over " << endpoint;
      EXPECT_EQ(zmq_unbind(to, at.data()), 0);
    }
  }
}
#endif

TEST_F(CapiErrnoTest, OfContexts) {
  int nothing = 0;
  for (void* const no_context : {static_cast<void*>(nullptr), static_cast<void*>(&nothing)}) {
    EXPECT_ERRNO(EFAULT, zmq_ctx_term(no_context));
    EXPECT_ERRNO(EFAULT, zmq_ctx_destroy(no_context));
    EXPECT_ERRNO(EFAULT, zmq_term(no_context));
    EXPECT_ERRNO(EFAULT, zmq_ctx_shutdown(no_context));
    EXPECT_ERRNO(EFAULT, zmq_ctx_get(no_context, ZMQ_IO_THREADS));
    EXPECT_ERRNO(EFAULT, zmq_ctx_set(no_context, ZMQ_IO_THREADS, 1));
    EXPECT_ERRNO(EFAULT, zmq_socket(no_context, ZMQ_PAIR));
  }
  EXPECT_ERRNO(EINVAL, zmq_ctx_get(context_, 1000));
  EXPECT_ERRNO(EINVAL, zmq_ctx_set(context_, 1000, 1));
  EXPECT_ERRNO(EINVAL, zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, 0));
  EXPECT_ERRNO(EINVAL, zmq_init(-1));
  EXPECT_ERRNO(EINVAL, zmq_socket(context_, 1000));
  EXPECT_EQ(zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, 1), 0);
  open(ZMQ_PAIR);
  EXPECT_ERRNO(EMFILE, sockets_.emplace_back(zmq_socket(context_, ZMQ_PAIR)));
}

TEST_F(CapiErrnoTest, OfWhatIsNoSocketOrNoneAnyMore) {
  void* const closed = zmq_socket(context_, ZMQ_PAIR);
  ASSERT_EQ(zmq_close(closed), 0);
  int nothing = 0;
  for (void* const socket : {static_cast<void*>(nullptr), static_cast<void*>(&nothing), closed}) {
    EXPECT_ERRNO(ENOTSOCK, zmq_close(socket));
    EXPECT_ERRNO(ENOTSOCK, zmq_setsockopt(socket, ZMQ_LINGER, &number_, sizeof number_));
    EXPECT_ERRNO(ENOTSOCK, zmq_getsockopt(socket, ZMQ_LINGER, &number_, &size_));
    EXPECT_ERRNO(ENOTSOCK, zmq_bind(socket, "inproc://a"));
    EXPECT_ERRNO(ENOTSOCK, zmq_connect(socket, "inproc://a"));
    EXPECT_ERRNO(ENOTSOCK, zmq_unbind(socket, "inproc://a"));
    EXPECT_ERRNO(ENOTSOCK, zmq_disconnect(socket, "inproc://a"));
    EXPECT_ERRNO(ENOTSOCK, zmq_send(socket, "x", 1, 0));
    EXPECT_ERRNO(ENOTSOCK, zmq_send_const(socket, "x", 1, 0));
    EXPECT_ERRNO(ENOTSOCK, zmq_recv(socket, &byte_, 1, 0));
    EXPECT_ERRNO(ENOTSOCK, zmq_msg_send(&message_, socket, 0));
    EXPECT_ERRNO(ENOTSOCK, zmq_msg_recv(&message_, socket, 0));
    EXPECT_ERRNO(ENOTSOCK, zmq_sendmsg(socket, &message_, 0));
    EXPECT_ERRNO(ENOTSOCK, zmq_recvmsg(socket, &message_, 0));
    EXPECT_ERRNO(ENOTSOCK, zmq_socket_monitor(socket, "inproc://m", ZMQ_EVENT_ALL));
  }
  zmq_pollitem_t item = {closed, 0, ZMQ_POLLIN, 0};
  EXPECT_ERRNO(ENOTSOCK, zmq_poll(&item, 1, 0));
  EXPECT_ERRNO(EFAULT, zmq_poll(nullptr, 1, 0));
}

TEST_F(CapiErrnoTest, OfSendingAndReceiving) {
  void* const pull = open(ZMQ_PULL);
  void* const push = open(ZMQ_PUSH);
  void* const req = open(ZMQ_REQ);
  void* const rep = open(ZMQ_REP);
  void* const router = open(ZMQ_ROUTER);
  number_ = 1;
  ASSERT_EQ(zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &number_, sizeof number_), 0);
  EXPECT_ERRNO(ENOTSUP, zmq_send(pull, "x", 1, 0));
  EXPECT_ERRNO(ENOTSUP, zmq_send_const(pull, "x", 1, 0));
  EXPECT_ERRNO(ENOTSUP, zmq_msg_send(&message_, pull, 0));
  EXPECT_ERRNO(ENOTSUP, zmq_sendmsg(pull, &message_, 0));
  EXPECT_ERRNO(ENOTSUP, zmq_recv(push, &byte_, 1, 0));
  EXPECT_ERRNO(ENOTSUP, zmq_msg_recv(&message_, push, 0));
  EXPECT_ERRNO(ENOTSUP, zmq_recvmsg(push, &message_, 0));
  EXPECT_ERRNO(EAGAIN, zmq_send(push, "x", 1, ZMQ_DONTWAIT));
  EXPECT_ERRNO(EAGAIN, zmq_send_const(push, "x", 1, ZMQ_DONTWAIT));
  EXPECT_ERRNO(EAGAIN, zmq_msg_send(&message_, push, ZMQ_DONTWAIT));
  EXPECT_ERRNO(EAGAIN, zmq_sendmsg(push, &message_, ZMQ_DONTWAIT));
  EXPECT_ERRNO(EAGAIN, zmq_recv(pull, &byte_, 1, ZMQ_DONTWAIT));
  EXPECT_ERRNO(EAGAIN, zmq_msg_recv(&message_, pull, ZMQ_DONTWAIT));
  EXPECT_ERRNO(EAGAIN, zmq_recvmsg(pull, &message_, ZMQ_DONTWAIT));
  EXPECT_ERRNO(EFSM, zmq_send(rep, "x", 1, 0));
  EXPECT_ERRNO(EFSM, zmq_send_const(rep, "x", 1, 0));
  EXPECT_ERRNO(EFSM, zmq_msg_send(&message_, rep, 0));
  EXPECT_ERRNO(EFSM, zmq_recv(req, &byte_, 1, 0));
  EXPECT_ERRNO(EFSM, zmq_msg_recv(&message_, req, 0));
  EXPECT_ERRNO(EFSM, zmq_sendmsg(rep, &message_, 0));
  EXPECT_ERRNO(EFSM, zmq_recvmsg(req, &message_, 0));
  EXPECT_ERRNO(EHOSTUNREACH, zmq_send(router, "x", 1, ZMQ_SNDMORE));
  EXPECT_ERRNO(EHOSTUNREACH, zmq_send_const(router, "x", 1, ZMQ_SNDMORE));
  EXPECT_ERRNO(EHOSTUNREACH, zmq_msg_send(&message_, router, ZMQ_SNDMORE));
  EXPECT_ERRNO(EHOSTUNREACH, zmq_sendmsg(router, &message_, ZMQ_SNDMORE));
  void* const client = open(ZMQ_CLIENT);
  EXPECT_ERRNO(EINVAL, zmq_send(client, "x", 1, ZMQ_SNDMORE));
  EXPECT_ERRNO(EINVAL, zmq_send_const(client, "x", 1, ZMQ_SNDMORE));
  EXPECT_ERRNO(EINVAL, zmq_msg_send(&message_, client, ZMQ_SNDMORE));
  EXPECT_ERRNO(EINVAL, zmq_sendmsg(client, &message_, ZMQ_SNDMORE));
  EXPECT_ERRNO(EFAULT, zmq_msg_send(&none_, push, 0));
  EXPECT_ERRNO(EFAULT, zmq_sendmsg(push, &none_, 0));
  EXPECT_ERRNO(EFAULT, zmq_msg_recv(&none_, pull, 0));
  EXPECT_ERRNO(EFAULT, zmq_recvmsg(pull, &none_, 0));
}

TEST_F(CapiErrnoTest, OfMessages) {
  zmq_msg_t fresh;
  EXPECT_ERRNO(ENOMEM, zmq_msg_init_size(&fresh, SIZE_MAX));
  EXPECT_ERRNO(EFAULT, zmq_msg_close(&none_));
  EXPECT_ERRNO(EFAULT, zmq_msg_close(nullptr));
  EXPECT_ERRNO(EFAULT, zmq_msg_copy(&none_, &message_));
  EXPECT_ERRNO(EFAULT, zmq_msg_copy(&message_, &none_));
  EXPECT_ERRNO(EFAULT, zmq_msg_move(&none_, &message_));
  EXPECT_ERRNO(EFAULT, zmq_msg_move(&message_, &none_));
  EXPECT_ERRNO(EINVAL, zmq_msg_get(&message_, 1000));
  EXPECT_ERRNO(EINVAL, zmq_msg_gets(&message_, "Nothing"));
  EXPECT_ERRNO(EINVAL, zmq_msg_set(&message_, ZMQ_MORE, 1));
  EXPECT_ERRNO(EINVAL, zmq_msg_set_routing_id(&message_, 0));
}

TEST_F(CapiErrnoTest, OfEndpointsAndMonitors) {
  void* const socket = open(ZMQ_PAIR);
  void* const other = open(ZMQ_PAIR);
  void* const stream = open(ZMQ_STREAM);
  ASSERT_EQ(zmq_bind(other, "inproc://taken"), 0);
  EXPECT_ERRNO(EINVAL, zmq_bind(socket, "nonsense"));
  EXPECT_ERRNO(EINVAL, zmq_connect(socket, "nonsense"));
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_bind(socket, "pigeon://coop"));
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_connect(socket, "pigeon://coop"));
  EXPECT_ERRNO(ENOCOMPATPROTO, zmq_bind(stream, "inproc://bytes"));
  EXPECT_ERRNO(ENOCOMPATPROTO, zmq_connect(stream, "inproc://bytes"));
  EXPECT_ERRNO(EADDRINUSE, zmq_bind(socket, "inproc://taken"));
  EXPECT_ERRNO(EADDRNOTAVAIL, zmq_bind(socket, "tcp://192.0.2.1:5555"));
  EXPECT_ERRNO(ENODEV, zmq_bind(socket, "tcp://no-such-interface:5555"));
  EXPECT_ERRNO(ENOENT, zmq_unbind(socket, "inproc://unbound"));
  EXPECT_ERRNO(ENOENT, zmq_disconnect(socket, "inproc://unconnected"));
  EXPECT_ERRNO(EINVAL, zmq_socket_monitor(socket, "nonsense", ZMQ_EVENT_ALL));
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_socket_monitor(socket, "tcp://127.0.0.1:*", ZMQ_EVENT_ALL));
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(socket, 10'000, &number_, sizeof number_));
  EXPECT_ERRNO(EINVAL, zmq_getsockopt(socket, 10'000, &number_, &size_));
  EXPECT_ERRNO(EINVAL, zmq_setsockopt(socket, ZMQ_TYPE, &number_, sizeof number_));
}

// libzmq's words, which programs compare.
TEST_F(CapiErrnoTest, OfLibzmqHaveItsWords) {
  EXPECT_STREQ(zmq_strerror(EFSM), "Operation cannot be accomplished in current state");
  EXPECT_STREQ(zmq_strerror(ENOCOMPATPROTO), "The protocol is not compatible with the socket type");
  EXPECT_STREQ(zmq_strerror(ETERM), "Context was terminated");
  EXPECT_STREQ(zmq_strerror(EMTHREAD), "No thread available");
  EXPECT_STREQ(zmq_strerror(EHOSTUNREACH), "Host unreachable");
  EXPECT_STREQ(zmq_strerror(EINVAL), strerror(EINVAL));
}

TEST_F(CapiErrnoTest, OfAContextWithoutIoThreads) {
  ASSERT_EQ(zmq_ctx_set(context_, ZMQ_IO_THREADS, 0), 0);
  void* const peer = open(ZMQ_PEER);
  ASSERT_EQ(zmq_ctx_set(context_, ZMQ_IO_THREADS, 1), 0);  // too late
  for (void* const socket : {open(ZMQ_PAIR), open(ZMQ_PAIR), peer}) {
    for (const char* endpoint : {"tcp://127.0.0.1:5555", "ipc://@weft-no-thread"}) {
      EXPECT_ERRNO(EMTHREAD, zmq_bind(socket, endpoint));
      EXPECT_ERRNO(EMTHREAD, zmq_connect(socket, endpoint));
    }
    EXPECT_ERRNO(EPROTONOSUPPORT, zmq_bind(socket, "pigeon://coop"));
    EXPECT_ERRNO(EINVAL, zmq_connect(socket, "nonsense"));
  }
  errno = 0;
  EXPECT_EQ(zmq_connect_peer(peer, "tcp://127.0.0.1:5555"), 0u);
  EXPECT_EQ(zmq_errno(), EMTHREAD);
  void* const bound = open(ZMQ_PAIR);
  void* const connected = open(ZMQ_PAIR);
  ASSERT_EQ(zmq_bind(bound, "inproc://needs-none"), 0);
  ASSERT_EQ(zmq_connect(connected, "inproc://needs-none"), 0);
  ASSERT_EQ(zmq_send(connected, "x", 1, 0), 1);
  EXPECT_EQ(zmq_recv(bound, &byte_, 1, 0), 1);
}

TEST_F(CapiErrnoTest, OfAnAffinityThatLeavesNoIoThread) {
  ASSERT_EQ(zmq_ctx_set(context_, ZMQ_IO_THREADS, 2), 0);
  struct Row {
    std::uint64_t mask;
    bool works;
  };
  void* const socket = open(ZMQ_PAIR);
  ASSERT_EQ(zmq_ctx_set(context_, ZMQ_IO_THREADS, 64), 0);  // too late
  for (const Row& row :
       {Row{1, true}, Row{2, true}, Row{4, false}, Row{5, true}, Row{1ULL << 63, false}, Row{0, true}}) {
    ASSERT_EQ(zmq_setsockopt(socket, ZMQ_AFFINITY, &row.mask, sizeof row.mask), 0);
    EXPECT_EQ(zmq_bind(socket, "tcp://127.0.0.1:*"), row.works ? 0 : -1) << row.mask;
    EXPECT_TRUE(row.works || zmq_errno() == EMTHREAD) << zmq_errno();
    EXPECT_EQ(zmq_connect(socket, "tcp://127.0.0.1:1"), row.works ? 0 : -1) << row.mask;
  }
}

TEST_F(CapiErrnoTest, OfEveryCallOnceTheContextHasEnded) {
  void* const socket = open(ZMQ_PAIR);
  void* const sub = open(ZMQ_SUB);
  ASSERT_EQ(zmq_ctx_shutdown(context_), 0);
  EXPECT_ERRNO(ETERM, zmq_socket(context_, ZMQ_PAIR));
  EXPECT_ERRNO(ETERM, zmq_bind(socket, "inproc://a"));
  EXPECT_ERRNO(ETERM, zmq_connect(socket, "inproc://a"));
  EXPECT_ERRNO(ETERM, zmq_unbind(socket, "inproc://a"));
  EXPECT_ERRNO(ETERM, zmq_disconnect(socket, "inproc://a"));
  EXPECT_ERRNO(ETERM, zmq_getsockopt(socket, ZMQ_EVENTS, &number_, &size_));
  EXPECT_ERRNO(ETERM, zmq_getsockopt(socket, ZMQ_FD, &number_, &size_));
  EXPECT_ERRNO(ETERM, zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "a", 1));
  EXPECT_ERRNO(ETERM, zmq_proxy(socket, sub, nullptr));
  EXPECT_ERRNO(ETERM, zmq_send(socket, "x", 1, 0));
  EXPECT_ERRNO(ETERM, zmq_send_const(socket, "x", 1, 0));
  EXPECT_ERRNO(ETERM, zmq_recv(socket, &byte_, 1, 0));
  EXPECT_ERRNO(ETERM, zmq_msg_send(&message_, socket, 0));
  EXPECT_ERRNO(ETERM, zmq_msg_recv(&message_, socket, 0));
  EXPECT_ERRNO(ETERM, zmq_sendmsg(socket, &message_, 0));
  EXPECT_ERRNO(ETERM, zmq_recvmsg(socket, &message_, 0));
  EXPECT_ERRNO(ETERM, zmq_socket_monitor(socket, "inproc://m", ZMQ_EVENT_ALL));
  zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN, 0};
  EXPECT_ERRNO(ETERM, zmq_poll(&item, 1, -1));
}

// Also where the handler has SA_RESTART, as signal() installs it.
TEST_F(CapiErrnoTest, OfASignalThatComesWhileACallWaits) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  void* const pull = open(ZMQ_PULL);
  void* const push = open(ZMQ_PUSH);
  void* const pair = open(ZMQ_PAIR);
  void* const waits = zmq_ctx_new();
  void* const kept = zmq_socket(waits, ZMQ_PAIR);
  void* poller = zmq_poller_new();
  ASSERT_EQ(zmq_poller_add(poller, pull, nullptr, ZMQ_POLLIN), 0);
  zmq_poller_event_t event{};
  zmq_pollitem_t item = {pull, 0, ZMQ_POLLIN, 0};
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  zmq_pollitem_t both[] = {{nullptr, pipe_ends[0], ZMQ_POLLIN, 0}, item};
  iovec part = {&byte_, 1};
  std::size_t count = 1;
  const std::vector<std::function<int()>> calls = {
      [&] { return zmq_recv(pull, &byte_, 1, 0); },
      [&] { return zmq_msg_recv(&message_, pull, 0); },
      [&] { return zmq_recvmsg(pull, &message_, 0); },
      [&] { return zmq_send(push, "x", 1, 0); },
      [&] { return zmq_msg_send(&message_, push, 0); },
      [&] { return zmq_send_const(push, "x", 1, 0); },
      [&] { return zmq_sendmsg(push, &message_, 0); },
      [&] { return zmq_sendiov(push, &part, 1, 0); },
      [&] { return zmq_recviov(pull, &part, &(count = 1), 0); },
      [&] { return zmq_poll(&item, 1, -1); },
      [&] { return zmq_poll(&item, 1, 1'000'000); },
      [&] { return zmq_poll(both, 1, -1); },
      [&] { return zmq_poll(both, 2, -1); },
      [&] { return zmq_poll(nullptr, 0, 1'000'000); },
      [&] { return zmq_ppoll(&item, 1, -1, nullptr); },
      [&] { return zmq_poller_wait(poller, &event, -1); },
      [&] { return zmq_poller_wait_all(poller, &event, 1, -1); },
      [&] { return zmq_proxy(pull, push, nullptr); },
      [&] { return zmq_proxy_steerable(pull, push, nullptr, pair); },
      [&] { return zmq_device(ZMQ_STREAMER, pull, push); },
      [&] { return zmq_ctx_term(waits); },
      [&] { return zmq_ctx_destroy(waits); },
      [&] { return zmq_term(waits); },
  };
  for (const int flags : {0, SA_RESTART}) {
    action.sa_flags = flags;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    for (const auto& call : calls) {
      std::atomic<bool> back{false};
      std::thread waiter([&] {
        EXPECT_ERRNO(EINTR, call());
        back.store(true);
      });
      while (!back.load()) {  // the first signals may come before the call
        ASSERT_EQ(pthread_kill(waiter.native_handle(), SIGUSR1), 0);
        std::this_thread::yield();
      }
      waiter.join();
    }
  }
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  ASSERT_EQ(zmq_poller_destroy(&poller), 0);
  // An interrupted call continues when the program calls it again.
  ASSERT_EQ(zmq_close(kept), 0);
  EXPECT_EQ(zmq_ctx_term(waits), 0);
}

}  // namespace
}  // namespace weft::capi
