// SPDX-License-Identifier: MIT
#include "weft/base/error_code.h"

#include <cerrno>
#include <future>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr int kCodes = static_cast<int>(Errc::corrupt) + 1;

TEST(ErrorCode, AnErrcIsAnErrorCodeOfItsOwnCategory) {
  const std::error_code code = Errc::timed_out;
  EXPECT_STREQ(code.category().name(), "weft");
  EXPECT_EQ(code.message(), "timed out");
  EXPECT_EQ(code, Errc::timed_out);
  EXPECT_NE(code, Errc::closed);
  EXPECT_FALSE(std::error_code(Errc::ok));
}

TEST(ErrorCode, ACodeEqualsTheStandardsConditionThatSaysTheSameAndNoOther) {
  EXPECT_EQ(std::error_code(Errc::timed_out), std::errc::timed_out);
  EXPECT_EQ(std::error_code(Errc::would_block), std::errc::operation_would_block);
  EXPECT_EQ(std::error_code(Errc::address_in_use), std::errc::address_in_use);
  EXPECT_NE(std::error_code(Errc::address_in_use), std::errc::address_not_available);
  EXPECT_EQ(std::error_code(Errc::not_permitted), std::errc::operation_not_permitted);
  EXPECT_EQ(std::error_code(Errc::incompatible_peer).default_error_condition().category(), error_category());
}

TEST(ErrorCode, EveryErrcComesBackAsItWent) {
  for (int i = 0; i < kCodes; ++i) {
    const Error error(static_cast<Errc>(i), "text");
    const std::error_code code = to_error_code(error);
    EXPECT_EQ(from_error_code(code), error) << i;
    EXPECT_EQ(code, make_error_code(error.code()));
    EXPECT_EQ(static_cast<bool>(code), i != 0);
    EXPECT_EQ(code.message(), describe(error.code()));
  }
}

TEST(ErrorCode, AnErrorOfAnotherDomainComesBackWithItsDomainAndNumber) {
  const Error error(ErrorDomain("game"), 7, "out of mana");
  const std::error_code code = to_error_code(error);
  EXPECT_EQ(from_error_code(code), error);
  EXPECT_EQ(code.message(), "error of another domain (7)");
}

TEST(ErrorCode, ASystemErrorKeepsItsErrnoBothWays) {
  const std::error_code code = to_error_code(Error(Errc::system, "open", EIO));
  EXPECT_EQ(code, std::error_code(EIO, std::system_category()));
  EXPECT_EQ(code, std::errc::io_error);
  EXPECT_EQ(from_error_code(code), Error(Errc::system, "", EIO));
  EXPECT_EQ(from_error_code(std::make_error_code(std::errc::address_in_use)),
            Error(Errc::address_in_use, "", EADDRINUSE));
}

TEST(ErrorCode, ACodeOfAnotherCategoryBecomesAnErrorOfThatDomain) {
  const Error error = from_error_code(std::make_error_code(std::future_errc::broken_promise));
  EXPECT_EQ(error, Errc::other);
  EXPECT_EQ(error.domain(), ErrorDomain("future"));
  EXPECT_EQ(error.value(), static_cast<int>(std::future_errc::broken_promise));
  EXPECT_STREQ(error.text(), "future");
  EXPECT_EQ(from_error_code(std::error_code(-3, std::future_category())).value(), 0xFFFF);
  EXPECT_EQ(from_error_code(std::error_code()), Errc::ok);
}

}  // namespace
}  // namespace weft
