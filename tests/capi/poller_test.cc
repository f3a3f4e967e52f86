// SPDX-License-Identifier: MIT
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <thread>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

class CapiPollerTest : public CapiTest {
 protected:
  CapiPollerTest() {
    EXPECT_EQ(pipe(pipe_), 0);
    EXPECT_EQ(zmq_bind(pull_, "inproc://polled"), 0);
    EXPECT_EQ(zmq_connect(push_, "inproc://polled"), 0);
  }
  ~CapiPollerTest() override {
    if (poller_ != nullptr) {
      EXPECT_EQ(zmq_poller_destroy(&poller_), 0);
    }
    zmq_close(push_);
    zmq_close(pull_);
    close(pipe_[0]);
    close(pipe_[1]);
  }
  void send() { EXPECT_EQ(zmq_send(push_, "x", 1, 0), 1); }
  void write_pipe() { EXPECT_EQ(write(pipe_[1], "x", 1), 1); }

  void* const push_ = zmq_socket(context_, ZMQ_PUSH);
  void* const pull_ = zmq_socket(context_, ZMQ_PULL);
  int pipe_[2] = {-1, -1};
  void* poller_ = zmq_poller_new();
  zmq_poller_event_t event_{};
};

TEST_F(CapiPollerTest, ReportsTheReadySocketAndItsUserData) {
  int mine = 0;
  ASSERT_EQ(zmq_poller_add(poller_, pull_, &mine, ZMQ_POLLIN), 0);
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait(poller_, &event_, 0));
  EXPECT_EQ(event_.socket, nullptr);
  EXPECT_EQ(event_.fd, -1);
  send();
  ASSERT_EQ(zmq_poller_wait(poller_, &event_, -1), 0);
  EXPECT_EQ(event_.socket, pull_);
  EXPECT_EQ(event_.fd, -1);
  EXPECT_EQ(event_.user_data, &mine);
  EXPECT_EQ(event_.events, ZMQ_POLLIN);
}

TEST_F(CapiPollerTest, WaitsForDescriptorsBesideSockets) {
  ASSERT_EQ(zmq_poller_add(poller_, pull_, nullptr, ZMQ_POLLIN), 0);
  ASSERT_EQ(zmq_poller_add_fd(poller_, pipe_[0], &event_, ZMQ_POLLIN), 0);
  EXPECT_EQ(zmq_poller_size(poller_), 2);
  write_pipe();
  ASSERT_EQ(zmq_poller_wait(poller_, &event_, -1), 0);
  EXPECT_EQ(event_.socket, nullptr);
  EXPECT_EQ(event_.fd, pipe_[0]);
  EXPECT_EQ(event_.user_data, &event_);
  send();
  zmq_poller_event_t events[4];
  ASSERT_EQ(zmq_poller_wait_all(poller_, events, 4, -1), 2);
  EXPECT_EQ(events[0].socket, pull_);
  EXPECT_EQ(events[1].fd, pipe_[0]);
}

TEST_F(CapiPollerTest, AWaitEndsWhenAnotherThreadSends) {
  ASSERT_EQ(zmq_poller_add(poller_, pull_, nullptr, ZMQ_POLLIN), 0);
  for (const long timeout : {-1L, LONG_MAX}) {
    std::thread sender([this] { send(); });
    EXPECT_EQ(zmq_poller_wait(poller_, &event_, timeout), 0);
    sender.join();
    EXPECT_EQ(zmq_recv(pull_, nullptr, 0, 0), 1);
  }
}

TEST_F(CapiPollerTest, NoneIsLeftOutWhenThereIsRoomForOne) {
  ASSERT_EQ(zmq_poller_add(poller_, pull_, nullptr, ZMQ_POLLIN), 0);
  ASSERT_EQ(zmq_poller_add(poller_, push_, nullptr, ZMQ_POLLOUT), 0);
  ASSERT_EQ(zmq_poller_add_fd(poller_, pipe_[1], nullptr, ZMQ_POLLOUT), 0);
  send();
  std::vector<void*> seen;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(zmq_poller_wait(poller_, &event_, 0), 0);
    seen.push_back(event_.socket);
  }
  EXPECT_EQ(seen, (std::vector<void*>{pull_, push_, nullptr}));
}

