// SPDX-License-Identifier: MIT
// Kept topics of a fleet on NATS while servers die, stand still, have no room or refuse a login, and while programs
// die. Each case counts; the cases of ManyKeptFaults run in the nightly effort. The table of docs/fleet.md has them.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/nats_authority.h"
#include "tests/topic/kept_load.h"
#include "tests/topic/nats_cluster.h"
#include "tests/topic/on_each_server.h"
#include "tests/topic/side.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using nats::test::NatsServer;

// The parameter: the age of the servers.
class KeptFaults : public OnEachServer {
 protected:
  void TearDown() override {
    server_.reset();
    if (!directory_.empty()) {
      std::filesystem::remove_all(directory_);
    }
  }
  void start_cluster() { cluster_.emplace(program_); }
  void start_server(const std::string& more = {}) {
    directory_ = *sys::make_private_directory();
    server_ = std::make_unique<NatsServer>("jetstream { store_dir: \"" + directory_ + "\" }\n" + more,
                                           std::vector<std::string>(), program_);
  }
  [[nodiscard]] TopicsOptions options() const {
    TopicsOptions options;
    options.fleet = cluster_ ? cluster_->urls() : server_->url();
    return options;
  }
  [[nodiscard]] int leader() const {
    int found = -1;
    for (const Instant end = sys::now() + 60s; found < 0 && sys::now() < end;) {
      found = cluster_->leader_of("jobs");
    }
    return found;
  }

  void kill_leaders(int messages, int kills, Duration each);
  void pause_leaders(int messages, int pauses);
  void stop_two_of_three(int messages, int times);
  void kill_publishers(int messages);
  void kill_consumers(int messages);
  void let_credentials_expire(int messages, int times, Duration away);

