// SPDX-License-Identifier: MIT
// kill -9 of the process that hosts the hub, with appends in flight.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

extern char** environ;

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

// A process that hosts, from its line "hosting" to kill().
class HubProcess {
 public:
  explicit HubProcess(const std::string& directory) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    EXPECT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::string program = WEFT_HUB_SIDE;
    std::string argument = directory;
    std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    std::array<char, 256> line{};
    const auto size = ::read(out[0], line.data(), line.size());
    said_.assign(line.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    ::close(out[0]);
  }
  ~HubProcess() { kill(); }
  HubProcess(const HubProcess&) = delete;
  HubProcess& operator=(const HubProcess&) = delete;

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      ::close(input_);
      pid_ = -1;
    }
  }
  void pause() {  // returns when the process has stopped
    ::kill(pid_, SIGSTOP);
    siginfo_t stopped;
    ::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED);
  }
  void resume() { ::kill(pid_, SIGCONT); }
  [[nodiscard]] const std::string& said() const { return said_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::string said_;
};

class HubKillTest : public testing::Test {
 protected:
  void SetUp() override { directory_ = *sys::make_private_directory(); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string directory_;
  Context context_;
};

TEST_F(HubKillTest, OfTwoProcessesOneHostsAndTheOtherOneHostsAfterItsDeath) {
  HubProcess first(directory_);
  EXPECT_EQ(first.said(), "hosting\n");
  HubProcess second(directory_);
  EXPECT_NE(second.said(), "hosting\n");
  first.kill();
  HubProcess third(directory_);
  EXPECT_EQ(third.said(), "hosting\n");
}

TEST_F(HubKillTest, APausedHubIsNotDoubledAndAnswersWhenItGoesOn) {
  HubProcess hub(directory_);
  ASSERT_EQ(hub.said(), "hosting\n");
  TestMember m(context_, Hub::endpoint(directory_));
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  hub.pause();
  const std::uint32_t id = m.send(TestMember::append_op("s", "a", "body"));
  HubOptions options;
  options.directory = directory_;
  options.store = directory_ + "/store.db";
  EXPECT_EQ(Hub::host(context_, options).error(), Errc::would_block);
  hub.resume();
  EXPECT_EQ(m.answer_to(id).op.number, 1U);
}

TEST_F(HubKillTest, AFileThatMayNotGrowRefusesAndLosesNothingAcknowledged) {
  ::setenv("WEFT_HUB_FILE_BYTES", "2000000", 1);
  auto hub = std::make_unique<HubProcess>(directory_);
  ::unsetenv("WEFT_HUB_FILE_BYTES");
  ASSERT_EQ(hub->said(), "hosting\n");
  TestMember m(context_, Hub::endpoint(directory_));
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  std::vector<std::string> acknowledged;
  Errc error = Errc::ok;
  for (int i = 0; i < 100 && error == Errc::ok; ++i) {
    const std::string body = std::to_string(i) + std::string(50'000, 'x');
    error = m.request(TestMember::append_op("s", "a", body, std::to_string(i))).op.error();
    if (error == Errc::ok) {
      acknowledged.push_back(body);
    }
  }
  EXPECT_EQ(error, Errc::resource_exhausted) << describe(error);
  EXPECT_GE(acknowledged.size(), 10U);
  hub = nullptr;
  hub = std::make_unique<HubProcess>(directory_);
  ASSERT_EQ(hub->said(), "hosting\n");
  Op read;
  read.kind = OpKind::read;
  read.name = "s";
  read.number = 1000;
  ASSERT_EQ(m.request(read).op.error(), Errc::ok);
  for (const std::string& body : acknowledged) {
    ASSERT_EQ(as_text(m.next().op.body), body);
  }
  EXPECT_EQ(m.request(TestMember::append_op("s", "a", "more")).op.error(), Errc::ok);
}

struct Outcome {
  std::uint64_t sent_again = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t inversions = 0;
  int kills = 0;
};

// Publishes `messages` with 500 in flight, kills the hub from time to time, and checks the messages that the last hub
// reads.
Outcome run(const std::string& directory, Context& context, Survives survives, std::uint64_t messages, int kills_max,
            Duration between) {
  Outcome outcome;
  auto hub = std::make_unique<HubProcess>(directory);
  EXPECT_EQ(hub->said(), "hosting\n");
  TestMember m(context, Hub::endpoint(directory));
  StreamSettings settings;
  settings.survives = survives;
  EXPECT_EQ(m.declare("s", settings), Errc::ok);

  std::map<std::uint64_t, std::uint32_t> open;          // message to the id of its request
  std::map<std::uint32_t, std::uint64_t> of_request;    // and back
  std::map<std::uint64_t, std::uint64_t> acknowledged;  // message to sequence
  const auto send = [&](std::uint64_t message) {
    const std::string body = "message " + std::to_string(message);
    const std::string id = "n-" + std::to_string(message);
    const std::uint32_t request = m.send(TestMember::append_op("s", "a.b", body, id));
    of_request[request] = message;
    open[message] = request;
  };
  std::uint64_t next = 1;
  Instant last_answer = sys::now();
  Instant next_kill = sys::now() + between;
  const Instant enough = sys::now() + 60s;  // of a machine that is busy with other work: fewer messages then
  const Instant end = sys::now() + 240s;
  std::uint64_t random = 88172645463325252U;
  while ((next <= messages || !open.empty()) && sys::now() < end) {
    if (sys::now() >= enough) {
      messages = std::min(messages, next - 1);
    }
    if (next <= messages && open.size() < 500) {
      send(next++);
      continue;
    }
    OwnedOp op;
    if (m.receive(op, sys::now() + 20ms)) {
      const auto found = of_request.find(op.op.id);
      if (op.op.kind != OpKind::answer || found == of_request.end()) {
        continue;
      }
      EXPECT_EQ(op.op.error(), Errc::ok) << as_text(op.op.body);
      outcome.duplicates += op.op.has(OpFlags::duplicate) ? 1 : 0;
      const auto [at, added] = acknowledged.try_emplace(found->second, op.op.number);
      EXPECT_TRUE(added || at->second == op.op.number) << "one message, two sequences";
      open.erase(found->second);
      of_request.erase(found);
      last_answer = sys::now();
    } else if (sys::now() - last_answer > 300ms) {
      // No answer: the open ones are sent again, with their ids.
      const auto again = open;
      for (const auto& [message, request] : again) {
        of_request.erase(request);
        send(message);
        ++outcome.sent_again;
      }
      last_answer = sys::now();
    }
    const bool is_due =
        sys::now() >= next_kill || (outcome.kills == 0 && next > messages / 4);  // a fast disk is soon done
    if (next <= messages && outcome.kills < kills_max && is_due) {
      hub->kill();
      ++outcome.kills;
      hub = std::make_unique<HubProcess>(directory);
      EXPECT_EQ(hub->said(), "hosting\n");
      random ^= random << 13U;
      random ^= random >> 7U;
      random ^= random << 17U;
      next_kill = sys::now() + between / 2 +
                  Duration(static_cast<Duration::rep>(random % static_cast<std::uint64_t>(between.count())));
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(acknowledged.size(), messages);

  // The last death, with nothing in flight; then everything is read.
  hub->kill();
  hub = std::make_unique<HubProcess>(directory);
  Op read;
  read.kind = OpKind::read;
  read.name = "s";
  read.number = 1'000'000;
  EXPECT_EQ(m.request(read).op.error(), Errc::ok);
  std::map<std::string, std::uint64_t> stored;
  std::uint64_t sequence = 0;
  std::uint64_t before = 0;
  for (OwnedOp op = m.next(); op.op.kind == OpKind::delivery; op = m.next()) {
    EXPECT_EQ(op.op.number, ++sequence);
    const std::string body(as_text(op.op.body));
    EXPECT_TRUE(stored.emplace(body, op.op.number).second) << body << " is stored twice";
    const std::uint64_t message = std::strtoull(body.c_str() + 8, nullptr, 10);
    outcome.inversions += message < before ? 1 : 0;
    before = message;
  }
  EXPECT_EQ(stored.size(), messages);
  for (const auto& [message, at] : acknowledged) {
    const auto found = stored.find("message " + std::to_string(message));
    if (found == stored.end()) {
      ADD_FAILURE() << "message " << message << " was acknowledged and is lost";
    } else {
      EXPECT_EQ(found->second, at);
    }
  }
  return outcome;
}

void print(const Outcome& outcome) {
  std::printf("%d kills, %llu sent again, %llu answered as duplicates, %llu inversions\n", outcome.kills,
              static_cast<unsigned long long>(outcome.sent_again), static_cast<unsigned long long>(outcome.duplicates),
              static_cast<unsigned long long>(outcome.inversions));
}

constexpr std::uint64_t kMessages = kSanitized ? 5'000 : 20'000;

TEST_F(HubKillTest, NothingAcknowledgedIsLostWhenTheHubIsKilledAtRandomInstants) {
  const Outcome outcome = run(directory_, context_, Survives::power, kMessages, 40, 100ms);
  print(outcome);
  EXPECT_GE(outcome.kills, 1);
}

TEST_F(HubKillTest, ALogThatSurvivesProcessesLosesNothingEither) {
  const Outcome outcome = run(directory_, context_, Survives::process, kMessages, 40, 60ms);
  print(outcome);
  EXPECT_GE(outcome.kills, 1);
}

// The hub dies while some messages wait, others enter the stream, and others are on their way to it.
TEST_F(HubKillTest, MessagesWithADelayAreThereOnceAfterKillsAtRandomInstants) {
  constexpr std::uint64_t kCount = kSanitized ? 500 : 4000;
  constexpr std::uint64_t kKills = 12;
  auto hub = std::make_unique<HubProcess>(directory_);
  ASSERT_EQ(hub->said(), "hosting\n");
  TestMember m(context_, Hub::endpoint(directory_));
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  std::map<std::uint32_t, std::uint64_t> open;  // the id of a request to its message
  const auto send = [&](std::uint64_t message) {
    const std::string body = std::to_string(message);
    Op op = TestMember::append_op("s", "a", body, body);
    op.flags |= OpFlags::delayed;
    op.delay_ns = 1'000'000 * (1 + message * 7919 % 100);  // 1 to 100 ms
    open[m.send(op)] = message;
  };
  std::uint64_t next = 1;
  std::uint64_t answered = 0;
  std::uint64_t kills = 0;
  Instant last_answer = sys::now();
  const Instant end = sys::now() + 120s;
  while ((next <= kCount || !open.empty()) && sys::now() < end) {
    if (next <= kCount && open.size() < 100) {
      send(next++);
      continue;
    }
    OwnedOp op;
    if (m.receive(op, sys::now() + 20ms)) {
      if (open.erase(op.op.id) != 0) {
        ASSERT_EQ(op.op.error(), Errc::ok) << as_text(op.op.body);
        ASSERT_EQ(op.op.number, 0U);
        ++answered;
        last_answer = sys::now();
      }
    } else if (sys::now() - last_answer > 300ms) {
      for (const auto& [request, message] : std::exchange(open, {})) {
        send(message);
      }
      last_answer = sys::now();
    }
    if (answered >= (kills + 1) * kCount / (kKills + 1) && kills < kKills) {
      ++kills;
      hub->kill();
      hub = std::make_unique<HubProcess>(directory_);
      ASSERT_EQ(hub->said(), "hosting\n");
    }
  }
  ASSERT_TRUE(open.empty());
  EXPECT_EQ(kills, kKills);
  Op read;
  read.kind = OpKind::read;
  read.name = "s";
  read.number = 1'000'000;
  ASSERT_EQ(m.request(read).op.error(), Errc::ok);
  std::set<std::string> there;
  while (there.size() < kCount) {
    const OwnedOp op = m.next();
    if (op.op.kind == OpKind::delivery) {
      ASSERT_TRUE(there.emplace(as_text(op.op.body)).second) << as_text(op.op.body) << " is stored twice";
    } else {
      ASSERT_TRUE(op.op.kind == OpKind::caught_up || op.op.kind == OpKind::answer) << there.size() << " messages";
    }
  }
  const OwnedOp last = m.request(TestMember::append_op("s", "a", "last"));
  EXPECT_EQ(last.op.number, kCount + 1) << "more messages than were published";
}

// WEFT_KILL_MESSAGES of them.
TEST_F(HubKillTest, ManyMessages) {
  std::uint64_t messages = kSanitized ? 20'000 : 200'000;
  if (const char* configured = std::getenv("WEFT_KILL_MESSAGES"); configured != nullptr) {
    messages = std::strtoull(configured, nullptr, 10);
  }
  const int kills = static_cast<int>(messages / 10'000);
  const Outcome outcome = run(directory_, context_, Survives::power, messages, kills, 200ms);
  print(outcome);
  EXPECT_GE(outcome.kills, 1);
}

}  // namespace
}  // namespace weft::topic
