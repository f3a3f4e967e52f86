// SPDX-License-Identifier: MIT
#include "weft/base/error.h"

#include <cerrno>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr Errc kLast = Errc::system;

TEST(Error, EveryCodeHasADescriptionOfItsOwn) {
  std::set<std::string_view> seen;
  for (int i = 0; i <= static_cast<int>(kLast); ++i) {
    const std::string_view text = describe(static_cast<Errc>(i));
    EXPECT_FALSE(text.empty()) << i;
    EXPECT_NE(text, "unknown error") << i;
    EXPECT_TRUE(seen.insert(text).second) << text << " describes two codes";
  }
}

TEST(Error, ACodeFromTheFutureIsDescribedAsUnknown) {
  EXPECT_EQ(describe(static_cast<Errc>(static_cast<int>(kLast) + 1)), "unknown error");
}

TEST(Error, ADefaultErrorIsOkAndSaysNothing) {
  constexpr Error error;
  EXPECT_EQ(error.code(), Errc::ok);
  EXPECT_EQ(error.os_errno(), 0);
  EXPECT_STREQ(error.text(), "");
  EXPECT_EQ(error.message(), "ok");
}

TEST(Error, TheMessageHasTheDescriptionThenTheTextThenTheErrno) {
  EXPECT_EQ(Error(Errc::address_in_use).message(), "address in use");
  EXPECT_EQ(Error(Errc::address_in_use, "").message(), "address in use");
  EXPECT_EQ(Error(Errc::address_in_use, "tcp").message(), "address in use: tcp");
  const std::string full = Error(Errc::address_in_use, "bind", EADDRINUSE).message();
  EXPECT_EQ(full.rfind("address in use: bind (errno 98: ", 0), 0u) << full;
  EXPECT_EQ(full.back(), ')');
}

TEST(Error, EqualityIsOfCodeAndErrnoAndNotOfText) {
  EXPECT_EQ(Error(Errc::closed, "one"), Error(Errc::closed, "two"));
  EXPECT_FALSE(Error(Errc::closed) == Error(Errc::terminated));
  EXPECT_FALSE(Error(Errc::system, nullptr, 1) == Error(Errc::system, nullptr, 2));
  EXPECT_TRUE(Error(Errc::system, nullptr, 1) == Errc::system);
  EXPECT_FALSE(Error(Errc::system) == Errc::ok);
}

}  // namespace
}  // namespace weft