  std::string directory_;
  std::optional<NatsCluster> cluster_;
  std::unique_ptr<NatsServer> server_;
};
INSTANTIATE_TEST_SUITE_P(Servers, KeptFaults, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });
using ManyKeptFaults = KeptFaults;
INSTANTIATE_TEST_SUITE_P(Servers, ManyKeptFaults, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

// Some messages are under way when the leader dies, and all of them are acknowledged before it comes back.
void KeptFaults::kill_leaders(int messages, int kills, Duration each) {
  start_cluster();
  Load load(options(), Survives::machine, messages);
  const int part = messages / kills;
  for (int i = 0; i < kills; ++i) {
    load.release(i * part + part / 2, each / 2);
    ASSERT_TRUE(load.acknowledged(i * part + part / 4));
    const int lost = leader();
    ASSERT_GE(lost, 0);
    cluster_->server(lost).kill();
    load.release((i + 1) * part, each / 2);
    ASSERT_TRUE(load.acknowledged((i + 1) * part)) << "two servers go on";
    cluster_->server(lost).restart();
  }
  load.finish("the leader is killed");
}
TEST_P(KeptFaults, TheLeaderIsKilled) { kill_leaders(kMessages, 2, 0s); }
TEST_P(ManyKeptFaults, TheLeaderIsKilledEvery3Seconds) { kill_leaders(many_messages(), 10, 3s); }

void KeptFaults::pause_leaders(int messages, int pauses) {
  start_cluster();
  Load load(options(), Survives::machine, messages);
  const int part = messages / pauses;
  for (int i = 0; i < pauses; ++i) {
    load.release(i * part + part / 2);
    ASSERT_TRUE(load.acknowledged(i * part + part / 4));
    const int stands_still = leader();
    ASSERT_GE(stands_still, 0);
    cluster_->server(stands_still).pause();
    load.release((i + 1) * part);
    load.pass(sys::now() + 6s);
    cluster_->server(stands_still).resume();
    ASSERT_TRUE(load.acknowledged((i + 1) * part));
  }
  load.finish("the leader stands still for 6 s", Load::servers_of(GetParam()));
}
TEST_P(KeptFaults, TheLeaderStandsStillFor6Seconds) { pause_leaders(kMessages, 1); }
TEST_P(ManyKeptFaults, TheLeaderStandsStillFor6SecondsManyTimes) { pause_leaders(many_messages(), 5); }

void KeptFaults::stop_two_of_three(int messages, int times) {
  start_cluster();
  Load load(options(), Survives::machine, messages);
  const int part = messages / times;
  for (int i = 0; i < times; ++i) {
    load.release(i * part + part / 2);
    ASSERT_TRUE(load.acknowledged(i * part + part / 4));
    const int first = i % NatsCluster::kServers;
    const int second = (i + 1) % NatsCluster::kServers;
    cluster_->server(first).kill();
    cluster_->server(second).kill();
    load.release((i + 1) * part);
    load.pass(sys::now() + 4s);
    EXPECT_LT(load.acknowledged(), (i + 1) * part) << "one server of three acknowledges nothing";
    cluster_->server(first).restart();
    cluster_->server(second).restart();
    ASSERT_TRUE(load.acknowledged((i + 1) * part));
  }
  load.finish("two of three servers are away for 4 s", Load::servers_of(GetParam()));
}
TEST_P(KeptFaults, TwoOfThreeServersAreAway) { stop_two_of_three(kMessages, 1); }
TEST_P(ManyKeptFaults, TwoOfThreeServersAreAwayManyTimes) { stop_two_of_three(many_messages(), 5); }

// Each life publishes from the oldest message that was not acknowledged to the life before.
void KeptFaults::kill_publishers(int messages) {
  start_server();
  constexpr int kLives = 5;
  std::set<int> kept;
  int next = 0;
  for (int life = 0; life < kLives; ++life) {
    const int until = life + 1 < kLives ? messages * (life + 1) / kLives : messages;
    Side publisher({options().fleet, "publish", "p", std::to_string(next), std::to_string(messages)});
    for (std::string line = publisher.line(); line != "done"; line = publisher.line()) {
      ASSERT_TRUE(line.starts_with("kept p:")) << line;
      const int number = std::stoi(line.substr(7));
      kept.insert(number);
      next = number + 1;
      if (life + 1 < kLives && next >= until) {
        break;
      }
    }
    publisher.kill();
    publisher.wait();
  }
  ASSERT_EQ(kept.size(), static_cast<std::size_t>(messages));
  Context context;
  Topics topics = *Topics::open(context, options());
  Stream jobs = *topics.stream({.name = "jobs", .topics = {"jobs.>"}, .survives = Survives::process});
  Reader reader = *jobs.read();
  for (int i = 0; i < messages; ++i) {
    const auto message = reader.next_until(soon());
    ASSERT_TRUE(message) << i << ": " << message.error().message();
    ASSERT_EQ(message->text(), "p:" + std::to_string(i)) << "stored twice, or out of order";
  }
  EXPECT_EQ(jobs.info()->next, static_cast<std::uint64_t>(messages) + 1);
}
TEST_P(KeptFaults, ThePublisherIsKilled) { kill_publishers(kMessages); }
TEST_P(ManyKeptFaults, ThePublisherIsKilledWithManyMessages) { kill_publishers(many_messages()); }

// Each life takes a part. The last one gets all that the others left.
void KeptFaults::kill_consumers(int messages) {
  start_server();
  Side publisher({options().fleet, "publish", "p", "0", std::to_string(messages)});
  while (publisher.line() != "done") {
  }
  constexpr int kLives = 5;
  std::vector<std::uint8_t> got(static_cast<std::size_t>(messages));
  int different = 0;
  int again = 0;
  for (int life = 0; life < kLives; ++life) {
    const int until = life + 1 < kLives ? messages * (life + 1) / (kLives + 1) : messages;
    Side member({options().fleet, "consume"});
    ASSERT_EQ(member.line(), "consuming");
    const auto count = [&](const std::string& line) {
      const bool first = ++got[static_cast<std::size_t>(std::stoi(line.substr(6)))] == 1;
      different += first ? 1 : 0;
      again += first ? 0 : 1;
    };
    while (different < until) {
      const std::string line = member.line();
      ASSERT_TRUE(line.starts_with("got p:")) << line;
      count(line);
    }
    member.kill();
    for (std::string line = member.line(); !line.empty(); line = member.line()) {  // it was faster than this process
      count(line);
    }
    member.wait();
  }
  EXPECT_EQ(different, messages);
  EXPECT_LT(again, messages / 10) << "what was acknowledged does not come again";
  std::printf("[ INFO ] a consumer is killed: %d consumed, 0 lost, %d again\n", different, again);
}
TEST_P(KeptFaults, TheConsumerIsKilled) { kill_consumers(kMessages); }
TEST_P(ManyKeptFaults, TheConsumerIsKilledWithManyMessages) { kill_consumers(many_messages()); }

// The server ends the connections of a login that expires, and refuses the login until its file is renewed.
void KeptFaults::let_credentials_expire(int messages, int times, Duration away) {
  const std::array<std::uint8_t, nats::NKey::kSeedSize> zeros{};
  if (!nats::NKey::from_bytes(nats::KeyKind::user, zeros)) {
    GTEST_SKIP() << "this build has no libsodium";
  }
  const nats::test::Authority authority;
  start_server(authority.config());
  TopicsOptions with_login = options();
  with_login.security.credentials_file = server_->directory() + "/user.creds";
  authority.write_credentials(with_login.security.credentials_file, 3600);
  const int part = messages / (times + 1);
  Context context;
  Load load(with_login, Survives::process, messages);
  load.release(part);
  ASSERT_TRUE(load.acknowledged(part));
  for (int i = 1; i <= times; ++i) {
    authority.write_credentials(with_login.security.credentials_file, 3);
    server_->restart();  // each handle logs in with the login that is about to expire
    load.release(i * part + part / 2);
    Topics probe = *Topics::open(context, with_login);
    Error why;
    for (const Instant end = sys::now() + 60s; why != Errc::handshake_refused && sys::now() < end;) {
      const auto synced = probe.sync(sys::now() + 100ms);
      why = synced ? Error() : synced.error();
    }
    EXPECT_EQ(why, Errc::handshake_refused) << why.message();
    load.release((i + 1) * part);
    load.pass(deadline_after(sys::now(), away));
    EXPECT_LT(load.acknowledged(), (i + 1) * part);
    authority.write_credentials(with_login.security.credentials_file, 3600);
    ASSERT_TRUE(load.acknowledged((i + 1) * part));
  }
  load.finish("the credentials expire");
}
TEST_P(KeptFaults, TheCredentialsExpire) { let_credentials_expire(kMessages, 1, 0s); }
TEST_P(ManyKeptFaults, TheCredentialsAreExpiredForLongerThanARequest) {
  let_credentials_expire(many_messages(), 2, 40s);
}

// --- batches ---

// Servers since 2.12 take batches.
class BatchKeptFaults : public KeptFaults {};
INSTANTIATE_TEST_SUITE_P(Servers, BatchKeptFaults, testing::Values("nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(BatchKeptFaults, TheLeaderIsKilledInTheMiddleOfABatch) {
  start_cluster();
  const StreamOptions declared{.name = "jobs", .topics = {"jobs.>"}, .survives = Survives::machine};
  ASSERT_TRUE(declare_in_cluster(options(), declared));
  Context context;
  Topics topics = *Topics::open(context, options());
  Stream jobs = *topics.stream(declared);
  constexpr std::size_t kOfBatch = 50;
  constexpr int kKills = 3;
  std::atomic<int> begun{0};
  std::atomic<int> finished{0};
  std::atomic<int> acknowledged{0};
  std::atomic<bool> ended{false};
  std::vector<Error> outcomes;  // by the number of the batch
  std::thread publishing([&] {
    while (!ended) {
      const std::string body = std::to_string(outcomes.size()) + ":" + std::string(16U << 10U, '.');
      const std::vector<BatchMessage> batch(kOfBatch, {.topic = "jobs.a", .body = as_bytes(body)});
      ++begun;
      const auto published = jobs.publish_all(batch);
      outcomes.push_back(published ? Error() : published.error());
      acknowledged += published ? 1 : 0;
      ++finished;
      finished.notify_one();
    }
  });
  for (int i = 0; i <= kKills; ++i) {
    const int before = acknowledged;
    for (const Instant end = sys::now() + kLoadMost; acknowledged < before + 5 && sys::now() < end;) {
      finished.wait(finished);
    }
    EXPECT_GE(acknowledged, before + 5) << "after " << i << " kills";
    if (i < kKills) {
      const int lost = leader();
      EXPECT_GE(lost, 0);
      if (lost < 0) {
        break;
      }
      cluster_->server(lost).pause();
      while (begun == finished) {  // between two batches
        std::this_thread::yield();
      }
      cluster_->server(lost).kill();
      cluster_->server(lost).restart();
    }
  }
  ended = true;
  publishing.join();
  std::vector<std::size_t> stored(outcomes.size());
  const std::uint64_t end = jobs.info()->next;
  Reader reader = *jobs.read();
  std::size_t last = outcomes.size();
  for (std::uint64_t sequence = 1; sequence < end; ++sequence) {
    const auto message = reader.next_until(soon());
    ASSERT_TRUE(message) << message.error().message();
    const auto batch = static_cast<std::size_t>(std::stoi(std::string(message->text())));
    EXPECT_TRUE(batch == last || stored[batch] == 0) << "another batch stands between messages of " << batch;
    ++stored[batch];
    last = batch;
  }
  int unknown = 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Error& outcome = outcomes[i];
    const bool is_unknown = outcome == Errc::outcome_unknown;
    unknown += is_unknown ? 1 : 0;
    EXPECT_TRUE(stored[i] == kOfBatch || (stored[i] == 0 && outcome != Errc::ok)) << i << ": " << stored[i];
    EXPECT_TRUE(is_unknown || (stored[i] == 0) == (outcome != Errc::ok)) << i << ": " << outcome.message();
  }
  std::printf("[ INFO ] the leader is killed: %zu batches, %d acknowledged, %d unknown\n", outcomes.size(),
              acknowledged.load(), unknown);
}

// --- a full disk ---

// SmallDisk: a file system in memory, in a mount namespace of this process. A file takes most of its room.
class SmallDisk {
 public:
  SmallDisk() : directory_(*sys::make_private_directory()) { missing_ = mount(); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    (void)::umount2(directory_.c_str(), MNT_DETACH);
    std::filesystem::remove_all(directory_);
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] bool fill(std::size_t bytes) const {
    return std::ofstream(ballast()).write(std::string(bytes, 'x').data(), static_cast<std::streamsize>(bytes)).good();
  }
  void make_room() const { std::filesystem::remove(ballast()); }

 private:
  [[nodiscard]] std::string ballast() const { return directory_ + "/ballast"; }
  [[nodiscard]] std::string mount() const {
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(CLONE_NEWNS) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return "not here: no mount namespace";
      }
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
      std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", directory_.c_str(), "tmpfs", 0, "size=96m") != 0) {
      return "not here: no file system of its own";
    }
    return {};
  }

  const std::string directory_;
  std::string missing_;
};

