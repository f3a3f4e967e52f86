// SPDX-License-Identifier: MIT
// pthread_cancel() and pthread_exit() of threads that are inside a call.
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/capi/capi_test.h"

// A cancelled thread leaves the frames of a sanitizer's own functions without their ends.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace weft::capi {
namespace {

// A thread of the program that makes one call.
class Caller {
 public:
  explicit Caller(std::function<void()> call) : call_(std::move(call)) {
    EXPECT_EQ(pthread_create(&thread_, nullptr, &Caller::run, this), 0);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void wait_until_asleep() const {
    while (id_.load() == 0 || state() != 'S') {
      std::this_thread::yield();
    }
  }
  // The thread's result.
  [[nodiscard]] void* cancel() const {
    EXPECT_EQ(pthread_cancel(thread_), 0);
    return join();
  }
  [[nodiscard]] void* join() const {
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread_, &result), 0);
    return result;
  }

 private:
  static void* run(void* self) {
    auto& caller = *static_cast<Caller*>(self);
    caller.id_.store(syscall(SYS_gettid));
    caller.call_();
    return nullptr;
  }
  // As in /proc: S sleeps.
  [[nodiscard]] char state() const {
    std::ifstream file("/proc/self/task/" + std::to_string(id_.load()) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(')');
    return end == std::string::npos || end + 2 >= text.size() ? '?' : text[end + 2];
  }

  const std::function<void()> call_;
  std::atomic<long> id_{0};
  pthread_t thread_{};
};

class Cancel : public CapiTest {
 protected:
  ~Cancel() override {
    for (void* const socket : {pull_, push_, in_, out_}) {
      EXPECT_EQ(zmq_close(socket), 0);
    }
  }
  void* open(int type, const char* endpoint) {
    void* const socket = zmq_socket(context_, type);
    const int zero = 0;
    EXPECT_EQ(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    EXPECT_EQ(zmq_bind(socket, endpoint), 0);
    return socket;
  }

  void* const pull_ = open(ZMQ_PULL, "tcp://127.0.0.1:*");
  void* const push_ = open(ZMQ_PUSH, "tcp://127.0.0.1:*");
  void* const in_ = open(ZMQ_PULL, "inproc://in");
  void* const out_ = open(ZMQ_PUSH, "inproc://out");
};

TEST_F(Cancel, AThreadThatWaitsInACallEndsAndTheSocketsStayUsable) {
  void* const waits = zmq_ctx_new();
  void* const kept = zmq_socket(waits, ZMQ_PAIR);
  void* poller = zmq_poller_new();
  ASSERT_EQ(zmq_poller_add(poller, pull_, nullptr, ZMQ_POLLIN), 0);
  zmq_poller_event_t event{};
  zmq_pollitem_t one[] = {{pull_, 0, ZMQ_POLLIN, 0}};
  zmq_pollitem_t two[] = {{pull_, 0, ZMQ_POLLIN, 0}, {in_, 0, ZMQ_POLLIN, 0}};
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  zmq_pollitem_t descriptor[] = {{nullptr, pipe_ends[0], ZMQ_POLLIN, 0}, {pull_, 0, ZMQ_POLLIN, 0}};
  iovec parts[2];
  std::size_t count = 2;
  char byte = 0;
  zmq_msg_t message;
  ASSERT_EQ(zmq_msg_init(&message), 0);
  const std::function<void()> calls[] = {
      [&] { zmq_recv(pull_, &byte, 1, 0); },
      [&] { zmq_recv(in_, &byte, 1, 0); },
      [&] { zmq_msg_recv(&message, pull_, 0); },
      [&] { zmq_recvmsg(pull_, &message, 0); },
      [&] { zmq_recviov(pull_, parts, &count, 0); },
      [&] { zmq_send(push_, "x", 1, 0); },
      [&] { zmq_sendmsg(push_, &message, 0); },
      [&] { zmq_send_const(out_, "x", 1, 0); },
      [&] { zmq_send(out_, "x", 1, 0); },
      [&] { zmq_poll(one, 1, -1); },
      [&] { zmq_poll(two, 2, -1); },
      [&] { zmq_poll(one, 1, 1'000'000); },
      [&] { zmq_poll(descriptor, 1, -1); },
      [&] { zmq_poll(descriptor, 2, -1); },
      [&] { zmq_poll(nullptr, 0, 1'000'000); },
      [&] { zmq_ppoll(one, 1, -1, nullptr); },
      [&] { zmq_poller_wait(poller, &event, -1); },
      [&] { zmq_poller_wait_all(poller, &event, 1, -1); },
      [&] { zmq_proxy(pull_, push_, nullptr); },
      [&] { zmq_proxy_steerable(pull_, push_, nullptr, in_); },
      [&] { zmq_device(ZMQ_STREAMER, pull_, push_); },
      [&] { zmq_ctx_term(waits); },
      [&] { zmq_sleep(1'000'000); },
  };
  for (const auto& call : calls) {
    const Caller waiter(call);
    waiter.wait_until_asleep();
    EXPECT_EQ(waiter.cancel(), PTHREAD_CANCELED);
  }
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  char endpoint[64];
  std::size_t size = sizeof endpoint;
  ASSERT_EQ(zmq_getsockopt(pull_, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
  void* const sender = zmq_socket(context_, ZMQ_PUSH);
  ASSERT_EQ(zmq_connect(sender, endpoint), 0);
  EXPECT_EQ(zmq_send(sender, "y", 1, 0), 1);
  EXPECT_EQ(zmq_recv(pull_, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(zmq_close(sender), 0);
  EXPECT_EQ(zmq_poller_destroy(&poller), 0);
  EXPECT_EQ(zmq_msg_close(&message), 0);
  EXPECT_EQ(zmq_close(kept), 0);
  EXPECT_EQ(zmq_ctx_term(waits), 0);
}

TEST_F(Cancel, AThreadThatWaitsForAnotherOneEndsAndTheOtherCanBeWaitedForAgain) {
  std::atomic<bool> may_end{false};
  void* const other = zmq_threadstart(
      [](void* flag) {
        while (!static_cast<std::atomic<bool>*>(flag)->load()) {
          std::this_thread::yield();
        }
      },
      &may_end);
  const Caller waiter([&] { zmq_threadclose(other); });
  waiter.wait_until_asleep();
  EXPECT_EQ(waiter.cancel(), PTHREAD_CANCELED);
  may_end.store(true);
  zmq_threadclose(other);
}

// The system calls of a send are cancellation points of the C library.
TEST_F(Cancel, ACallThatDoesNotWaitIsNoCancellationPoint) {
  char endpoint[64];
  std::size_t size = sizeof endpoint;
  ASSERT_EQ(zmq_getsockopt(pull_, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
  void* const sender = zmq_socket(context_, ZMQ_PUSH);
  ASSERT_EQ(zmq_connect(sender, endpoint), 0);
  char byte = 0;
  ASSERT_EQ(zmq_send(sender, "1", 1, 0), 1);
  ASSERT_EQ(zmq_recv(pull_, &byte, 1, 0), 1);  // the connection is there
  char push_endpoint[64];
  size = sizeof push_endpoint;
  ASSERT_EQ(zmq_getsockopt(push_, ZMQ_LAST_ENDPOINT, push_endpoint, &size), 0);
  std::atomic<bool> came_through{false};
  const Caller caller([&] {
    pthread_cancel(pthread_self());
    EXPECT_EQ(zmq_send(sender, "2", 1, 0), 1);
    int events = 0;
    std::size_t bytes = sizeof events;
    EXPECT_EQ(zmq_getsockopt(sender, ZMQ_EVENTS, &events, &bytes), 0);
    EXPECT_EQ(zmq_unbind(push_, push_endpoint), 0);
    char public_key[41];
    char secret_key[41];
    EXPECT_EQ(zmq_curve_keypair(public_key, secret_key), zmq_has("curve") != 0 ? 0 : -1);
    EXPECT_EQ(zmq_close(sender), 0);
    came_through.store(true);
    pthread_testcancel();
  });
  EXPECT_EQ(caller.join(), PTHREAD_CANCELED);
  EXPECT_TRUE(came_through.load());
  EXPECT_EQ(zmq_recv(pull_, &byte, 1, 0), 1);
  EXPECT_EQ(byte, '2');
}

}  // namespace
}  // namespace weft::capi

#endif
