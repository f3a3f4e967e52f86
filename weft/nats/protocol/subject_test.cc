// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/subject.h"

#include <string>
#include <utility>

#include "weft/nats/protocol/limits.h"
#include <gtest/gtest.h>

namespace weft::nats {
namespace {

Result<std::string> subject_of(const SubjectNames& names, std::string_view topic) {
  std::string subject;
  WEFT_TRY(names.append_subject(topic, subject));
  return subject;
}
Result<std::string> topic_of(const SubjectNames& names, std::string_view subject) {
  std::string topic;
  WEFT_TRY(names.append_topic(subject, topic));
  return topic;
}

TEST(NatsSubject, ASubjectHasNoWildcardAndNoEmptyToken) {
  EXPECT_TRUE(is_subject("a"));
  EXPECT_TRUE(is_subject("a.b*.c>d.$x"));
  for (const std::string_view wrong : {"", ".", "a.", ".a", "a..b", "a.*", "*", ">", "a.>", "a b", "a\t", "a\r\n"}) {
    EXPECT_FALSE(is_subject(wrong)) << wrong;
  }
  EXPECT_TRUE(is_subject(std::string(kSubjectMax, 'a')));
  EXPECT_FALSE(is_subject(std::string(kSubjectMax + 1, 'a')));
}

TEST(NatsSubject, AFilterHasItsWildcardsAsWholeTokens) {
  for (const std::string_view right : {"a", "*", ">", "a.*.b", "*.>", "a.>", "a.b*"}) {
    EXPECT_TRUE(is_subject_filter(right)) << right;
  }
  for (const std::string_view wrong : {"", ">.a", "a.>.b", "a..*", "a. "}) {
    EXPECT_FALSE(is_subject_filter(wrong)) << wrong;
  }
  EXPECT_TRUE(is_group("workers"));
  EXPECT_FALSE(is_group(""));
  EXPECT_FALSE(is_group("a b"));
}

TEST(NatsSubject, TopicsAreEscapedAndReadBack) {
  const auto names = SubjectNames::make();
  ASSERT_TRUE(names);
  const std::pair<std::string_view, std::string_view> pairs[] = {
      {"px.AAPL", "px.AAPL"},       {"a=b", "a=3Db"},           {"a.*.b", "a.=2A.b"},   {"x>", "x=3E"},
      {"$SYS.a", "=24SYS.a"},       {"_INBOX.a", "=5FINBOX.a"}, {"a.$b._c", "a.$b._c"}, {"a\x7F", "a=7F"},
      {"\xC3\xA4.b", "\xC3\xA4.b"}, {"=24", "=3D24"},
  };
  for (const auto& [topic, subject] : pairs) {
    EXPECT_EQ(subject_of(*names, topic).value(), subject);
    EXPECT_TRUE(is_subject(subject));
    EXPECT_EQ(topic_of(*names, subject).value(), topic);
  }
}

TEST(NatsSubject, EachTopicOfAllBytesIsReadBack) {
  const auto names = SubjectNames::make();
  const auto spaced = SubjectNames::make("prod");
  for (int first = 0x21; first < 0x100; ++first) {
    for (const std::string& topic :
         {std::string(1, static_cast<char>(first)), "a" + std::string(1, static_cast<char>(first)),
          std::string(1, static_cast<char>(first)) + ".b"}) {
      const auto subject = subject_of(*names, topic);
      if (!subject) {
        EXPECT_EQ(first, '.');
        continue;
      }
      EXPECT_TRUE(is_subject(*subject)) << *subject;
      EXPECT_EQ(topic_of(*names, *subject).value(), topic);
      EXPECT_EQ(topic_of(*spaced, *subject_of(*spaced, topic)).value(), topic);
    }
  }
}

TEST(NatsSubject, OneTopicHasOneSubject) {
  const auto names = SubjectNames::make();
  for (const std::string_view subject :
       {"=61", "=3d", "=2", "=", "a=", "=ZZ", "=2E", "$SYS", "_x", "a..b", "a.*", "", "a =20", "=20"}) {
    EXPECT_EQ(topic_of(*names, subject).error().code(), Errc::invalid_argument) << subject;
  }
}

TEST(NatsSubject, ASpaceIsTheFirstToken) {
  const auto names = SubjectNames::make("prod");
  ASSERT_TRUE(names);
  EXPECT_EQ(names->prefix(), "prod.");
  EXPECT_EQ(subject_of(*names, "$a.b").value(), "prod.$a.b");
  EXPECT_EQ(topic_of(*names, "prod.$a.b").value(), "$a.b");
  EXPECT_EQ(topic_of(*names, "test.a").error().code(), Errc::invalid_argument);
  EXPECT_EQ(topic_of(*names, "prod").error().code(), Errc::invalid_argument);
  EXPECT_EQ(SubjectNames::make("$JS")->prefix(), "=24JS.");
  EXPECT_EQ(SubjectNames::make("a.b").error().code(), Errc::invalid_argument);
  EXPECT_EQ(SubjectNames::make("a b").error().code(), Errc::invalid_argument);
}

TEST(NatsSubject, AnotherSeparatorMakesTheDotAnOrdinaryByte) {
  const auto names = SubjectNames::make("", ':');
  ASSERT_TRUE(names);
  EXPECT_EQ(subject_of(*names, "room:7:a.b").value(), "room.7.a=2Eb");
  EXPECT_EQ(topic_of(*names, "room.7.a=2Eb").value(), "room:7:a.b");
  EXPECT_EQ(subject_of(*names, "a::b").error().code(), Errc::invalid_argument);
  EXPECT_EQ(topic_of(*names, "a:b").error().code(), Errc::invalid_argument);
  for (const char wrong : {'a', 'Z', '5', '=', '*', '>', ' ', '\x7F', '\xC3'}) {
    EXPECT_EQ(SubjectNames::make("", wrong).error().code(), Errc::invalid_argument);
  }
}

TEST(NatsSubject, FiltersKeepTheirWildcards) {
  const auto names = SubjectNames::make("prod");
  const auto filter_of = [&names](const Filter& filter) {
    std::string subject;
    EXPECT_TRUE(names->append_filter(filter, subject));
    EXPECT_TRUE(is_subject_filter(subject)) << subject;
    return subject;
  };
  EXPECT_EQ(filter_of(*Filter::parse("px.AAPL")), "prod.px.AAPL");
  EXPECT_EQ(filter_of(*Filter::parse("px.*.a=b.>")), "prod.px.*.a=3Db.>");
  EXPECT_EQ(filter_of(*Filter::exact("a*b")), "prod.a=2Ab");
  EXPECT_EQ(filter_of(*Filter::exact("a.*")), "prod.a.=2A");
  EXPECT_EQ(filter_of(*Filter::prefix("news.")), "prod.news.>");
  EXPECT_EQ(filter_of(*Filter::glob("news.*")), "prod.news.>");
  EXPECT_EQ(filter_of(*Filter::prefix("")), "prod.>");
  std::string subject = "kept";
  EXPECT_EQ(names->append_filter(*Filter::exact("a..b"), subject).error().code(), Errc::invalid_argument);
  EXPECT_EQ(names->append_filter(*Filter::exact("a b"), subject).error().code(), Errc::invalid_argument);
  EXPECT_EQ(subject, "kept");
}

}  // namespace
}  // namespace weft::nats
