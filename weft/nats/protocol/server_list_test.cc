// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/server_list.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "weft/nats/protocol/inbox.h"
#include "weft/nats/protocol/limits.h"
#include "weft/nats/protocol/server_error.h"
#include <gtest/gtest.h>

namespace weft::nats {
namespace {

TEST(NatsServerUrl, ReadsEachForm) {
  EXPECT_EQ(parse_server_url("host")->text(), "nats://host:4222");
  EXPECT_EQ(parse_server_url("host:1")->endpoint(), "tcp://host:1");
  EXPECT_EQ(parse_server_url("tls://[::1]:65535/")->text(), "tls://[::1]:65535");
  EXPECT_EQ(parse_server_url("[fe80::1]")->host, "fe80::1");
  const auto url = parse_server_url("nats://me%40home:p%3Aw@10.0.0.1:4223");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->user, "me@home");
  EXPECT_EQ(url->password.text(), "p:w");
  EXPECT_EQ(url->text(), "nats://10.0.0.1:4223");
  EXPECT_EQ(parse_server_url("nats://token@h")->user, "token");
  EXPECT_EQ(parse_server_url("nats://token@h")->password.text(), "");
}

TEST(NatsServerUrl, RefusesOtherForms) {
  for (const std::string_view text : {"", "nats://", ":4222", "h:", "h:0", "h:65536", "h:4x", "[::1", "[]:1", "[::1]x",
                                      "a b", "@h", "u:%zz@h", "u%4@h", "h/path", "h?x"}) {
    EXPECT_EQ(parse_server_url(text).error().code(), Errc::invalid_argument) << text;
  }
  EXPECT_EQ(parse_server_url("http://h").error().code(), Errc::not_supported);
  EXPECT_EQ(parse_server_url(std::string(kServerTextMax + 1, 'h')).error().code(), Errc::invalid_argument);
}

std::vector<std::string> turn_of(ServerList& list) {
  std::vector<std::string> turn;
  do {
    turn.push_back(list.next().host);
  } while (!list.turn_is_over());
  return turn;
}

TEST(NatsServerList, EachTurnHasEachServerOnce) {
  auto list = ServerList::make("a, b,nats://c:1,a:4222", 7, false);
  ASSERT_TRUE(list);
  EXPECT_EQ(turn_of(*list), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(turn_of(*list), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(NatsServerList, TheOrderIsShuffled) {
  std::set<std::vector<std::string>> orders;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    auto list = ServerList::make("a,b,c", seed);
    auto turn = turn_of(*list);
    orders.insert(turn);
    std::sort(turn.begin(), turn.end());
    EXPECT_EQ(turn, (std::vector<std::string>{"a", "b", "c"}));
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST(NatsServerList, LearntServersComeAndGoAndGivenOnesStay) {
  auto list = ServerList::make("a,b", 1, false);
  EXPECT_EQ(list->next().host, "a");
  list->learn({"b:4222", "c:4222", "d:4222", "not a url", ""}, true);
  EXPECT_EQ(list->size(), 4U);
  EXPECT_EQ(list->next().host, "b");
  const ServerUrl& learnt = list->next();
  EXPECT_EQ(learnt.host, "c");
  EXPECT_TRUE(learnt.tls);
  EXPECT_FALSE(learnt.given);
  list->learn({"d:4222"}, false);
  EXPECT_EQ(list->size(), 3U);
  EXPECT_EQ(list->next().host, "d");
  EXPECT_EQ(turn_of(*list), (std::vector<std::string>{"a", "b", "d"}));
  list->learn({}, false);
  EXPECT_EQ(turn_of(*list), (std::vector<std::string>{"a", "b"}));
}

TEST(NatsServerList, HasABound) {
  std::vector<std::string> many;
  std::string given = "h0";
  for (std::size_t i = 1; i <= kServersMax; ++i) {
    many.push_back("m" + std::to_string(i));
    if (i < kServersMax) {
      given += ",h" + std::to_string(i);
    }
  }
  auto list = ServerList::make(given, 1);
  ASSERT_TRUE(list);
  list->learn(many, false);
  EXPECT_EQ(list->size(), kServersMax);
  EXPECT_EQ(ServerList::make(given + ",one-more", 1).error().code(), Errc::invalid_argument);
  EXPECT_EQ(ServerList::make("", 1).error().code(), Errc::invalid_argument);
  EXPECT_EQ(ServerList::make("a,,b", 1).error().code(), Errc::invalid_argument);
}

TEST(NatsInbox, ASubjectHasItsNumber) {
  std::array<std::uint8_t, Inbox::kRandomSize> random{};
  random[0] = 63;
  const Inbox inbox("_INBOX", random);
  EXPECT_EQ(inbox.filter(), "_INBOX._000000000000000000000.*");
  Inbox::Subject place;
  for (const std::uint32_t number : {std::uint32_t{0}, std::uint32_t{17}, ~std::uint32_t{0}}) {
    const std::string_view subject = inbox.subject(number, place);
    EXPECT_EQ(inbox.number_of(subject), number) << subject;
  }
  EXPECT_EQ(inbox.subject(17, place), "_INBOX._000000000000000000000.17");
  for (const std::string_view other : {"", "_INBOX._000000000000000000000.", "_INBOX._000000000000000000000.x",
                                       "_INBOX._000000000000000000000.1.2", "_INBOX._000000000000000000000.-1",
                                       "_INBOX._000000000000000000000.4294967296", "_INBOX.0000000000000000000000.1"}) {
    EXPECT_EQ(inbox.number_of(other), std::nullopt) << other;
  }
}

TEST(NatsServerError, EachTextHasItsMeaning) {
  using Scope = ServerError::Scope;
  const auto publish = read_server_error("'Permissions Violation for Publish to \"a.b\"'");
  EXPECT_EQ(publish.scope, Scope::publish);
  EXPECT_EQ(publish.error.code(), Errc::not_permitted);
  EXPECT_EQ(publish.subject, "a.b");
  const auto subscription = read_server_error("'Permissions Violation for Subscription to \"a.>\" using queue \"q\"'");
  EXPECT_EQ(subscription.scope, Scope::subscription);
  EXPECT_EQ(subscription.subject, "a.>");
  EXPECT_EQ(subscription.group, "q");
  EXPECT_EQ(publish.group, "");
  EXPECT_EQ(read_server_error("'Authorization Violation'").scope, Scope::login);
  EXPECT_EQ(read_server_error("'Authorization Violation'").error.code(), Errc::handshake_refused);
  EXPECT_EQ(read_server_error("'User Authentication Expired'").scope, Scope::login);
  EXPECT_EQ(read_server_error("'Maximum Payload Violation'").error.code(), Errc::message_too_large);
  EXPECT_EQ(read_server_error("'maximum connections exceeded'").error.code(), Errc::resource_exhausted);
  EXPECT_EQ(read_server_error("'Slow Consumer'").scope, Scope::connection);
  EXPECT_EQ(read_server_error("'Stale Connection'").scope, Scope::connection);
  EXPECT_EQ(read_server_error("'Invalid Subject'").scope, Scope::call);
  EXPECT_EQ(read_server_error("'Something New'").error.code(), Errc::connection_closed);
  for (const std::string_view odd :
       {"", "'", "''", "'Permissions Violation for Publish to \"'", "Permissions Violation"}) {
    EXPECT_FALSE(read_server_error(odd).error == Errc::ok) << odd;
    EXPECT_EQ(read_server_error(odd).subject, "");
  }
}

// The server writes names with Go's %q.
TEST(NatsServerError, ANameWithQuotesOrOtherBytesIsTheOneThatWasSent) {
  const auto read = [](const std::string& name, const std::string& group) {
    return read_server_error("'Permissions Violation for Subscription to \"" + name + "\" using queue \"" + group +
                             "\"'");
  };
  EXPECT_EQ(read(R"(a.\"b\\c)", "q").subject, R"(a."b\c)");
  EXPECT_EQ(read(R"(a.\"b\\c)", R"(\"q\")").group, R"("q")");
  EXPECT_EQ(read(R"(\x7f\xff\u200b\U000e0001)", "q").subject, "\x7f\xff\xe2\x80\x8b\xf3\xa0\x80\x81");
  EXPECT_EQ(read("b\xc3\xa4r", "q").subject, "b\xc3\xa4r");
  for (const char* const odd : {R"(\x7)", R"(\u20)", R"(\q)", R"(\xzz)"}) {
    EXPECT_EQ(read(odd, "q").subject, "") << odd;
  }
}

}  // namespace
}  // namespace weft::nats