TEST_F(CapiPollerTest, EventsAreChangedAndSwitchedOff) {
  ASSERT_EQ(zmq_poller_add(poller_, push_, nullptr, ZMQ_POLLOUT), 0);
  ASSERT_EQ(zmq_poller_add_fd(poller_, pipe_[0], nullptr, 0), 0);
  EXPECT_EQ(zmq_poller_wait(poller_, &event_, 0), 0);
  ASSERT_EQ(zmq_poller_modify(poller_, push_, 0), 0);
  write_pipe();
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait(poller_, &event_, 0));
  EXPECT_ERRNO(EFAULT, zmq_poller_wait(poller_, &event_, -1));  // would never end
  ASSERT_EQ(zmq_poller_modify_fd(poller_, pipe_[0], ZMQ_POLLIN), 0);
  EXPECT_EQ(zmq_poller_wait(poller_, &event_, 0), 0);
  ASSERT_EQ(zmq_poller_remove_fd(poller_, pipe_[0]), 0);
  ASSERT_EQ(zmq_poller_remove(poller_, push_), 0);
  EXPECT_EQ(zmq_poller_size(poller_), 0);
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait(poller_, &event_, 1));
  EXPECT_ERRNO(EFAULT, zmq_poller_wait(poller_, &event_, -1));
}

TEST_F(CapiPollerTest, RefusesWhatIsRegisteredTwiceOrNotAtAll) {
  ASSERT_EQ(zmq_poller_add(poller_, pull_, nullptr, ZMQ_POLLIN), 0);
  ASSERT_EQ(zmq_poller_add_fd(poller_, pipe_[0], nullptr, ZMQ_POLLIN), 0);
  EXPECT_ERRNO(EINVAL, zmq_poller_add(poller_, pull_, nullptr, ZMQ_POLLIN));
  EXPECT_ERRNO(EINVAL, zmq_poller_add_fd(poller_, pipe_[0], nullptr, ZMQ_POLLIN));
  EXPECT_ERRNO(EINVAL, zmq_poller_add(poller_, push_, nullptr, 64));
  EXPECT_ERRNO(EINVAL, zmq_poller_modify(poller_, pull_, 64));
  EXPECT_ERRNO(EINVAL, zmq_poller_modify(poller_, push_, ZMQ_POLLOUT));
  EXPECT_ERRNO(EINVAL, zmq_poller_remove(poller_, push_));
  EXPECT_ERRNO(EINVAL, zmq_poller_modify_fd(poller_, pipe_[1], ZMQ_POLLOUT));
  EXPECT_ERRNO(EINVAL, zmq_poller_remove_fd(poller_, pipe_[1]));
  EXPECT_EQ(zmq_poller_size(poller_), 2);
}

TEST_F(CapiPollerTest, RefusesWhatIsNeitherSocketNorDescriptor) {
  EXPECT_ERRNO(ENOTSOCK, zmq_poller_add(poller_, nullptr, nullptr, ZMQ_POLLIN));
  EXPECT_ERRNO(ENOTSOCK, zmq_poller_modify(poller_, nullptr, ZMQ_POLLIN));
  EXPECT_ERRNO(ENOTSOCK, zmq_poller_remove(poller_, nullptr));
  EXPECT_ERRNO(EBADF, zmq_poller_add_fd(poller_, -1, nullptr, ZMQ_POLLIN));
  EXPECT_ERRNO(EBADF, zmq_poller_modify_fd(poller_, -1, ZMQ_POLLIN));
  EXPECT_ERRNO(EBADF, zmq_poller_remove_fd(poller_, -1));
  EXPECT_ERRNO(EFAULT, zmq_poller_wait(poller_, nullptr, 0));
  EXPECT_ERRNO(EINVAL, zmq_poller_wait_all(poller_, &event_, -1, 0));
  zmq_fd_t fd = -1;
  EXPECT_ERRNO(EFAULT, zmq_poller_fd(poller_, nullptr));
  EXPECT_ERRNO(EINVAL, zmq_poller_fd(poller_, &fd));
}

