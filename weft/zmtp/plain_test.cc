// SPDX-License-Identifier: MIT
#include "weft/zmtp/plain.h"

#include <array>
#include <memory>
#include <string_view>

#include "weft/zmtp/local_end.h"
#include "weft/zmtp/test_security.h"
#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

LocalEnd client(std::string name = "admin", std::string password = "secret") {
  return secured(WireType::dealer, std::make_unique<PlainClient>(std::move(name), std::move(password)));
}
LocalEnd server() { return secured(WireType::router, std::make_unique<PlainServer>()); }

Buffer hello(const Buffer& data) { return greeting_bytes(3, 1, "PLAIN") + command_frame(wire("05 'HELLO'") + data); }

TEST(Plain, TheServerAsksAboutNameAndPasswordAndBothAreReady) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
    LocalEnd ours = client();
    LocalEnd theirs = server();
    std::vector<std::string> asked;
    shake(ours, theirs, piece, kAdmitted, &asked);
    EXPECT_TRUE(ours.ready());
    EXPECT_TRUE(theirs.ready());
    EXPECT_EQ(asked, (std::vector<std::string>{"admin", "secret"}));
    EXPECT_EQ(ours.cipher(), nullptr);
    EXPECT_EQ(theirs.peer_type(), WireType::dealer);
  }
}

TEST(Plain, TheClientSendsTheBytesOfTheRfc) {
  LocalEnd ours = client();
  ours.consume_output(ours.pending_output().size());
  EXPECT_EQ(ours.handle_input(greeting_bytes(3, 1, "PLAIN"), kStart), 64U);
  EXPECT_EQ(copy_of(ours.pending_output()), wire("04 13 05 'HELLO' 05 'admin' 06 'secret'"));
  ours.consume_output(ours.pending_output().size());
  const Buffer welcome = wire("04 08 07 'WELCOME'");
  EXPECT_EQ(ours.handle_input(welcome, kStart), welcome.size());
  EXPECT_EQ(copy_of(ours.pending_output().subspan(2, 9)), wire("08 'INITIATE'"));
}

TEST(Plain, ARefusalReachesTheClientWithItsStatus) {
  for (const int status : {kRefused, kCannotTell}) {
    LocalEnd ours = client();
    LocalEnd theirs = server();
    shake(ours, theirs, 64, status);
    ASSERT_TRUE(theirs.fault());
    EXPECT_EQ(theirs.fault()->code, Errc::handshake_refused);
    EXPECT_EQ(theirs.refusal_status(), status);
    ASSERT_TRUE(ours.fault());
    EXPECT_EQ(ours.fault()->code, Errc::handshake_refused);
    EXPECT_EQ(ours.refusal_status(), status);
  }
}

TEST(Plain, ARefusalForNowIsNotTold) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  shake(ours, theirs, 64, kRefusedForNow);
  EXPECT_TRUE(theirs.fault());
  EXPECT_EQ(theirs.refusal_status(), kRefusedForNow);
  EXPECT_FALSE(ours.fault());
  EXPECT_FALSE(ours.ready());
}

TEST(Plain, NothingMovesWhileTheQuestionIsOpen) {
  LocalEnd theirs = server();
  const Buffer input = hello(wire("01 'a' 01 'b'"));
  EXPECT_EQ(theirs.handle_input(input, kStart), input.size());
  ASSERT_NE(theirs.question(), nullptr);
  const Buffer next = command_frame(wire("08 'INITIATE'"));
  EXPECT_EQ(theirs.handle_input(next, kStart), 0U);
  theirs.answer(kAdmitted, kStart);
  EXPECT_EQ(theirs.question(), nullptr);
  EXPECT_EQ(theirs.handle_input(next, kStart), next.size());
  EXPECT_TRUE(theirs.fault()) << "there was no Socket-Type in it";
  theirs.answer(kAdmitted, kStart);  // a second answer is ignored
}

TEST(Plain, MalformedHellosAreFaults) {
  for (const Buffer& data : {wire(""), wire("05 'admi'"), wire("01 'a'"), wire("01 'a' 02 'b'"), wire("00 00 00")}) {
    LocalEnd theirs = server();
    (void)theirs.handle_input(hello(data), kStart);
    ASSERT_TRUE(theirs.fault());
    EXPECT_STREQ(theirs.fault()->text, "malformed HELLO command");
    EXPECT_EQ(theirs.question(), nullptr);
  }
}

TEST(Plain, CommandsOutOfTurnAreFaults) {
  LocalEnd theirs = server();
  (void)theirs.handle_input(greeting_bytes(3, 1, "PLAIN") + command_frame(wire("08 'INITIATE'")), kStart);
  EXPECT_TRUE(theirs.fault()) << "nobody gets in without a HELLO";
  LocalEnd ours = client();
  (void)ours.handle_input(greeting_bytes(3, 1, "PLAIN") + ready_frame("ROUTER"), kStart);
  EXPECT_TRUE(ours.fault()) << "a server must say WELCOME first";
  LocalEnd other = client();
  (void)other.handle_input(hello(wire("00 00")), kStart);
  EXPECT_TRUE(other.fault()) << "two clients have nothing to say to each other";
}

TEST(Plain, APeerServesOneConnectionAfterTheOther) {
  LocalEnd ours = client();
  LocalEnd theirs = server();
  for (int connection = 0; connection < 2; ++connection) {
    ours.start(kStart);
    theirs.start(kStart);
    shake(ours, theirs, 64, kAdmitted);
    EXPECT_TRUE(ours.ready());
    EXPECT_TRUE(theirs.ready());
  }
}

TEST(Null, MayAskBeforeItSaysAnything) {
  LocalEnd theirs = secured(WireType::router, std::make_unique<NullMechanism>(true));
  theirs.consume_output(theirs.pending_output().size());
  const Buffer input = greeting_bytes(3, 1) + ready_frame("DEALER");
  EXPECT_EQ(theirs.handle_input(input, kStart), 64U);
  EXPECT_TRUE(theirs.pending_output().empty());
  ASSERT_NE(theirs.question(), nullptr);
  EXPECT_TRUE(theirs.question()->credentials.empty());
  theirs.answer(kAdmitted, kStart);
  EXPECT_FALSE(theirs.pending_output().empty());
  EXPECT_EQ(theirs.handle_input(Bytes(input).subspan(64), kStart), input.size() - 64);
  EXPECT_TRUE(theirs.ready());
}

template <typename T>
std::string_view memory_of(const T& object) {
  return {reinterpret_cast<const char*>(&object), sizeof object};
}

TEST(Plain, ThePasswordLeavesTheMemoryOfTheClientWithIt) {
  alignas(PlainClient) std::array<unsigned char, sizeof(PlainClient)> memory{};
  auto* const client = std::construct_at(reinterpret_cast<PlainClient*>(memory.data()), "admin", "my secret");
  ASSERT_NE(memory_of(memory).find("my secret"), std::string_view::npos);
  std::destroy_at(client);
  EXPECT_EQ(memory_of(memory).find("secret"), std::string_view::npos);
}

TEST(Plain, ThePasswordLeavesTheOutputOnceItWasSent) {
  LocalEnd ours = client("admin", "my secret");
  ours.consume_output(ours.pending_output().size());
  (void)ours.handle_input(greeting_bytes(3, 1, "PLAIN"), kStart);
  const Bytes hello = ours.pending_output();
  ASSERT_NE(as_text(hello).find("my secret"), std::string_view::npos);
  ours.consume_output(hello.size());
  EXPECT_EQ(as_text(hello).find("secret"), std::string_view::npos);
}

}  // namespace
}  // namespace weft::zmtp::test
