// SPDX-License-Identifier: MIT
#include <dirent.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

bool has_thread_named(const std::string& wanted) {
  bool found = false;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = tasks == nullptr ? nullptr : readdir(tasks)) {
    std::ifstream file("/proc/self/task/" + std::string(task->d_name) + "/comm");
    std::string name;
    found |= std::getline(file, name) && name == wanted;
  }
  if (tasks != nullptr) {
    closedir(tasks);
  }
  return found;
}

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
}

TEST_F(CapiContextTest, WhatIsSetIsRead) {
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
                    {ZMQ_MSG_T_SIZE, 64},
                    {ZMQ_THREAD_AFFINITY_CPU_ADD, -1},
                    {ZMQ_THREAD_AFFINITY_CPU_ADD, 1 << 20},
                    {ZMQ_THREAD_AFFINITY_CPU_REMOVE, 0},  // was not added
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

  void* socket = zmq_socket(context_, ZMQ_PULL);
  EXPECT_EQ(zmq_bind(socket, "tcp://127.0.0.1:*"), 0);
  void* watch = zmq_stopwatch_start();
  bool named = false;
  while (!(named = has_thread_named("capites/weft-io")) && zmq_stopwatch_intermediate(watch) < 10'000'000) {
  }
  EXPECT_TRUE(named);
  zmq_stopwatch_stop(watch);
  zmq_close(socket);
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
