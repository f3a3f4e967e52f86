// SPDX-License-Identifier: MIT
#include "weft/sys/call.h"

#include <gtest/gtest.h>

namespace weft::sys {
namespace {

TEST(Call, MapsErrnoToTheVocabulary) {
  const struct {
    int os_errno;
    Errc code;
  } cases[] = {
      {EADDRINUSE, Errc::address_in_use},
      {EADDRNOTAVAIL, Errc::address_unavailable},
      {ECONNREFUSED, Errc::connection_failed},
      {ECONNRESET, Errc::connection_failed},
      {EPIPE, Errc::connection_failed},
      {ETIMEDOUT, Errc::connection_failed},
      {EHOSTUNREACH, Errc::connection_failed},
      {ENETUNREACH, Errc::connection_failed},
      {EMFILE, Errc::resource_exhausted},
      {ENFILE, Errc::resource_exhausted},
      {ENOMEM, Errc::resource_exhausted},
      {ENOBUFS, Errc::resource_exhausted},
      {EAGAIN, Errc::would_block},
      {EINTR, Errc::interrupted},
      {EINVAL, Errc::invalid_argument},
      {ENAMETOOLONG, Errc::malformed_endpoint},
      {ENOENT, Errc::address_unavailable},
      {EAFNOSUPPORT, Errc::not_supported},
      {EACCES, Errc::not_permitted},
      {EPERM, Errc::not_permitted},
      {EIO, Errc::system},
      {0, Errc::system},
  };
  for (const auto& [os_errno, code] : cases) {
    const Error error = make_error(os_errno, "step");
    EXPECT_EQ(error.code(), code) << os_errno;
    EXPECT_EQ(error.os_errno(), os_errno);
    EXPECT_STREQ(error.text(), "step");
  }
}

TEST(Call, RepeatsAnInterruptedCallAndOnlyThat) {
  int calls = 0;
  const auto interrupted_twice = [&] {
    errno = EINTR;
    return ++calls < 3 ? -1 : 7;
  };
  EXPECT_EQ(call(interrupted_twice).value, 7);
  EXPECT_EQ(calls, 3);

  calls = 0;
  const auto once = call_once(interrupted_twice);
  EXPECT_TRUE(once.failed());
  EXPECT_EQ(once.os_errno, EINTR);
  EXPECT_EQ(calls, 1);

  calls = 0;
  const auto refused = checked_call("step", [&] {
    ++calls;
    errno = EMFILE;
    return -1;
  });
  EXPECT_EQ(refused.error().code(), Errc::resource_exhausted);
  EXPECT_EQ(calls, 1);
}

TEST(Call, IgnoresErrnoLeftFromBefore) {
  errno = EMFILE;
  EXPECT_EQ(checked_call("step", [] { return 5; }).value(), 5);
}

}  // namespace
}  // namespace weft::sys
