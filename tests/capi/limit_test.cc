// SPDX-License-Identifier: MIT
// Calls without descriptors or memory return an errno, and work again once the system has some.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

// NoDescriptors: while it lives this process gets no further descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    const int next = ::dup(0);
    EXPECT_GE(next, 0);
    ::close(next);
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &usual_), 0);
    const rlimit narrow{static_cast<rlim_t>(next), usual_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &narrow), 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &usual_), 0); }

 private:
  rlimit usual_{};
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory needs all addresses
// 0: every call returned ENOMEM in the end, and the messages made before can be used and closed.
int use_up_memory(std::vector<zmq_msg_t>& messages) {
  long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) {
    return 10;
  }
  std::fclose(file);
  const auto most = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t{8} << 20);
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) {
    return 11;
  }
  static char bytes[200];  // more than a message holds inside
  std::size_t made = 0;
  using Make = int (*)(zmq_msg_t*);
  const Make makes[] = {
      [](zmq_msg_t* m) { return zmq_msg_init_size(m, 100'000); },
      [](zmq_msg_t* m) { return zmq_msg_init_buffer(m, bytes, sizeof bytes); },
      [](zmq_msg_t* m) { return zmq_msg_init_data(m, bytes, sizeof bytes, [](void*, void*) {}, nullptr); },
  };
  for (const Make make : makes) {
    errno = 0;
    while (made < messages.size() && make(&messages[made]) == 0) {
      ++made;
    }
    if (made == messages.size() || errno != ENOMEM) {
      return 12;
    }
  }
  while (made > 0) {
    if (zmq_msg_close(&messages[--made]) != 0) {
      return 13;
    }
  }
  return zmq_msg_init_size(&messages[0], 100'000) == 0 && zmq_msg_close(&messages[0]) == 0 ? 0 : 14;
}
#endif

// libzmq's contexts and sockets need descriptors: its zmq_ctx_new() and zmq_socket() return EMFILE. Ours need none.
#if !defined(__SANITIZE_ADDRESS__)  // with it comes UBSan, whose check of a virtual call needs descriptors
TEST(CapiLimits, WithoutDescriptorsConnectionsAreRefusedAndLaterMade) {
  void* context = nullptr;
  void* pull = nullptr;
  void* push = nullptr;
  char byte = 0;
  {
    const NoDescriptors limit;
    context = zmq_ctx_new();
    ASSERT_NE(context, nullptr);
    pull = zmq_socket(context, ZMQ_PULL);
    push = zmq_socket(context, ZMQ_PUSH);
    ASSERT_TRUE(pull != nullptr && push != nullptr);
    EXPECT_ERRNO(EMFILE, zmq_bind(pull, "tcp://127.0.0.1:*"));
    EXPECT_ERRNO(EMFILE, zmq_bind(pull, "ipc://@weft-no-descriptors"));
    EXPECT_ERRNO(EMFILE, zmq_connect(push, "tcp://127.0.0.1:5555"));
    EXPECT_ERRNO(EMFILE, zmq_connect(push, "ipc://@weft-no-descriptors"));
    int fd = -1;
    std::size_t size = sizeof fd;
    EXPECT_ERRNO(EMFILE, zmq_getsockopt(pull, ZMQ_FD, &fd, &size));
    ASSERT_EQ(zmq_bind(pull, "inproc://inside"), 0);
    ASSERT_EQ(zmq_connect(push, "inproc://inside"), 0);
    EXPECT_EQ(zmq_send(push, "x", 1, 0), 1);
    EXPECT_EQ(zmq_recv(pull, &byte, 1, 0), 1) << "nothing inside the process needs one";
  }
  ASSERT_EQ(zmq_bind(pull, "tcp://127.0.0.1:*"), 0);
  char endpoint[64];
  std::size_t size = sizeof endpoint;
  ASSERT_EQ(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
  ASSERT_EQ(zmq_disconnect(push, "inproc://inside"), 0);
  ASSERT_EQ(zmq_connect(push, endpoint), 0);
  EXPECT_EQ(zmq_send(push, "y", 1, 0), 1);
  EXPECT_EQ(zmq_recv(pull, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(zmq_close(push), 0);
  EXPECT_EQ(zmq_close(pull), 0);
  EXPECT_EQ(zmq_ctx_term(context), 0);
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CapiLimits, WithoutMemoryThereAreNoMessages) {
  std::vector<zmq_msg_t> messages(1 << 18);
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(use_up_memory(messages));
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST(CapiLimits, AMessageLargerThanMemoryIsRefused) {
  zmq_msg_t message;
  char byte = 0;
  EXPECT_ERRNO(ENOMEM, zmq_msg_init_size(&message, SIZE_MAX));
  EXPECT_ERRNO(ENOMEM, zmq_msg_init_buffer(&message, &byte, SIZE_MAX));
}

}  // namespace
}  // namespace weft::capi
