// SPDX-License-Identifier: MIT
#include <climits>
#include <vector>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

constexpr size_t kHour = 3'600'000;

void remember(int id, void* ids) { static_cast<std::vector<int>*>(ids)->push_back(id); }

class CapiTimersTest : public testing::Test {
 protected:
  ~CapiTimersTest() override {
    if (timers_ != nullptr) {
      EXPECT_EQ(zmq_timers_destroy(&timers_), 0);
    }
  }
  int add(size_t interval) { return zmq_timers_add(timers_, interval, &remember, &ran_); }

  void* timers_ = zmq_timers_new();
  std::vector<int> ran_;
};

TEST_F(CapiTimersTest, WithoutTimersThereIsNothingToWaitFor) {
  EXPECT_EQ(zmq_timers_timeout(timers_), -1);
  EXPECT_EQ(zmq_timers_execute(timers_), 0);
}

TEST_F(CapiTimersTest, TheTimeoutIsThatOfTheNextTimer) {
  add(kHour);
  const int sooner = add(kHour / 2);
  long timeout = zmq_timers_timeout(timers_);
  EXPECT_GT(timeout, 0);
  EXPECT_LE(timeout, static_cast<long>(kHour / 2));
  ASSERT_EQ(zmq_timers_cancel(timers_, sooner), 0);
  timeout = zmq_timers_timeout(timers_);
  EXPECT_GT(timeout, static_cast<long>(kHour / 2));
  EXPECT_EQ(zmq_timers_execute(timers_), 0);
  EXPECT_TRUE(ran_.empty());
}

TEST_F(CapiTimersTest, DueTimersRunInOrderAndRepeat) {
  const int first = add(0);
  const int second = add(0);
  add(kHour);
  EXPECT_EQ(zmq_timers_timeout(timers_), 0);
  EXPECT_EQ(zmq_timers_execute(timers_), 0);
  EXPECT_EQ(zmq_timers_execute(timers_), 0);
  EXPECT_EQ(ran_, (std::vector<int>{first, second, first, second}));
}

TEST_F(CapiTimersTest, AfterTheTimeoutTheTimerIsDue) {
  add(3);
  const long timeout = zmq_timers_timeout(timers_);
  ASSERT_GE(timeout, 0);
  EXPECT_EQ(zmq_poll(nullptr, 0, timeout), 0);
  EXPECT_EQ(zmq_timers_execute(timers_), 0);
  EXPECT_EQ(ran_.size(), 1u);
}

TEST_F(CapiTimersTest, AnIntervalChangesAndATimerStartsAnew) {
  const int id = add(kHour);
  ASSERT_EQ(zmq_timers_set_interval(timers_, id, 0), 0);
  EXPECT_EQ(zmq_timers_execute(timers_), 0);
  EXPECT_EQ(ran_.size(), 1u);
  ASSERT_EQ(zmq_timers_set_interval(timers_, id, SIZE_MAX), 0);  // never
  ASSERT_EQ(zmq_timers_reset(timers_, id), 0);
  EXPECT_GT(zmq_timers_timeout(timers_), static_cast<long>(kHour));
}

TEST_F(CapiTimersTest, UnknownTimersAnswerEinval) {
  const int id = add(0);
  ASSERT_EQ(zmq_timers_cancel(timers_, id), 0);
  EXPECT_ERRNO(EINVAL, zmq_timers_cancel(timers_, id));
  EXPECT_ERRNO(EINVAL, zmq_timers_reset(timers_, id));
  EXPECT_ERRNO(EINVAL, zmq_timers_set_interval(timers_, id, 1));
  EXPECT_ERRNO(EINVAL, zmq_timers_cancel(timers_, INT_MIN));
}

TEST_F(CapiTimersTest, APointerToNoTimersAnswersEfault) {
  int not_timers[64] = {};
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(not_timers)}) {
    void* pointer = wrong;
    EXPECT_ERRNO(EFAULT, zmq_timers_destroy(&pointer));
    EXPECT_ERRNO(EFAULT, zmq_timers_add(wrong, 1, &remember, nullptr));
    EXPECT_ERRNO(EFAULT, zmq_timers_cancel(wrong, 1));
    EXPECT_ERRNO(EFAULT, zmq_timers_set_interval(wrong, 1, 1));
    EXPECT_ERRNO(EFAULT, zmq_timers_reset(wrong, 1));
    EXPECT_ERRNO(EFAULT, zmq_timers_timeout(wrong));
    EXPECT_ERRNO(EFAULT, zmq_timers_execute(wrong));
  }
  EXPECT_ERRNO(EFAULT, zmq_timers_destroy(nullptr));
  EXPECT_ERRNO(EFAULT, zmq_timers_add(timers_, 1, nullptr, nullptr));
}

TEST_F(CapiTimersTest, DestructionForgetsTheTimersAndThePointer) {
  add(0);
  void* const old = timers_;
  ASSERT_EQ(zmq_timers_destroy(&timers_), 0);
  EXPECT_EQ(timers_, nullptr);
  EXPECT_ERRNO(EFAULT, zmq_timers_execute(old));
  timers_ = zmq_timers_new();  // perhaps in the same place
  EXPECT_EQ(zmq_timers_timeout(timers_), -1);
}

TEST_F(CapiTimersTest, ACallbackCannotDestroyTheTimersThatCallIt) {
  static int answer = 0;
  zmq_timers_add(
      timers_, 0, [](int, void* self) { answer = zmq_timers_destroy(static_cast<void**>(self)) == -1 ? errno : 0; },
      &timers_);
  EXPECT_EQ(zmq_timers_execute(timers_), 0);
  EXPECT_EQ(answer, EBUSY);
}

}  // namespace
}  // namespace weft::capi
