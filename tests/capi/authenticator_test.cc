// SPDX-License-Identifier: MIT
// Handshakes that wait for the authenticator: their cost, and which answer belongs to which question.
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/capi/plain_peer.h"

namespace weft::capi {
namespace {

using Parts = std::vector<std::string>;

std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// An authenticator and a server that checks names and passwords. The name that a client shows marks its question.
class Authenticator : public CapiTest {
 protected:
  Authenticator() : handler_(open_handler()), server_(std::make_unique<Watched>(context_, ZMQ_PULL)) {
    server_->set(ZMQ_PLAIN_SERVER, 1);
    port_ = server_->bind();
  }
  ~Authenticator() override {
    server_.reset();
    zmq_close(handler_);
  }

  void* open_handler() {
    void* const handler = zmq_socket(context_, ZMQ_ROUTER);
    EXPECT_EQ(zmq_setsockopt(handler, ZMQ_RCVTIMEO, &kLong, sizeof kLong), 0);
    EXPECT_EQ(zmq_bind(handler, "inproc://zeromq.zap.01"), 0);
    return handler;
  }
  [[nodiscard]] std::unique_ptr<Plain> client(const std::string& name) const {
    auto plain = std::make_unique<Plain>();
    EXPECT_EQ(plain->connect(port_), 0);
    plain->send(greeting("PLAIN") + command("HELLO", static_cast<char>(name.size()) + name + "\1x"));
    return plain;
  }
  // The peer, the delimiter, the version, the request id, the domain, the address, the identity, the mechanism, the
  // name, the password.
  [[nodiscard]] static Parts question(void* handler) {
    Parts parts;
    int more = 1;
    for (std::size_t size = sizeof more; more != 0;) {
      char part[256];
      const int length = zmq_recv(handler, part, sizeof part, 0);
      if (length < 0) {
        ADD_FAILURE() << "no question";
        break;
      }
      parts.emplace_back(part, static_cast<std::size_t>(length));
      EXPECT_EQ(zmq_getsockopt(handler, ZMQ_RCVMORE, &more, &size), 0);
    }
    parts.resize(10);
    return parts;
  }
  static void send(void* handler, const Parts& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ASSERT_GE(zmq_send(handler, parts[i].data(), parts[i].size(), i + 1 < parts.size() ? ZMQ_SNDMORE : 0), 0);
    }
  }
  static void answer(void* handler, const Parts& question, const std::string& status) {
    send(handler, {question[0], "", "1.0", question[3], status, "why", question[8], ""});
  }
  void expect_accepted() const { server_->expect(ZMQ_EVENT_ACCEPTED); }

  void* handler_;
  std::unique_ptr<Watched> server_;
  int port_ = 0;
};

TEST_F(Authenticator, AWaitingHandshakeHoldsOneDescriptor) {
  constexpr int kClients = 50;
  const std::ptrdiff_t before = descriptors();
  std::vector<std::unique_ptr<Plain>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(client("c"));
  }
  for (int i = 0; i < kClients; ++i) {
    (void)question(handler_);
  }
  EXPECT_LE(descriptors() - before, 2 * kClients + 10) << "the clients of this test have one each, too";
}

TEST_F(Authenticator, AnswersInAnyOrderReachTheirQuestions) {
  const auto a = client("a");
  const auto b = client("b");
  const auto c = client("c");
  Parts questions[3];
  for (int i = 0; i < 3; ++i) {
    const Parts asked = question(handler_);
    questions[asked[8] == "a" ? 0 : asked[8] == "b" ? 1 : 2] = asked;
  }
  answer(handler_, questions[2], "200");
  (void)c->receive_until(command("WELCOME"));
  answer(handler_, questions[1], "400");
  (void)b->receive_until("400");
  answer(handler_, questions[0], "200");
  (void)a->receive_until(command("WELCOME"));
}

