// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/requests.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft::bridge {
namespace {

std::vector<Message> frames(const std::vector<std::string>& texts) {
  std::vector<Message> made;
  for (const std::string& each : texts) {
    made.emplace_back(each);
  }
  return made;
}
std::vector<std::string> texts(const std::vector<Message>& messages) {
  std::vector<std::string> made;
  for (const Message& each : messages) {
    made.emplace_back(each.text());
  }
  return made;
}
using Texts = std::vector<std::string>;

TEST(Requests, TheEnvelopeEndsWithTheFirstEmptyFrame) {
  const auto req = split_request(frames({"id", "", "body", "", "more"}));
  ASSERT_TRUE(req);
  EXPECT_EQ(texts(req->envelope), (Texts{"id", ""}));
  EXPECT_EQ(texts(req->body), (Texts{"body", "", "more"}));
  const auto through_proxies = split_request(frames({"id", "a", "b", "", "body"}));
  ASSERT_TRUE(through_proxies);
  EXPECT_EQ(texts(through_proxies->envelope), (Texts{"id", "a", "b", ""}));
}

TEST(Requests, WithoutAnEmptyFrameTheEnvelopeIsTheRoutingId) {
  const auto request = split_request(frames({"id", "a", "b"}));
  ASSERT_TRUE(request);
  EXPECT_EQ(texts(request->envelope), (Texts{"id"}));
  EXPECT_EQ(texts(request->body), (Texts{"a", "b"}));
  Texts deep(kEnvelopeMax, "x");
  deep.emplace_back("");
  EXPECT_EQ(split_request(frames(deep))->envelope.size(), 1U);
}

TEST(Requests, AnIdAloneIsNoRequest) {
  EXPECT_FALSE(split_request(frames({"id"})));
  EXPECT_TRUE(split_request(frames({"id", ""}))->body.empty());
}

TEST(Requests, AnErrorSurvivesItsFrames) {
  const auto back = read_error(error_frames(Error(Errc::timed_out, "late")));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, Errc::timed_out);
  constexpr ErrorDomain kGame("game");
  EXPECT_EQ(read_error(error_frames(Error(kGame, 7)))->domain(), kGame);
}

TEST(Requests, OnlyFramesOfAnErrorAreOne) {
  EXPECT_FALSE(read_error(frames({"Weft-Error"})));
  EXPECT_FALSE(read_error(frames({"weft-error", "2", "x"})));
  EXPECT_FALSE(read_error(frames({"Weft-Error", "2", "x", "y"})));
  for (const char* number : {"", "0", "-1", "2x", "99999999999"}) {
    EXPECT_EQ(*read_error(frames({"Weft-Error", number, "x"})), Errc::protocol_error) << number;
  }
}

TEST(Requests, FurtherFramesPassAsAHeader) {
  Headers headers;
  ASSERT_TRUE(add_parts(headers, frames({"body", "", "\r\n"})));
  const auto back = frames_of(Message(std::string_view("body")), headers.block());
  ASSERT_TRUE(back);
  EXPECT_EQ(texts(*back), (Texts{"body", "", "\r\n"}));
  EXPECT_EQ(texts(*frames_of(Message(std::string_view("body")), {})), (Texts{"body"}));
  Headers wrong;
  ASSERT_TRUE(wrong.add("Weft-Parts", "2;x"));
  EXPECT_FALSE(frames_of(Message(), wrong.block()));
  Headers full;
  EXPECT_EQ(add_parts(full, frames({"body", std::string(70'000, 'x')})).error(), Errc::message_too_large);
}

TEST(Room, BoundsRequestsAndBytesButNotOneAlone) {
  Room room(2, 100);
  EXPECT_TRUE(room.take(1000));
  EXPECT_FALSE(room.take(1));
  room.give_back(1000);
  EXPECT_TRUE(room.take(60));
  EXPECT_FALSE(room.take(41));
  EXPECT_TRUE(room.take(40));
  room.give_back(40);
  EXPECT_TRUE(room.take(0));
  EXPECT_FALSE(room.take(0)) << "the requests are as many as may be";
}

}  // namespace
}  // namespace weft::bridge