class KeptDisk : public KeptFaults {
 protected:
  void SetUp() override {
    KeptFaults::SetUp();
    if (IsSkipped()) {
      return;
    }
    disk_.emplace();
    if (!disk_->missing().empty()) {
      GTEST_SKIP() << disk_->missing();
    }
  }
  std::optional<SmallDisk> disk_;
};
INSTANTIATE_TEST_SUITE_P(Servers, KeptDisk, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(KeptDisk, TheDiskIsFullAndHasRoomAgain) {
  ASSERT_TRUE(disk_->fill(84U << 20U));
  const std::string store = disk_->directory() + "/store";
  server_ = std::make_unique<NatsServer>("jetstream { store_dir: \"" + store + "\", max_file_store: 1T }\n",
                                         std::vector<std::string>(), program_);
  Context context;
  Topics topics = *Topics::open(context, options());
  Stream other = *topics.stream({.name = "other", .topics = {"other.>"}, .survives = Survives::process});
  Load load(options(), Survives::process, kMessages, 1000);
  load.release(kMessages);
  int before = -1;
  for (const Instant end = sys::now() + 60s; sys::now() < end && before != load.acknowledged();) {
    before = load.acknowledged();
    load.pass(sys::now() + 3s);
  }
  EXPECT_LT(load.acknowledged(), kMessages) << "20 MB have no room";
  const auto refused = other.publish("other.a", std::string(512U << 10U, 'x'), {.deadline = sys::now() + 5s});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error() == Errc::resource_exhausted || refused.error() == Errc::outcome_unknown)
      << refused.error().message();
  disk_->make_room();
  server_->restart();
  load.finish("the disk is full");
}

}  // namespace
}  // namespace weft::topic
