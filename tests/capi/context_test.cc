// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

// The thread of this process that has this name; 0: none.
pid_t thread_named(const std::string& wanted) {
  pid_t found = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = tasks == nullptr ? nullptr : readdir(tasks)) {
    std::ifstream file("/proc/self/task/" + std::string(task->d_name) + "/comm");
    std::string name;
    if (std::getline(file, name) && name == wanted) {
      found = std::atoi(task->d_name);
    }
  }
  if (tasks != nullptr) {
    closedir(tasks);
  }
  return found;
}

// A context whose I/O thread has set itself up with the options that `prepare` set.
class IoThread {
 public:
  template <typename Prepare>
  explicit IoThread(Prepare&& prepare, const char* name = "effect/weft-io") {
    EXPECT_EQ(zmq_ctx_set_ext(context_, ZMQ_THREAD_NAME_PREFIX, "effect", 6), 0);
    prepare(context_);
    pull_ = zmq_socket(context_, ZMQ_PULL);
    push_ = zmq_socket(context_, ZMQ_PUSH);
    char endpoint[64];
    char byte = 0;
    std::size_t size = sizeof endpoint;
    EXPECT_EQ(zmq_bind(pull_, "tcp://127.0.0.1:*"), 0);
    EXPECT_EQ(zmq_getsockopt(pull_, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    EXPECT_EQ(zmq_connect(push_, endpoint), 0);
    EXPECT_EQ(zmq_send(push_, "x", 1, 0), 1);
    EXPECT_EQ(zmq_recv(pull_, &byte, 1, 0), 1);  // so the I/O thread runs
    id_ = thread_named(name);
    EXPECT_NE(id_, 0);
  }
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;
  ~IoThread() {
    zmq_close(push_);
    zmq_close(pull_);
    zmq_ctx_term(context_);
  }
  [[nodiscard]] pid_t id() const { return id_; }

 private:
  void* const context_ = zmq_ctx_new();
  void* pull_ = nullptr;
  void* push_ = nullptr;
  pid_t id_ = 0;
};

using CapiContextTest = CapiTest;

TEST_F(CapiContextTest, DefaultsAreThoseOfLibzmq) {
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_IO_THREADS), ZMQ_IO_THREADS_DFLT);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_MAX_SOCKETS), ZMQ_MAX_SOCKETS_DFLT);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_SOCKET_LIMIT), 65535);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_THREAD_SCHED_POLICY), ZMQ_THREAD_SCHED_POLICY_DFLT);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_MAX_MSGSZ), INT32_MAX);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_MSG_T_SIZE), static_cast<int>(sizeof(zmq_msg_t)));
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_IPV6), 0);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_BLOCKY), 1);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_ZERO_COPY_RECV), 1);
  EXPECT_EQ(zmq_ctx_get(context_, ZMQ_THREAD_NAME_PREFIX), 0);
}

TEST_F(CapiContextTest, AnOptionThatIsSetIsReadBack) {
  struct {
    int option;
    int value;
  } const rows[] = {{ZMQ_IO_THREADS, 2}, {ZMQ_MAX_SOCKETS, 7},           {ZMQ_THREAD_SCHED_POLICY, 0},
                    {ZMQ_MAX_MSGSZ, 99}, {ZMQ_THREAD_NAME_PREFIX, 1234}, {ZMQ_IPV6, 1},
                    {ZMQ_BLOCKY, 0},     {ZMQ_ZERO_COPY_RECV, 0}};
  for (const auto& row : rows) {
    EXPECT_EQ(zmq_ctx_set(context_, row.option, row.value), 0) << row.option;
    EXPECT_EQ(zmq_ctx_get(context_, row.option), row.value) << row.option;
    int value = -1;
    size_t size = sizeof value;
    EXPECT_EQ(zmq_ctx_set_ext(context_, row.option, &row.value, sizeof row.value), 0) << row.option;
    EXPECT_EQ(zmq_ctx_get_ext(context_, row.option, &value, &size), 0) << row.option;
    EXPECT_EQ(value, row.value) << row.option;
  }
}

