// SPDX-License-Identifier: MIT
// Peers that say everything at once, and leave before the authenticator of a NULL endpoint has answered.
#include <sys/socket.h>

#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"
#include "weft/msg/socket/context_core.h"
#include "weft/rt/loop/test_signal.h"

namespace weft::conformance {
namespace {

bool plain_socket(const Transport& row) { return without_websocket(row) && !row.tls; }

class EarlyEnd : public Conformance {
 protected:
  void SetUp() override {
    ASSERT_TRUE(authenticator_.bind("inproc://zeromq.zap.01"));
    ASSERT_TRUE(pull_.set(option::zap_domain, "home"));
    ASSERT_TRUE(pull_.watch_events());
    endpoint_ = bind(pull_);
  }
  [[nodiscard]] msg::IoService& io() { return context().core()->io(); }
  // Until the I/O thread has handled the events of all that happened before.
  void settle() {
    for (int turns = 0; turns < 2; ++turns) {
      io().run([] {});
    }
  }
  static void leave(BytePeer peer, bool by_reset) {
    if (by_reset) {
      const ::linger none{.l_onoff = 1, .l_linger = 0};
      ASSERT_EQ(::setsockopt(peer.stream().fd(), SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    }
  }
  [[nodiscard]] std::string take_question() {
    const Texts question = recv(authenticator_);
    return question.size() > 1 ? question[1] : std::string();
  }
  void answer(std::string_view question, std::string_view status) {
    send(authenticator_, {"1.0", question, status, "", "", ""});
  }

  const std::string message_ = wire_frame(0, "last words");
  Socket authenticator_ = make(SocketType::rep);
  Socket pull_ = make(SocketType::pull);
  std::string endpoint_;
};
WEFT_TRANSPORTS_WHERE(EarlyEnd, plain_socket);

TEST_P(EarlyEnd, WhileTheAuthenticatorIsAskedLosesNoMessage) {
  for (const bool by_reset : {false, true}) {
    BytePeer peer = BytePeer::dial(endpoint_);
    peer.write(first_words_of_push() + message_);
    const std::string question = take_question();
    leave(std::move(peer), by_reset);
    settle();
    answer(question, "200");
    EXPECT_EQ(recv_text(pull_), "last words");
  }
}

TEST_P(EarlyEnd, BeforeTheAuthenticatorIsAskedLosesNoMessage) {
  for (const bool by_reset : {false, true}) {
    rt::test::Signal left;
    io().loop().post([&] { EXPECT_TRUE(left.take()); });
    BytePeer peer = BytePeer::dial(endpoint_);
    peer.write(first_words_of_push() + message_);
    leave(std::move(peer), by_reset);
    left.give();
    answer(take_question(), "200");
    EXPECT_EQ(recv_text(pull_), "last words");
  }
}

TEST_P(EarlyEnd, OfAPeerThatIsRefusedBringsNothing) {
  BytePeer peer = BytePeer::dial(endpoint_);
  peer.write(first_words_of_push() + message_);
  const std::string question = take_question();
  leave(std::move(peer), false);
  settle();
  answer(question, "400");
  EXPECT_EQ(wait_for_event(pull_, EventKind::handshake_failed).reason, Errc::handshake_refused);
  EXPECT_EQ(pull_.try_recv().error(), Errc::would_block);
}

TEST_P(EarlyEnd, OfAPeerWithoutAMessageDoesNotWaitForTheAnswer) {
  BytePeer peer = BytePeer::dial(endpoint_);
  peer.write(first_words_of_push());
  const std::string question = take_question();
  leave(std::move(peer), false);
  const MonitorEvent event = wait_for_event(pull_, EventKind::handshake_failed);
  EXPECT_EQ(event.reason, Errc::connection_closed);
  EXPECT_NE(event.reason.message().find("the client left before the authenticator answered"), std::string::npos);
  answer(question, "200");
}

}  // namespace
}  // namespace weft::conformance