TEST_F(CapiPollerTest, ItsDescriptorTellsAnotherLoopOfNews) {
  void* const server = zmq_socket(context_, ZMQ_SERVER);
  void* const client = zmq_socket(context_, ZMQ_CLIENT);
  ASSERT_EQ(zmq_bind(server, "inproc://server"), 0);
  zmq_fd_t fd = -1;
  ASSERT_EQ(zmq_poller_add(poller_, server, nullptr, ZMQ_POLLIN), 0);
  ASSERT_EQ(zmq_poller_fd(poller_, &fd), 0);
  ASSERT_EQ(zmq_poller_add(poller_, pull_, nullptr, ZMQ_POLLIN), 0);  // later, and of another type
  const auto readable = [&](int timeout) {
    pollfd item{fd, POLLIN, 0};
    return ::poll(&item, 1, timeout) == 1;
  };
  const auto drain = [&] {
    while (zmq_poller_wait(poller_, &event_, 0) == 0) {
      char byte = 0;
      EXPECT_EQ(zmq_recv(event_.socket, &byte, 1, ZMQ_DONTWAIT), 1);
    }
    EXPECT_EQ(zmq_errno(), EAGAIN);
    EXPECT_FALSE(readable(0));
  };
  EXPECT_EQ(zmq_connect(client, "inproc://server"), 0);
  drain();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(zmq_send(client, "x", 1, 0), 1);
    EXPECT_TRUE(readable(20'000));
    drain();
    send();
    EXPECT_TRUE(readable(20'000));
    drain();
  }
  ASSERT_EQ(zmq_poller_remove(poller_, pull_), 0);
  send();
  EXPECT_FALSE(readable(0));
  zmq_close(server);  // still in the poller
  zmq_close(client);
  EXPECT_ERRNO(ENOTSOCK, zmq_poller_wait(poller_, &event_, 0));
  EXPECT_EQ(zmq_poller_remove(poller_, server), 0);
}

TEST_F(CapiPollerTest, WithoutSocketsOrRoomForEventsAWaitStillEnds) {
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait_all(poller_, &event_, 0, 0));
  EXPECT_ERRNO(EFAULT, zmq_poller_wait_all(poller_, &event_, 0, -1));
  ASSERT_EQ(zmq_poller_add(poller_, pull_, nullptr, ZMQ_POLLIN), 0);
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait_all(poller_, &event_, 0, 0));
}

TEST_F(CapiPollerTest, APointerToNoPollerAnswersEfault) {
  int not_a_poller[64] = {};
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(not_a_poller)}) {
    void* pointer = wrong;
    EXPECT_ERRNO(EFAULT, zmq_poller_destroy(&pointer));
    EXPECT_ERRNO(EFAULT, zmq_poller_size(wrong));
    EXPECT_ERRNO(EFAULT, zmq_poller_add(wrong, pull_, nullptr, ZMQ_POLLIN));
    EXPECT_ERRNO(EFAULT, zmq_poller_modify(wrong, pull_, ZMQ_POLLIN));
    EXPECT_ERRNO(EFAULT, zmq_poller_remove(wrong, pull_));
    EXPECT_ERRNO(EFAULT, zmq_poller_add_fd(wrong, pipe_[0], nullptr, ZMQ_POLLIN));
    EXPECT_ERRNO(EFAULT, zmq_poller_modify_fd(wrong, pipe_[0], ZMQ_POLLIN));
    EXPECT_ERRNO(EFAULT, zmq_poller_remove_fd(wrong, pipe_[0]));
    EXPECT_ERRNO(EFAULT, zmq_poller_wait(wrong, &event_, 0));
    EXPECT_ERRNO(EFAULT, zmq_poller_wait_all(wrong, &event_, 1, 0));
  }
  EXPECT_ERRNO(EFAULT, zmq_poller_destroy(nullptr));
}

TEST_F(CapiPollerTest, AClosedSocketAnswersEnotsockUntilItIsRemoved) {
  void* socket = zmq_socket(context_, ZMQ_PULL);
  ASSERT_EQ(zmq_poller_add(poller_, socket, nullptr, ZMQ_POLLIN), 0);
  ASSERT_EQ(zmq_close(socket), 0);
  EXPECT_ERRNO(ENOTSOCK, zmq_poller_wait(poller_, &event_, 0));
  EXPECT_EQ(zmq_poller_remove(poller_, socket), 0);
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait(poller_, &event_, 0));
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait_all(poller_, &event_, 1, 0));
}