TEST_F(Authenticator, ASecondAnswerIsDropped) {
  const auto a = client("a");
  const Parts first = question(handler_);
  const auto b = client("b");
  const Parts second = question(handler_);
  answer(handler_, first, "200");
  answer(handler_, first, "400");
  (void)a->receive_until(command("WELCOME"));
  answer(handler_, second, "200");
  (void)b->receive_until(command("WELCOME"));
}

TEST_F(Authenticator, AClientThatLeavesEndsItsHandshakeAndTheLateAnswerIsDropped) {
  auto gone = client("gone");
  const Parts late = question(handler_);
  const auto stays = client("stays");
  const Parts asked = question(handler_);
  gone.reset();
  expect_accepted();
  expect_accepted();
  server_->expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
  server_->expect(ZMQ_EVENT_DISCONNECTED);
  answer(handler_, late, "400");
  answer(handler_, asked, "200");
  (void)stays->receive_until(command("WELCOME"));
}

TEST_F(Authenticator, GarbageAdmitsNobodyAndTellsTheOldestQuestion) {
  const Parts garbage[] = {{"", "1.0", "no number", "200", "OK", "user", ""},
                           {"", "1.0", "99", "200", "OK", "user", ""},
                           {"garbage"},
                           {"", "", "", "", "", "", "", "", ""}};
  for (const Parts& reply : garbage) {
    const auto oldest = client("oldest");
    const Parts first = question(handler_);
    auto next = client("next");
    const Parts second = question(handler_);
    Parts sent = reply;
    sent.insert(sent.begin(), first[0]);
    send(handler_, sent);
    expect_accepted();
    expect_accepted();
    server_->expect(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
    server_->expect(ZMQ_EVENT_DISCONNECTED);
    answer(handler_, second, "200");
    (void)next->receive_until(command("WELCOME"));
    answer(handler_, first, "200");
    next.reset();
    server_->expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
    server_->expect(ZMQ_EVENT_DISCONNECTED);
  }
}

TEST_F(Authenticator, AnotherOneMayTakeOverWhileQuestionsWait) {
  const auto waits = client("waits");
  const Parts old = question(handler_);
  ASSERT_EQ(zmq_unbind(handler_, "inproc://zeromq.zap.01"), 0);
  void* const second = open_handler();
  const auto a = client("a");
  answer(second, question(second), "200");
  (void)a->receive_until(command("WELCOME"));
  answer(handler_, old, "200");
  (void)waits->receive_until(command("WELCOME"));
  ASSERT_EQ(zmq_close(second), 0);
  ASSERT_EQ(zmq_bind(handler_, "inproc://zeromq.zap.01"), 0);
  const auto b = client("b");
  answer(handler_, question(handler_), "200");
  (void)b->receive_until(command("WELCOME"));
}

// The authenticator receives nothing. Each client that leaves has left its question in the queue.
TEST_F(Authenticator, TheQuestionsThatNobodyReceivedAreBounded) {
  constexpr int kQuestionsMax = 1024;
  const auto stays = client("stays");  // so that all questions go one way
  expect_accepted();
  for (int i = 1; i < kQuestionsMax; ++i) {
    {
      const auto goes = client("goes");
      (void)goes->receive_until("PLAIN");  // a server that cannot write its greeting asks nothing
    }
    expect_accepted();
    server_->expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
    server_->expect(ZMQ_EVENT_DISCONNECTED);
  }
  const auto refused = client("refused");
  expect_accepted();
  server_->expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, ENOMEM);
  server_->expect(ZMQ_EVENT_DISCONNECTED);
  for (int i = 0; i < kQuestionsMax; ++i) {
    const Parts asked = question(handler_);
    ASSERT_NE(asked[8], "refused");
    answer(handler_, asked, "200");
  }
  (void)stays->receive_until(command("WELCOME"));
  const auto later = client("later");
  answer(handler_, question(handler_), "200");
  (void)later->receive_until(command("WELCOME"));
}

}  // namespace
}  // namespace weft::capi
