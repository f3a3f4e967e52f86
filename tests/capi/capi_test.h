// SPDX-License-Identifier: MIT
#pragma once

#define ZMQ_BUILD_DRAFT_API

#include <cerrno>
#include <type_traits>

#include "capi/zmq.h"
#include <gtest/gtest.h>

namespace weft::capi {

inline constexpr int kLong = 20'000;  // milliseconds; only a test that fails waits so long

// EXPECT_ERRNO(EINVAL, zmq_call(...)): the call returns -1, or null, and leaves that errno.
template <typename Call>
testing::AssertionResult refuses(int number, const char* text, Call&& call) {
  errno = 0;
  const auto answer = call();
  const int left = zmq_errno();
  if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(answer)>>) {
    if (answer != nullptr) {
      return testing::AssertionFailure() << text << " is not null";
    }
  } else if (answer != -1) {
    return testing::AssertionFailure() << text << " is " << answer;
  }
  if (left != number) {
    return testing::AssertionFailure() << text << " left errno " << left << " (" << zmq_strerror(left) << ")";
  }
  return testing::AssertionSuccess();
}
#define EXPECT_ERRNO(number, call) EXPECT_TRUE(::weft::capi::refuses(number, #call, [&] { return call; }))

// CapiTest: a context that ends with the test, which closes its own sockets.
class CapiTest : public testing::Test {
 protected:
  CapiTest() = default;
  ~CapiTest() override {
    if (context_ != nullptr) {
      EXPECT_EQ(zmq_ctx_term(context_), 0);
    }
  }

  void* const context_ = zmq_ctx_new();
};

}  // namespace weft::capi
