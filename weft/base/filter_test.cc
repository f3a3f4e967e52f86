// SPDX-License-Identifier: MIT
#include "weft/base/filter.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weft/base/test_filters.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

Filter parse(std::string_view text) { return *Filter::parse(text); }
Filter exact(std::string_view text) { return *Filter::exact(text); }
Filter prefix(std::string_view text) { return *Filter::prefix(text); }
Filter glob(std::string_view text) { return *Filter::glob(text); }

// Every text over `alphabet` of at most `size_max` bytes.
std::vector<std::string> all_texts(std::string_view alphabet, std::size_t size_max) {
  std::vector<std::string> texts{""};
  for (std::size_t begin = 0, size = 1; size <= size_max; ++size) {
    const std::size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char c : alphabet) {
        texts.push_back(texts[begin] + c);
      }
    }
  }
  return texts;
}

TEST(Topic, TheNamesOfADesignAreTopics) {
  for (const char* name :
       {"a", "px.AAPL", "player:1", "orders.eu.17", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p", "*", "a.>b"}) {
    EXPECT_TRUE(check_topic(name)) << name;
  }
  EXPECT_TRUE(check_topic(std::string(255, 'a')));
  EXPECT_TRUE(check_topic("\xff\x80"));
}

TEST(Topic, ANameOutsideTheRuleIsRefusedWithTheRule) {
  EXPECT_EQ(check_topic("").error(), Errc::invalid_argument);
  EXPECT_EQ(check_topic(std::string(256, 'a')).error(), Errc::message_too_large);
  for (const char* name : {".", "a.", ".a", "a..b", "a b", "a\tb", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q"}) {
    EXPECT_EQ(check_topic(name).error(), Errc::invalid_argument) << name;
  }
  EXPECT_EQ(check_topic({"a\0b", 3}).error(), Errc::invalid_argument);
  EXPECT_STREQ(check_topic("a..b").error().text(), "a topic has an empty token");
}

TEST(Filter, ParseTellsExactFromTokens) {
  EXPECT_EQ(parse("px.AAPL").kind(), FilterKind::exact);
  EXPECT_EQ(parse("px.*").kind(), FilterKind::tokens);
  EXPECT_EQ(parse(">").kind(), FilterKind::tokens);
  EXPECT_EQ(parse("*.*.*.*.>").kind(), FilterKind::tokens);
}

TEST(Filter, ParseRefusesWhatItWouldMisread) {
  for (const char* text : {"", "a..*", "a.>.b", ">.a", "news*", "a.b*", "a.>b", "*.*.*.*.*", "a b"}) {
    EXPECT_EQ(Filter::parse(text).error(), Errc::invalid_argument) << text;
  }
  EXPECT_EQ(Filter::parse(std::string(256, 'a')).error(), Errc::message_too_large);
  EXPECT_STREQ(Filter::parse("news*").error().text(),
               "a * or > of a filter is not a token of its own: a glob may have it");
}

TEST(Filter, AnExactTopicIsExact) {
  EXPECT_TRUE(exact("player:1").matches("player:1"));
  EXPECT_FALSE(exact("player:1").matches("player:10"));
  EXPECT_FALSE(exact("player:1").matches("player:"));
  EXPECT_TRUE(exact("a.*").matches("a.*"));
  EXPECT_FALSE(exact("a.*").matches("a.b"));
  EXPECT_TRUE(exact("").matches(""));
}

TEST(Filter, AStarIsOneTokenAndTheRestIsAtLeastOne) {
  EXPECT_TRUE(parse("px.*").matches("px.AAPL"));
  EXPECT_FALSE(parse("px.*").matches("px"));
  EXPECT_FALSE(parse("px.*").matches("px."));
  EXPECT_FALSE(parse("px.*").matches("px.a.b"));
  EXPECT_TRUE(parse("a.*.b").matches("a.x.b"));
  EXPECT_FALSE(parse("a.*.b").matches("a.x.c"));
  EXPECT_TRUE(parse("px.>").matches("px.a.b"));
  EXPECT_FALSE(parse("px.>").matches("px"));
  EXPECT_FALSE(parse("px.>").matches("px."));
  EXPECT_TRUE(parse(">").matches("a"));
  EXPECT_FALSE(parse(">").matches(""));
}

TEST(Filter, AGlobFollowsRedis) {
  EXPECT_TRUE(glob("h?llo").matches("hello"));
  EXPECT_FALSE(glob("h?llo").matches("hllo"));
  EXPECT_TRUE(glob("h*llo").matches("heeello"));
  EXPECT_TRUE(glob("h[ae]llo").matches("hallo"));
  EXPECT_FALSE(glob("h[ae]llo").matches("hillo"));
  EXPECT_TRUE(glob("h[^e]llo").matches("hallo"));
  EXPECT_FALSE(glob("h[^e]llo").matches("hello"));
  EXPECT_TRUE(glob("h[a-b]llo").matches("hbllo"));
  EXPECT_TRUE(glob("h[b-a]llo").matches("hallo"));  // a range may be turned around
  EXPECT_TRUE(glob("a\\*").matches("a*"));
  EXPECT_FALSE(glob("a\\*").matches("ab"));
  EXPECT_TRUE(glob("[\\]]").matches("]"));
  EXPECT_TRUE(glob("[!a]").matches("!"));  // only ^ inverts
  EXPECT_FALSE(glob("[]").matches("]"));
  EXPECT_TRUE(glob("[^]").matches("x"));
  EXPECT_FALSE(glob("[a-b]").matches("\xe1"));
  EXPECT_TRUE(glob("").matches(""));
  EXPECT_FALSE(glob("").matches("a"));
  EXPECT_TRUE(glob("*").matches(""));
}

TEST(Filter, AStarInTheMiddleOfAGlobIsNotTheEndOfIt) {
  EXPECT_TRUE(glob("a:*:b").matches("a:x:b"));
  EXPECT_FALSE(glob("a:*:b").matches("a:x:c"));
  EXPECT_TRUE(glob("a:*:b").matches("a::b"));
  EXPECT_FALSE(glob("a:*:b").matches("a:b"));
  EXPECT_TRUE(glob("a*b*c").matches("abbbc"));
  EXPECT_FALSE(glob("a*bc*bc").matches("abc"));
}

TEST(Filter, AGlobWithoutAnEndIsRefused) {
  for (const char* text : {"[", "a[", "[^", "[a-z", "[a-]", "[\\]", "a\\", "\\", "*[*"}) {
    EXPECT_EQ(Filter::glob(text).error(), Errc::invalid_argument) << text;
  }
  EXPECT_STREQ(Filter::glob("a\\").error().text(), "a glob ends with a backslash");
  EXPECT_STREQ(Filter::glob("[a").error().text(), "a glob has a [ without its ]");
  EXPECT_EQ(Filter::glob(std::string(256, '*')).error(), Errc::message_too_large);
}

TEST(Filter, MakeRefusesAKindThatDoesNotExist) {
  for (const int kind : {0, 5, 255}) {
    EXPECT_EQ(Filter::make(static_cast<FilterKind>(kind), "a").error(), Errc::invalid_argument);
  }
  EXPECT_EQ(Filter::make(FilterKind::tokens, "a.b").error(), Errc::invalid_argument);
  EXPECT_EQ(Filter::make(FilterKind::prefix, std::string(256, 'a')).error(), Errc::message_too_large);
}

TEST(Filter, ALongTopicMatchesOnlyWhereTheEndIsOpen) {
  const std::string text = "news." + std::string(1000, 'a');
  EXPECT_TRUE(glob("news.*").matches(text));
  EXPECT_TRUE(glob("*").matches(text));
  EXPECT_TRUE(glob("news\\\\*").matches("news\\" + text));
  EXPECT_FALSE(glob("news\\*").matches(text));
  EXPECT_FALSE(glob("*a").matches(text));
  EXPECT_TRUE(parse("news.>").matches(text));
  EXPECT_FALSE(parse("news.*").matches(text));
  EXPECT_TRUE(prefix("news.").matches(text));
}

TEST(Filter, HostileGlobsTakeBoundedSteps) {
  std::string stars;
  while (stars.size() + 2 <= kTopicBytesMax) {
    stars += "*a";
  }
  std::string ends = "*" + std::string(126, 'a') + "b*";
  std::string classes;
  while (classes.size() + 6 <= kTopicBytesMax) {
    classes += "*[a-z]";
  }
  for (const std::string& text : {stars + "b", ends, classes + "!", "*" + std::string(127, '?') + "b*"}) {
    const Filter filter = glob(text);
    std::size_t steps = SIZE_MAX;
    EXPECT_FALSE(filter.view().may_match(std::string(255, 'a'), steps)) << text;
    EXPECT_LT(SIZE_MAX - steps, kTopicBytesMax * kTopicBytesMax) << text;
  }
}

TEST(Filter, WithoutStepsAGlobMayMatch) {
  std::size_t steps = 3;
  const Filter filter = glob("a*b");
  EXPECT_FALSE(filter.view().may_match("ac", steps));
  EXPECT_EQ(steps, 0U);
  EXPECT_TRUE(filter.view().may_match("ac", steps));
}

TEST(Filter, MatchesWhatTheDefinitionMatches) {
  Random random(1);
  const std::vector<std::string> topics = all_texts("ab.", 5);
  for (int round = 0; round < 3000; ++round) {
    const Filter filter = naive::random_filter(random);
    for (const std::string& topic : topics) {
      ASSERT_EQ(filter.matches(topic), naive::matches(filter, topic))
          << filter.text() << " kind " << static_cast<int>(filter.kind()) << " topic " << topic;
    }
  }
}

TEST(Filter, TopicsBeginWithTheLiteralHead) {
  EXPECT_EQ(parse("a.b.*.c").literal_head(), "a.b.");
  EXPECT_EQ(parse(">").literal_head(), "");
  EXPECT_EQ(glob("news:?x").literal_head(), "news:");
  EXPECT_EQ(glob("a\\*b").literal_head(), "a");
  EXPECT_EQ(exact("a.b").literal_head(), "a.b");
  Random random(2);
  const std::vector<std::string> topics = all_texts("ab.", 4);
  for (int round = 0; round < 2000; ++round) {
    const Filter filter = naive::random_filter(random);
    for (const std::string& topic : topics) {
      ASSERT_TRUE(!filter.matches(topic) || topic.starts_with(filter.literal_head())) << filter.text();
    }
  }
}

// Topics of up to 6 bytes tell any two filters of at most 4 bytes apart.
TEST(Filter, CoversExactlyWhatItSays) {
  Random random(3);
  const std::vector<std::string> topics = all_texts("ab.", 6);
  int covered = 0;
  for (int round = 0; round < 6000; ++round) {
    const Filter a = naive::random_filter(random);
    const Filter b = naive::random_filter(random);
    if (a.text().size() > 4 || b.text().size() > 4) {
      continue;
    }
    const bool all = std::all_of(topics.begin(), topics.end(),
                                 [&](const std::string& topic) { return !b.matches(topic) || a.matches(topic); });
    const bool decidable = a.kind() != FilterKind::glob && b.kind() != FilterKind::glob;
    covered += a.covers(b) ? 1 : 0;
    ASSERT_TRUE(!a.covers(b) || all) << a.text() << " covers " << b.text();
    ASSERT_TRUE(!decidable || a.covers(b) == all)
        << a.text() << " " << b.text() << " kinds " << static_cast<int>(a.kind()) << static_cast<int>(b.kind());
  }
  EXPECT_GT(covered, 100);
}

TEST(Filter, CoversSimpleGlobs) {
  EXPECT_TRUE(glob("*").covers(parse("a.*")));
  EXPECT_TRUE(glob("news.*").covers(prefix("news.x")));
  EXPECT_FALSE(glob("news.*").covers(prefix("news")));
  EXPECT_TRUE(parse("news.>").covers(glob("news.a*")));
  EXPECT_TRUE(prefix("a:").covers(glob("a:*:b")));
  EXPECT_TRUE(glob("a*b").covers(exact("axb")));
}

TEST(Filter, WidensToTokens) {
  EXPECT_EQ(glob("news.*").widen_to_tokens(), parse("news.>"));
  EXPECT_EQ(glob("news.a?c.*").widen_to_tokens(), parse("news.>"));
  EXPECT_EQ(glob("news*").widen_to_tokens(), parse(">"));
  EXPECT_EQ(glob("news.today").widen_to_tokens(), parse("news.today"));
  EXPECT_EQ(prefix("a.b.c").widen_to_tokens(), parse("a.b.>"));
  EXPECT_EQ(prefix("a.*.c").widen_to_tokens(), parse("a.>"));
  EXPECT_EQ(prefix("").widen_to_tokens(), parse(">"));
  EXPECT_EQ(exact("a.b").widen_to_tokens(), parse("a.b"));
  EXPECT_EQ(exact("a..b").widen_to_tokens(), parse("a.>"));
  EXPECT_EQ(parse("a.*.b").widen_to_tokens(), parse("a.*.b"));
  EXPECT_EQ(prefix(std::string(254, 'a') + ".").widen_to_tokens(), parse(">"));
  EXPECT_EQ(prefix("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r").widen_to_tokens(), parse("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.>"));
}

TEST(Filter, TheWidenedFilterMatchesEachTopicName) {
  Random random(4);
  const std::vector<std::string> topics = all_texts("ab.", 6);
  for (int round = 0; round < 2000; ++round) {
    const Filter filter = naive::random_filter(random);
    const Filter wide = filter.widen_to_tokens();
    for (const std::string& topic : topics) {
      ASSERT_TRUE(!filter.matches(topic) || !check_topic(topic) || wide.matches(topic))
          << filter.text() << " -> " << wide.text() << " topic " << topic;
    }
  }
}

TEST(Filter, IsAValue) {
  std::vector<Filter> filters{parse("b.*"), glob("a*"), exact("b"), prefix("a")};
  std::sort(filters.begin(), filters.end());
  EXPECT_EQ(filters.front(), exact("b"));
  Filter copy = filters.front();
  copy = parse("x");
  EXPECT_NE(copy, filters.front());
  EXPECT_EQ(exact("x"), copy);
}

}  // namespace
}  // namespace weft