TEST_F(CapiPollerTest, AContextThatShutsDownEndsTheWait) {
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_PULL);
  ASSERT_EQ(zmq_poller_add(poller_, socket, nullptr, ZMQ_POLLIN), 0);
  std::thread ender([context] { zmq_ctx_shutdown(context); });
  EXPECT_ERRNO(ETERM, zmq_poller_wait(poller_, &event_, -1));
  ender.join();
  EXPECT_ERRNO(ETERM, zmq_poller_wait(poller_, &event_, 0));
  EXPECT_ERRNO(ETERM, zmq_poller_wait_all(poller_, &event_, 1, 0));
  EXPECT_EQ(zmq_poller_remove(poller_, socket), 0);
  zmq_close(socket);
  EXPECT_EQ(zmq_ctx_term(context), 0);
}

// Blocks SIGUSR1, whose handler counts; sends it to this thread.
class CapiSignalTest : public CapiPollerTest {
 protected:
  CapiSignalTest() {
    handled_ = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { handled_ = handled_ + 1; };
    sigaction(SIGUSR1, &action, &old_action_);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &old_mask_);
    open_ = old_mask_;
    sigdelset(&open_, SIGUSR1);
    pthread_kill(pthread_self(), SIGUSR1);  // pending from here
  }
  ~CapiSignalTest() override {
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
    sigaction(SIGUSR1, &old_action_, nullptr);
  }

  static volatile sig_atomic_t handled_;
  struct sigaction old_action_ = {};
  sigset_t old_mask_;
  sigset_t open_;
  zmq_pollitem_t item_ = {pull_, 0, ZMQ_POLLIN, 0};
};
volatile sig_atomic_t CapiSignalTest::handled_ = 0;

TEST_F(CapiSignalTest, ABlockedSignalEndsAWaitThatLetsItIn) {
  EXPECT_EQ(zmq_ppoll(&item_, 1, 0, nullptr), 0);
  EXPECT_EQ(handled_, 0);
  EXPECT_ERRNO(EINTR, zmq_ppoll(&item_, 1, -1, &open_));
  EXPECT_EQ(handled_, 1);
}

// Otherwise a program that is always busy would never get its signal.
TEST_F(CapiSignalTest, ASignalComesBeforeAReadySocket) {
  send();
  EXPECT_EQ(zmq_ppoll(&item_, 1, -1, nullptr), 1);
  EXPECT_ERRNO(EINTR, zmq_ppoll(&item_, 1, -1, &open_));
  EXPECT_EQ(handled_, 1);
  EXPECT_EQ(zmq_ppoll(&item_, 1, -1, &open_), 1);
  EXPECT_EQ(item_.revents, ZMQ_POLLIN);
}

TEST_F(CapiSignalTest, RefusesWhatZmqPollRefuses) {
  EXPECT_ERRNO(EFAULT, zmq_ppoll(nullptr, 1, 0, nullptr));
  EXPECT_ERRNO(EINVAL, zmq_ppoll(&item_, -1, 0, nullptr));
}

TEST_F(CapiPollerTest, UrgentDataAreTold) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, generic, &size), 0);
  const int sender = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(sender, generic, size), 0);
  const int receiver = accept(listener, nullptr, nullptr);
  ASSERT_EQ(zmq_poller_add_fd(poller_, receiver, nullptr, ZMQ_POLLPRI), 0);
  EXPECT_ERRNO(EAGAIN, zmq_poller_wait(poller_, &event_, 0));
  ASSERT_EQ(::send(sender, "!", 1, MSG_OOB), 1);
  ASSERT_EQ(zmq_poller_wait(poller_, &event_, -1), 0);
  EXPECT_EQ(event_.events, ZMQ_POLLPRI);
  zmq_pollitem_t item = {nullptr, receiver, ZMQ_POLLPRI, 0};
  EXPECT_EQ(zmq_poll(&item, 1, -1), 1);
  EXPECT_EQ(item.revents, ZMQ_POLLPRI);
  for (const int fd : {listener, sender, receiver}) {
    close(fd);
  }
}

}  // namespace
}  // namespace weft::capi
