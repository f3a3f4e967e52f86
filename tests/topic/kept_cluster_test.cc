// SPDX-License-Identifier: MIT
// Kept topics of a fleet on three servers of NATS, with three copies, when servers are lost.
#include <future>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/topic/nats_cluster.h"
#include "tests/topic/on_each_server.h"
#include "weft/sys/clock.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class KeptNatsCluster : public OnEachServer {
 protected:
  void SetUp() override {
    OnEachServer::SetUp();
    if (IsSkipped()) {
      return;
    }
    cluster_.emplace(program_);
  }
  [[nodiscard]] TopicsOptions options() const {
    TopicsOptions options;
    options.fleet = cluster_->urls();
    return options;
  }
  // Leaves stream_ empty if the servers do not hold it.
  void declare() {
    const auto declared = declare_in_cluster(options(), kDeclared);
    ASSERT_TRUE(declared) << declared.error().message();
    topics_ = *Topics::open(context_, options());
    auto stream = topics_->stream(kDeclared);
    ASSERT_TRUE(stream) << stream.error().message();
    stream_ = *std::move(stream);
  }

  const StreamOptions kDeclared{.name = "s", .topics = {"s.>"}, .survives = Survives::machine};

  std::optional<NatsCluster> cluster_;
  Context context_;
  std::optional<Topics> topics_;
  std::optional<Stream> stream_;
};
INSTANTIATE_TEST_SUITE_P(Servers, KeptNatsCluster, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(KeptNatsCluster, ThreeCopiesSurviveTheLossOfEachServerInTurn) {
  ASSERT_NO_FATAL_FAILURE(declare());
  EXPECT_EQ(stream_->survives(), Survives::machine);
  Reader reader = *stream_->read();
  constexpr int kCount = 3000;
  std::vector<PendingPublish> pending;
  for (int i = 0; i < kCount; ++i) {
    if (i % (kCount / 3) == kCount / 6) {
      cluster_->server(i / (kCount / 3)).restart();
    }
    auto sent = stream_->publish_later("s.a", std::to_string(i));
    ASSERT_TRUE(sent) << sent.error().message();
    pending.push_back(*std::move(sent));
    if (i % (kCount / 6) == 0) {
      const auto published = pending.back().wait();
      ASSERT_TRUE(published) << i << ": " << published.error().message();
    }
  }
  for (int i = 0; i < kCount; ++i) {
    const auto published = pending[static_cast<std::size_t>(i)].wait();
    ASSERT_TRUE(published) << i << ": " << published.error().message();
  }
  std::set<std::string> seen;
  while (seen.size() < kCount) {
    const auto message = reader.next_until(sys::now() + 60s);
    ASSERT_TRUE(message) << seen.size() << ": " << message.error().message();
    EXPECT_TRUE(seen.insert(std::string(message->text())).second) << "stored twice: " << message->text();
  }
}

// The servers choose the next leader of a consumer within 10 s, and until then none of them takes an acknowledgement.
TEST_P(KeptNatsCluster, AnAcknowledgementWaitsForTheNextLeaderOfTheConsumer) {
  ASSERT_NO_FATAL_FAILURE(declare());
  auto consumer = stream_->consumer("c", {.ack_wait = 120s});
  ASSERT_TRUE(consumer) << consumer.error().message();
  const auto published = stream_->publish("s.a", "x", {.deadline = sys::now() + 60s});
  ASSERT_TRUE(published) << published.error().message();
  auto delivery = consumer->next_until(sys::now() + 60s);
  ASSERT_TRUE(delivery) << delivery.error().message();
  int leader = -1;
  for (const Instant end = sys::now() + 60s; leader < 0 && sys::now() < end;) {
    leader = cluster_->leader_of("s", "c");
  }
  ASSERT_GE(leader, 0);
  cluster_->server(leader).kill();
  const auto done = delivery->ack_confirmed();
  EXPECT_TRUE(done || done.error() == Errc::outcome_unknown) << done.error().message();
  EXPECT_TRUE(stream_->publish("s.a", "y", {.deadline = sys::now() + 60s}));
  const auto next = consumer->next_until(sys::now() + 60s);
  ASSERT_TRUE(next) << next.error().message();
}

// Two of three new servers find too few peers for three copies. Those of 2.15.2 have no leader then.
class KeptNatsOldCluster : public KeptNatsCluster {};
INSTANTIATE_TEST_SUITE_P(Servers, KeptNatsOldCluster, testing::Values("nats"));
TEST_P(KeptNatsOldCluster, ADeclarationWaitsForTheServersOfItsCopies) {
  cluster_.emplace(program_, 2);
  const std::string not_yet = "no suitable peers";
  const std::string wanted = R"({"name":"asked","subjects":["asked"],"num_replicas":3,"storage":"file"})";
  std::string answer;
  for (const Instant end = sys::now() + 60s; answer.find(not_yet) == std::string::npos && sys::now() < end;) {
    answer = ask_server(cluster_->server(0), "$JS.API.STREAM.CREATE.asked", wanted);
  }
  EXPECT_NE(answer.find(not_yet), std::string::npos) << answer;
  Topics topics = *Topics::open(context_, options());
  auto declaring = std::async(std::launch::async, [&] { return topics.stream(kDeclared); });
  cluster_->start_next();
  const auto made = declaring.get();
  EXPECT_TRUE(made) << made.error().message();
}

}  // namespace
}  // namespace weft::topic