TEST_F(CapiContextTest, AnyPositiveNumberIsTrue) {
  for (const int option : {ZMQ_IPV6, ZMQ_BLOCKY, ZMQ_ZERO_COPY_RECV}) {
    EXPECT_EQ(zmq_ctx_set(context_, option, 2), 0);
    EXPECT_EQ(zmq_ctx_get(context_, option), 1);
  }
}

TEST_F(CapiContextTest, OptionsRefuseWhatIsOutOfRange) {
  struct {
    int option;
    int value;
  } const rows[] = {{ZMQ_IO_THREADS, -1},
                    {ZMQ_MAX_SOCKETS, 0},
                    {ZMQ_THREAD_PRIORITY, -1},
                    {ZMQ_THREAD_SCHED_POLICY, -1},
                    {ZMQ_MAX_MSGSZ, -1},
                    {ZMQ_ZERO_COPY_RECV, -1},
                    {ZMQ_MSG_T_SIZE, 64},
                    {ZMQ_THREAD_AFFINITY_CPU_ADD, -1},
                    {ZMQ_THREAD_AFFINITY_CPU_ADD, 1 << 20},
                    {ZMQ_THREAD_AFFINITY_CPU_REMOVE, 0},  // this CPU was not added
                    {ZMQ_IPV6, -1},
                    {ZMQ_BLOCKY, -1},
                    {4711, 1}};
  for (const auto& row : rows) {
    EXPECT_ERRNO(EINVAL, zmq_ctx_set(context_, row.option, row.value));
  }
  EXPECT_ERRNO(EINVAL, zmq_ctx_get(context_, ZMQ_THREAD_AFFINITY_CPU_ADD));
  EXPECT_ERRNO(EINVAL, zmq_ctx_get(context_, 4711));
  EXPECT_ERRNO(EFAULT, zmq_ctx_set(nullptr, ZMQ_IO_THREADS, 1));
  EXPECT_ERRNO(EFAULT, zmq_ctx_get(nullptr, ZMQ_IO_THREADS));
}

TEST_F(CapiContextTest, CpusAreAddedAndRemoved) {
  EXPECT_EQ(zmq_ctx_set(context_, ZMQ_THREAD_PRIORITY, 1), 0);
  EXPECT_EQ(zmq_ctx_set(context_, ZMQ_THREAD_AFFINITY_CPU_ADD, 0), 0);
  EXPECT_EQ(zmq_ctx_set(context_, ZMQ_THREAD_AFFINITY_CPU_ADD, 0), 0);
  EXPECT_EQ(zmq_ctx_set(context_, ZMQ_THREAD_AFFINITY_CPU_REMOVE, 0), 0);
  EXPECT_ERRNO(EINVAL, zmq_ctx_set(context_, ZMQ_THREAD_AFFINITY_CPU_REMOVE, 0));
}

TEST_F(CapiContextTest, ThePrefixIsInTheNameOfTheThread) {
  constexpr char kPrefix[] = "capites";
  EXPECT_EQ(zmq_ctx_set_ext(context_, ZMQ_THREAD_NAME_PREFIX, kPrefix, std::strlen(kPrefix)), 0);
  char prefix[17] = {};
  size_t size = sizeof prefix - 1;
  EXPECT_EQ(zmq_ctx_get_ext(context_, ZMQ_THREAD_NAME_PREFIX, prefix, &size), 0);
  EXPECT_EQ(size, std::strlen(kPrefix));
  EXPECT_STREQ(prefix, kPrefix);
  const IoThread thread([](void* context) { EXPECT_EQ(zmq_ctx_set(context, ZMQ_THREAD_NAME_PREFIX, 4711), 0); },
                        "4711/weft-io");
}

TEST_F(CapiContextTest, TheSchedulingPolicyIsThatOfTheThread) {
  ASSERT_NE(sched_getscheduler(0), SCHED_BATCH);
  const IoThread thread(
      [](void* context) { EXPECT_EQ(zmq_ctx_set(context, ZMQ_THREAD_SCHED_POLICY, SCHED_BATCH), 0); });
  EXPECT_EQ(sched_getscheduler(thread.id()), SCHED_BATCH);
}

