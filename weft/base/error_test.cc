// SPDX-License-Identifier: MIT
#include "weft/base/error.h"

#include <cerrno>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "weft/base/result.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr Errc kLast = Errc::corrupt;

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

TEST(Error, ThatIsOkHasNoErrnoAndMakesNoValueOfAResult) {
  constexpr Error error(Errc::ok, "text", EIO);
  EXPECT_EQ(error, Error());
  EXPECT_EQ(error.os_errno(), 0);
  EXPECT_EQ(Error(ErrorDomain(), 0, "text", EIO), Error());
  EXPECT_EQ(Result<int>(error).error(), Errc::invalid_state);
  EXPECT_TRUE(Result<void>(error).has_value());
}

TEST(Error, TheMessageHasTheDescriptionThenTheTextThenTheErrno) {
  EXPECT_EQ(Error(Errc::address_in_use).message(), "address in use");
  EXPECT_EQ(Error(Errc::job_threw).message(), "an exception ended the job or the task");
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

TEST(Error, OfAnotherDomainKeepsItsNumberAndIsOtherToThoseWhoDoNotKnowIt) {
  constexpr ErrorDomain kGame("game");
  constexpr Error error(kGame, 7, "out of mana", 5);
  static_assert(error.domain() == kGame && error.value() == 7 && error.code() == Errc::other);
  static_assert(ErrorDomain("game") != ErrorDomain("chat") && kGame != ErrorDomain());
  EXPECT_EQ(error, Errc::other);
  EXPECT_FALSE(error == static_cast<Errc>(7));
  EXPECT_FALSE(error == Error(static_cast<Errc>(7), "", 5));
  EXPECT_FALSE(error == Error(ErrorDomain("chat"), 7, "", 5));
  EXPECT_EQ(error, Error(kGame, 7, "any text", 5));
  EXPECT_FALSE(Error(kGame, 0) == Errc::ok);
  EXPECT_EQ(Error(kGame, 7, "out of mana").message(), "error of another domain (7): out of mana");
}

TEST(Error, ItsMessageIsWrittenIntoAnyBufferAndCutWhereThatEnds) {
  const Error error(Errc::address_in_use, "bind", EADDRINUSE);
  const std::string whole = error.message();
  for (std::size_t size = 0; size <= whole.size() + 1; ++size) {
    std::string buffer(whole.size() + 2, '#');
    const std::string_view written = error.write_message(std::span(buffer).first(size));
    EXPECT_EQ(written, std::string_view(whole).substr(0, size));
    EXPECT_EQ(written.data(), buffer.data());
    EXPECT_EQ(buffer.find_first_not_of('#', size), std::string::npos) << "written behind the buffer";
  }
}

TEST(Error, AnErrnoNobodyKnowsStillHasAMessage) {
  EXPECT_EQ(Error(Errc::system, nullptr, -5).message().rfind("system error (errno -5: ", 0), 0u);
}

TEST(Error, SaysHowFarItsRequestCame) {
  constexpr Error lost = Error(Errc::connection_failed, "reset", ECONNRESET).with_fate(Fate::outcome_unknown);
  static_assert(lost.fate() == Fate::outcome_unknown && lost.os_errno() == ECONNRESET);
  EXPECT_EQ(lost, Error(Errc::connection_failed, "", ECONNRESET)) << "the fate is beside the point";
  EXPECT_EQ(lost, Errc::connection_failed);
  EXPECT_STREQ(lost.text(), "reset");
  EXPECT_EQ(Error(Errc::closed).fate(), Fate::unsaid);
  EXPECT_EQ(lost.with_fate(Fate::not_sent).fate(), Fate::not_sent);
  EXPECT_EQ(Error().with_fate(Fate::answered), Errc::ok);
  EXPECT_EQ(Error().with_fate(Fate::answered).fate(), Fate::unsaid);
  EXPECT_EQ(Error(Errc::system, nullptr, -5).with_fate(Fate::answered).os_errno(), -5);
  EXPECT_EQ(Error(ErrorDomain("game"), 7).with_fate(Fate::answered).domain(), ErrorDomain("game"));
  EXPECT_EQ(Result<int>(lost).error().fate(), Fate::outcome_unknown);
  EXPECT_EQ(lost.message().substr(lost.message().rfind(';')), "; sent, outcome unknown");
  EXPECT_EQ(Error(Errc::unreachable).with_fate(Fate::not_sent).message(), "no such peer; not sent");
  EXPECT_EQ(Error(Errc::unreachable).with_fate(Fate::answered).message(), "no such peer");
}

// A text that is made at run time would end before the Error.
static_assert(std::is_constructible_v<Error, Errc, StaticText> && !std::is_constructible_v<Error, Errc, std::string>);
TEST(Error, TheTextOfAnotherErrorIsTakenAsItIs) {
  const Error first(Errc::closed, "the reason");
  EXPECT_STREQ(Error(Errc::terminated, first.static_text()).text(), "the reason");
  EXPECT_STREQ(Error(Errc::terminated, Error().static_text()).text(), "");
}

TEST(Error, AnErrnoIsClassified) {
  EXPECT_EQ(errc_of(EADDRINUSE), Errc::address_in_use);
  EXPECT_EQ(errc_of(EAGAIN), Errc::would_block);
  EXPECT_EQ(errc_of(0), Errc::system);
  EXPECT_EQ(errc_of(-1), Errc::system);
}

}  // namespace
}  // namespace weft
