// SPDX-License-Identifier: MIT
#include <sys/uio.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/capi/capi_test.h"
#include "weft/base/version.h"

namespace weft::capi {
namespace {

TEST(CapiUtilitiesTest, ACounterSaysWhenItComesToZero) {
  void* counter = zmq_atomic_counter_new();
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(zmq_atomic_counter_value(counter), 0);
  EXPECT_EQ(zmq_atomic_counter_inc(counter), 0);
  EXPECT_EQ(zmq_atomic_counter_inc(counter), 1);
  EXPECT_EQ(zmq_atomic_counter_dec(counter), 1);
  EXPECT_EQ(zmq_atomic_counter_dec(counter), 0);
  zmq_atomic_counter_set(counter, -7);
  EXPECT_EQ(zmq_atomic_counter_value(counter), -7);
  zmq_atomic_counter_destroy(&counter);
  EXPECT_EQ(counter, nullptr);
}

TEST(CapiUtilitiesTest, AThreadRunsAndIsWaitedFor) {
  void* counter = zmq_atomic_counter_new();
  void* threads[4];
  for (void*& thread : threads) {
    thread = zmq_threadstart(
        [](void* shared) {
          for (int i = 0; i < 1000; ++i) {
            zmq_atomic_counter_inc(shared);
          }
        },
        counter);
    ASSERT_NE(thread, nullptr);
  }
  for (void* thread : threads) {
    zmq_threadclose(thread);
  }
  EXPECT_EQ(zmq_atomic_counter_value(counter), 4000);
  zmq_atomic_counter_destroy(&counter);
}

TEST(CapiUtilitiesTest, AStopwatchGoesForward) {
  void* watch = zmq_stopwatch_start();
  ASSERT_NE(watch, nullptr);
  while (zmq_stopwatch_intermediate(watch) < 1000) {
  }
  EXPECT_GE(zmq_stopwatch_stop(watch), 1000u);
  EXPECT_EQ(zmq_stopwatch_stop(watch), 0u);  // stopped already
}

TEST(CapiUtilitiesTest, NullIsNothing) {
  zmq_sleep(0);
  zmq_sleep(-1);
  zmq_threadclose(nullptr);
  EXPECT_ERRNO(EFAULT, zmq_threadstart(nullptr, nullptr));
  EXPECT_EQ(zmq_stopwatch_intermediate(nullptr), 0u);
  EXPECT_EQ(zmq_stopwatch_stop(nullptr), 0u);
  zmq_atomic_counter_set(nullptr, 1);
  EXPECT_ERRNO(EFAULT, zmq_atomic_counter_inc(nullptr));
  EXPECT_ERRNO(EFAULT, zmq_atomic_counter_dec(nullptr));
  EXPECT_ERRNO(EFAULT, zmq_atomic_counter_value(nullptr));
  zmq_atomic_counter_destroy(nullptr);
  void* none = nullptr;
  zmq_atomic_counter_destroy(&none);
  zmq_version(nullptr, nullptr, nullptr);
  weft_version(nullptr, nullptr, nullptr);
  EXPECT_EQ(zmq_has(nullptr), 0);
}

TEST(CapiUtilitiesTest, SaysWhatItIsAndWhatItHas) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  EXPECT_EQ(ZMQ_MAKE_VERSION(major, minor, patch), ZMQ_VERSION);
  weft_version(&major, &minor, &patch);
  EXPECT_EQ(ZMQ_MAKE_VERSION(major, minor, patch), WEFT_VERSION);
  EXPECT_EQ(zmq_has("ipc"), 1);
  EXPECT_EQ(zmq_has("vsock"), 1);
  EXPECT_EQ(zmq_has("draft"), 1);
  for (const char* missing : {"pgm", "tipc", "norm", "gssapi", "vmci", "IPC", ""}) {
    EXPECT_EQ(zmq_has(missing), 0) << missing;
  }
}

TEST(CapiUtilitiesTest, AMessageFromABufferIsACopy) {
  std::string text(100, 'x');
  zmq_msg_t message;
  ASSERT_EQ(zmq_msg_init_buffer(&message, text.data(), text.size()), 0);
  text[0] = 'y';
  ASSERT_EQ(zmq_msg_size(&message), 100u);
  EXPECT_EQ(*static_cast<char*>(zmq_msg_data(&message)), 'x');
  EXPECT_EQ(zmq_msg_close(&message), 0);
  ASSERT_EQ(zmq_msg_init_buffer(&message, nullptr, 0), 0);
  EXPECT_EQ(zmq_msg_size(&message), 0u);
  EXPECT_EQ(zmq_msg_close(&message), 0);
}

TEST(CapiUtilitiesTest, MessagesRefuseNull) {
  zmq_msg_t message;
  EXPECT_ERRNO(EFAULT, zmq_msg_init(nullptr));
  EXPECT_ERRNO(EFAULT, zmq_msg_init_size(nullptr, 1));
  EXPECT_ERRNO(EFAULT, zmq_msg_init_data(nullptr, nullptr, 0, nullptr, nullptr));
  EXPECT_ERRNO(EFAULT, zmq_msg_init_data(&message, nullptr, 1, nullptr, nullptr));
  EXPECT_ERRNO(EFAULT, zmq_msg_init_buffer(nullptr, "x", 1));
  EXPECT_ERRNO(EFAULT, zmq_msg_init_buffer(&message, nullptr, 1));
}

class CapiVectorTest : public CapiTest {
 protected:
  CapiVectorTest() {
    EXPECT_EQ(zmq_bind(pull_, "inproc://vector"), 0);
    EXPECT_EQ(zmq_connect(push_, "inproc://vector"), 0);
  }
  ~CapiVectorTest() override {
    zmq_close(push_);
    zmq_close(pull_);
  }
  // The parts of one zmq_recviov.
  std::vector<std::string> receive(size_t room) {
    std::vector<iovec> parts(room);
    const int taken = zmq_recviov(pull_, parts.data(), &room, ZMQ_DONTWAIT);
    EXPECT_EQ(taken < 0 ? 0 : taken, static_cast<int>(room));
    std::vector<std::string> texts;
    for (size_t i = 0; i < room; ++i) {
      texts.emplace_back(static_cast<char*>(parts[i].iov_base), parts[i].iov_len);
      std::free(parts[i].iov_base);
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  void* const push_ = zmq_socket(context_, ZMQ_PUSH);
  void* const pull_ = zmq_socket(context_, ZMQ_PULL);
  char one_[4] = "one";
  char two_[6] = "twice";
  iovec parts_[3] = {{one_, 3}, {nullptr, 0}, {two_, 5}};
};

TEST_F(CapiVectorTest, PartsOfOneMessageArriveTogether) {
  EXPECT_EQ(zmq_sendiov(push_, parts_, 3, ZMQ_SNDMORE), 5);
  EXPECT_EQ(receive(8), (Texts{"one", "", "twice"}));
}

TEST_F(CapiVectorTest, WithoutMoreEachElementIsAMessage) {
  EXPECT_EQ(zmq_sendiov(push_, parts_, 3, 0), 5);
  EXPECT_EQ(receive(8), Texts{"one"});
  EXPECT_EQ(receive(8), Texts{""});
  EXPECT_EQ(receive(8), Texts{"twice"});
}

TEST_F(CapiVectorTest, PartsForWhichThereIsNoRoomStay) {
  EXPECT_EQ(zmq_sendiov(push_, parts_, 3, ZMQ_SNDMORE), 5);
  EXPECT_EQ(receive(2), (Texts{"one", ""}));
  EXPECT_EQ(receive(2), Texts{"twice"});
}

TEST_F(CapiVectorTest, RefusesWhatItCannotDo) {
  iovec part{};
  size_t none = 0;
  size_t room = 1;
  EXPECT_ERRNO(ENOTSOCK, zmq_sendiov(nullptr, parts_, 3, 0));
  EXPECT_ERRNO(EINVAL, zmq_sendiov(push_, nullptr, 3, 0));
  EXPECT_ERRNO(EINVAL, zmq_sendiov(push_, parts_, 0, 0));
  EXPECT_ERRNO(ENOTSOCK, zmq_recviov(nullptr, &part, &room, 0));
  EXPECT_ERRNO(EINVAL, zmq_recviov(pull_, nullptr, &room, 0));
  EXPECT_ERRNO(EINVAL, zmq_recviov(pull_, &part, nullptr, 0));
  EXPECT_ERRNO(EINVAL, zmq_recviov(pull_, &part, &none, 0));
  EXPECT_ERRNO(EAGAIN, zmq_recviov(pull_, &part, &room, ZMQ_DONTWAIT));
  EXPECT_EQ(room, 0u);
}

}  // namespace
}  // namespace weft::capi