TEST_F(CapiContextTest, ThePriorityOfAnUsualThreadIsTheHighestNiceValue) {
  bool allowed = false;
  std::thread([&] { allowed = setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -20) == 0; }).join();
  const IoThread thread([](void* context) { EXPECT_EQ(zmq_ctx_set(context, ZMQ_THREAD_PRIORITY, 1), 0); });
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(thread.id())), allowed ? -20 : getpriority(PRIO_PROCESS, 0));
}

TEST_F(CapiContextTest, TheThreadStaysOnTheCpusThatAreLeft) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &usable)) {
      cpus.push_back(cpu);
    }
  }
  if (cpus.size() < 2) {
    GTEST_SKIP() << "there is no choice on this machine";
  }
  const IoThread thread([&](void* context) {
    EXPECT_EQ(zmq_ctx_set(context, ZMQ_THREAD_AFFINITY_CPU_ADD, cpus[0]), 0);
    EXPECT_EQ(zmq_ctx_set(context, ZMQ_THREAD_AFFINITY_CPU_ADD, cpus[1]), 0);
    EXPECT_EQ(zmq_ctx_set(context, ZMQ_THREAD_AFFINITY_CPU_REMOVE, cpus[0]), 0);
  });
  cpu_set_t used;
  ASSERT_EQ(sched_getaffinity(thread.id(), sizeof used, &used), 0);
  EXPECT_EQ(CPU_COUNT(&used), 1);
  EXPECT_TRUE(CPU_ISSET(cpus[1], &used));
}

TEST_F(CapiContextTest, SocketsBeginWithWhatTheContextSays) {
  struct Row {
    int of_context;
    int value;
    int of_socket;
    int expected;
  };
  for (const Row& row : {Row{ZMQ_BLOCKY, 1, ZMQ_LINGER, -1}, Row{ZMQ_BLOCKY, 0, ZMQ_LINGER, 0},
                         Row{ZMQ_IPV6, 0, ZMQ_IPV6, 0}, Row{ZMQ_IPV6, 1, ZMQ_IPV6, 1}}) {
    ASSERT_EQ(zmq_ctx_set(context_, row.of_context, row.value), 0);
    void* const socket = zmq_socket(context_, ZMQ_DEALER);
    int value = -7;
    std::size_t size = sizeof value;
    EXPECT_EQ(zmq_getsockopt(socket, row.of_socket, &value, &size), 0);
    EXPECT_EQ(value, row.expected);
    zmq_close(socket);
  }
}

TEST_F(CapiContextTest, ExtendedOptionsRefuseNullAndOddSizes) {
  char text[40] = "0123456789";
  size_t size = 2;
  EXPECT_ERRNO(EFAULT, zmq_ctx_set_ext(nullptr, ZMQ_THREAD_NAME_PREFIX, text, 3));
  EXPECT_ERRNO(EFAULT, zmq_ctx_get_ext(nullptr, ZMQ_THREAD_NAME_PREFIX, text, &size));
  EXPECT_ERRNO(EINVAL, zmq_ctx_set_ext(context_, ZMQ_THREAD_NAME_PREFIX, nullptr, 3));
  EXPECT_ERRNO(EINVAL, zmq_ctx_set_ext(context_, ZMQ_THREAD_NAME_PREFIX, text, 0));
  EXPECT_ERRNO(EINVAL, zmq_ctx_set_ext(context_, ZMQ_THREAD_NAME_PREFIX, text, 17));
  EXPECT_ERRNO(EINVAL, zmq_ctx_set_ext(context_, ZMQ_IO_THREADS, text, 3));
  EXPECT_EQ(zmq_ctx_set_ext(context_, ZMQ_THREAD_NAME_PREFIX, text, 10), 0);
  EXPECT_ERRNO(EINVAL, zmq_ctx_get_ext(context_, ZMQ_THREAD_NAME_PREFIX, text, &size));
  EXPECT_ERRNO(EINVAL, zmq_ctx_get_ext(context_, ZMQ_THREAD_NAME_PREFIX, nullptr, &size));
  EXPECT_ERRNO(EINVAL, zmq_ctx_get_ext(context_, ZMQ_THREAD_NAME_PREFIX, text, nullptr));
}

}  // namespace
}  // namespace weft::capi
