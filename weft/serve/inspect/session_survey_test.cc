// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/session_survey.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::kLong;

class SessionSurveyTest : public test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    survey_ = std::make_shared<SessionSurvey>(*runtime_);
  }
  std::vector<SessionSurvey::Answer> ask(SurveyOrder order, std::size_t most) {
    survey_->ask(sys::now(), server_->epoch(), order, most);
    wait();
    return survey_->take(sys::now());
  }
  void wait() {
    const Instant end = sys::now() + kLong;
    while (survey_->waits(sys::now(), kLong) && sys::now() < end) {
      std::this_thread::yield();
    }
  }

  std::shared_ptr<SessionSurvey> survey_;
};

TEST_F(SessionSurveyTest, ACoreWithMoreSessionsThanATurnLooksAtIsLookedAtWhole) {
  start_runtime(1);
  survey_ = std::make_shared<SessionSurvey>(*runtime_);
  ServerOptions options;
  options.sessions_max = 2000;
  make_server(options);
  ListenerOptions silent;
  silent.limits.handshake_timeout = kLong;
  const std::string endpoint = listen(silent, "ipc://*");
  std::vector<std::unique_ptr<Client>> clients;
  constexpr std::size_t kClients = SessionSurvey::kSlotsPerTurn + 100;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint));
  }
  until([](const CounterValues& counters) { return counters.opened == kClients; });
  clients.back()->write(test::frame_of(1, "x").substr(0, 4));
  until([](const CounterValues& counters) { return counters.bytes_in == 4; });
  const auto answers = ask(SurveyOrder::received, 2);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].answered);
  EXPECT_EQ(answers[0].looked, kClients);
  ASSERT_EQ(answers[0].sessions.size(), 2u);
  EXPECT_EQ(answers[0].sessions[0].glance.received, 4u);
  EXPECT_EQ(answers[0].sessions[1].glance.received, 0u);
  EXPECT_EQ(ask(SurveyOrder::age, 10'000)[0].sessions.size(), SessionSurvey::kMost);
  EXPECT_TRUE(ask(SurveyOrder::age, 0)[0].sessions.empty());
}

TEST_F(SessionSurveyTest, AnAnswerToAnEarlierQuestionIsNotTaken) {
  (void)listen();
  {
    const rt::test::Blocked blocked(*runtime_, 1);
    survey_->ask(sys::now(), server_->epoch(), SurveyOrder::age, 1);
    survey_->ask(sys::now(), server_->epoch(), SurveyOrder::age, 1);
    const auto answers = survey_->take(sys::now() + std::chrono::seconds(1));
    EXPECT_FALSE(answers[1].answered);
    EXPECT_GE(answers[1].silent, std::chrono::seconds(1));
  }
  wait();
  const auto late = survey_->take(sys::now());
  EXPECT_FALSE(late[1].answered);
  EXPECT_EQ(late[1].silent, Duration::zero());
  for (const auto& answer : ask(SurveyOrder::age, 1)) {
    EXPECT_TRUE(answer.answered);
  }
}

TEST_F(SessionSurveyTest, AStoppedServerHasNoSessionsAndAnEndedCoreStillAnswers) {
  Client client(listen());
  until([](const CounterValues& counters) { return counters.opened == 1; });
  const std::uint16_t epoch = server_->epoch();
  (void)stop_now();
  survey_->ask(sys::now(), epoch, SurveyOrder::age, 1);
  wait();
  for (const auto& answer : survey_->take(sys::now())) {
    EXPECT_TRUE(answer.answered);
    EXPECT_EQ(answer.looked, 0u);
  }
  server_.reset();
  (void)runtime_->stop(sys::now() + kLong);
  survey_->ask(sys::now(), epoch, SurveyOrder::age, 1);
  EXPECT_FALSE(survey_->waits(sys::now(), kLong));
  for (const auto& answer : survey_->take(sys::now())) {
    EXPECT_TRUE(answer.answered);
  }
}

}  // namespace
}  // namespace weft::serve
