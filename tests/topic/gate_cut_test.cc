// SPDX-License-Identifier: MIT
// A fleet on NATS over a network that carries packets in one direction only.
#include <cstdint>
#include <optional>
#include <string>

#include "tests/topic/two_networks.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

enum class Cut : std::uint8_t { to_server, from_server };

class CutNetwork : public testing::TestWithParam<Cut> {
 protected:
  void SetUp() override {
    if (std::string(WEFT_NATS_SERVER).empty()) {
      GTEST_SKIP() << "there is no nats-server";
    }
    networks_.emplace();
    if (!networks_->missing().empty()) {
      GTEST_SKIP() << networks_->missing();
    }
    networks_->in_far([&] {
      server_.emplace("", std::vector<std::string>{"-a", "0.0.0.0"});
      beside_.emplace(open(beside_context_, "127.0.0.1"));
    });
    behind_.emplace(open(behind_context_, TwoNetworks::kFar));
  }
  Topics open(Context& context, const std::string& host) const {
    TopicsOptions options;
    options.fleet = "nats://" + host + ":" + server_->port();
    options.ping_every = 2s;
    auto topics = Topics::open(context, options);
    EXPECT_TRUE(topics) << topics.error().message();
    return *std::move(topics);
  }
  [[nodiscard]] bool cut() const {
    return GetParam() == Cut::to_server ? networks_->cut_to_far() : networks_->cut_to_near();
  }
  [[nodiscard]] bool heal() const {
    return GetParam() == Cut::to_server ? networks_->heal_to_far() : networks_->heal_to_near();
  }
  static void expect_balance(const Topics& topics) {
    const TopicsStatistics all = topics.statistics();
    EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
    EXPECT_EQ(all.fleet_published, all.fleet_sent + all.fleet_queued + all.fleet_dropped_oldest +
                                       all.fleet_dropped_refused + all.fleet_dropped_closed + all.fleet_dropped_full);
  }

  std::optional<TwoNetworks> networks_;
  std::optional<nats::test::NatsServer> server_;
  Context beside_context_;
  Context behind_context_;
  std::optional<Topics> beside_;  // in the server's network
  std::optional<Topics> behind_;  // beyond the cut
};

// Numbers: publishes 0, 1, ..., and reads them at the other side.
class Numbers {
 public:
  Numbers(Topics& from, Topics& to, const std::string& topic)
      : publisher_(*from.publisher(topic)), subscription_(*to.subscribe(topic)) {}
  [[nodiscard]] Publisher& publisher() { return publisher_; }
  void publish(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(publisher_.publish(std::to_string(published_++)));
    }
  }
  [[nodiscard]] int published() const { return published_; }
  // Reads up to the last published one. Returns the number of messages that came; each is newer than the one before.
  int read_all(int expected_from) {
    int count = 0;
    for (auto m = subscription_.next_until(soon()); m; m = subscription_.next_until(soon())) {
      const int number = std::stoi(std::string(m->text()));
      EXPECT_GT(number, last_);
      if (number > expected_from) {
        EXPECT_EQ(number, last_ + 1);
      }
      last_ = number;
      ++count;
      if (number == published_ - 1) {
        return count;
      }
    }
    ADD_FAILURE() << "after " << last_ << " of " << published_ << " no message came";
    return count;
  }

 private:
  Publisher publisher_;
  Subscription subscription_;
  int published_ = 0;
  int last_ = -1;
};

TEST_P(CutNetwork, IsNoticedByPingsAndAllGoesOnAfterwards) {
  Numbers up(*behind_, *beside_, "up");
  Numbers down(*beside_, *behind_, "down");
  Service service =
      *beside_->serve("svc", {}, [](const TopicMessage& request) { return Message::copy_of(request.body()); });
  ASSERT_TRUE(beside_->sync(soon()));
  ASSERT_TRUE(up.publisher().wait_subscribers(1, soon()));
  ASSERT_TRUE(down.publisher().wait_subscribers(1, soon()));
  ASSERT_TRUE(behind_->request("svc", "x", soon()));
  up.publish(100);
  down.publish(100);
  EXPECT_EQ(up.read_all(0), 100);
  EXPECT_EQ(down.read_all(0), 100);

  ASSERT_TRUE(cut());
  up.publish(100);
  down.publish(100);
  const auto unanswered = behind_->request("svc", "x", sys::now() + 200ms);
  ASSERT_FALSE(unanswered);
  EXPECT_TRUE(unanswered.error() == Errc::timed_out || unanswered.error() == Errc::connection_closed ||
              unanswered.error() == Errc::unreachable)
      << unanswered.error().message();
  // TCP alone would take a quarter of an hour. The requests' connection is given up, then the messages' one is: from
  // then on they wait.
  Error why;
  for (const Instant end = soon(); why != Errc::unreachable && sys::now() < end;) {
    why = behind_->request("svc", "x", sys::now() + 100ms).error();
  }
  ASSERT_EQ(why, Errc::unreachable) << why.message();
  for (const Instant end = soon(); behind_->statistics().fleet_queued == 0 && sys::now() < end;) {
    up.publish(1);
    EXPECT_FALSE(behind_->sync(sys::now() + 100ms));  // the gate has taken the message when it returns
  }
  ASSERT_GT(behind_->statistics().fleet_queued, 0u);
  const int kept = up.published();
  up.publish(100);
  ASSERT_TRUE(beside_->request("svc", "x", soon()));  // the others go on

  ASSERT_TRUE(heal());
  const auto synced = behind_->sync(soon());
  ASSERT_TRUE(synced) << synced.error().message();
  EXPECT_GE(behind_->statistics().fleet_connected, 4u);  // two connections, twice
  ASSERT_TRUE(up.publisher().wait_subscribers(1, soon()));
  ASSERT_TRUE(down.publisher().wait_subscribers(1, soon()));
  ASSERT_TRUE(behind_->request("svc", "x", soon()));
  up.publish(100);
  down.publish(100);
  // The messages that the lost connection had taken are lost; those that waited come, and those that follow.
  EXPECT_GE(up.read_all(kept), 200);
  EXPECT_GE(down.read_all(down.published() - 100), 100);
  ASSERT_TRUE(behind_->sync(soon()));
  ASSERT_TRUE(beside_->sync(soon()));
  expect_balance(*behind_);
  expect_balance(*beside_);
}

INSTANTIATE_TEST_SUITE_P(Directions, CutNetwork, testing::Values(Cut::to_server, Cut::from_server),
                         [](const auto& info) { return info.param == Cut::to_server ? "ToServer" : "FromServer"; });

}  // namespace
}  // namespace weft::topic
