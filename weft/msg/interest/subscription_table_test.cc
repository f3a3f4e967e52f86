// SPDX-License-Identifier: MIT
#include "weft/msg/interest/subscription_table.h"

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/msg/interest/test_memory.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

class SubscriptionTableTest : public testing::Test {
 protected:
  explicit SubscriptionTableTest(std::size_t walk_min = SubscriptionTable::kWalkMin) : table_(walk_min) {}

  [[nodiscard]] bool add(SubscriptionTable::Peer& peer, std::string_view topic) {
    peer.pipe = reinterpret_cast<Pipe*>(&peer);  // nothing reads it
    return table_.add(peer, SubscriptionTable::prefix(as_bytes(topic))).value();
  }
  // As often as it takes. Returns how often.
  std::size_t remove_all(SubscriptionTable::Peer& peer) {
    std::size_t steps = 1;
    while (!table_.remove_some(peer, [](const FilterView&, bool) { return true; })) {
      ++steps;
    }
    return steps;
  }

  void agree_with_map(std::uint64_t topics, bool one_has_all);

  SubscriptionTable table_;
};

// Peers with few topics have no place for some of them.
class SubscriptionTableWalkTest : public SubscriptionTableTest {
 protected:
  static constexpr std::size_t kPeers = 12;

  SubscriptionTableWalkTest() : SubscriptionTableTest(4) {}
  void agree_with_map(std::uint64_t seed);
};

std::string numbered(std::size_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "topic.%06zu", number);
  return text;
}

// Random subscriptions of nine peers, beside a map of sets. The first peer begins with all topics, if `one_has_all`.
void SubscriptionTableTest::agree_with_map(std::uint64_t topics, bool one_has_all) {
  constexpr std::size_t kPeers = 9;
  Random random(3);
  SubscriptionTable::Peer peers[kPeers];
  std::map<std::string, std::set<std::size_t>> reference;
  for (std::uint64_t topic = 0; one_has_all && topic < topics; ++topic) {
    ASSERT_TRUE(add(peers[0], std::to_string(topic)));
    reference[std::to_string(topic)] = {0};
  }
  const auto drop = [&](std::size_t peer, const std::string& topic) {
    const auto found = reference.find(topic);
    if (found != reference.end() && found->second.erase(peer) != 0 && found->second.empty()) {
      reference.erase(found);
    }
  };
  for (int step = 0; step < 10'000; ++step) {
    const std::size_t peer = random.below(kPeers);
    const std::string topic = std::to_string(random.below(topics));
    const auto with = reference.find(topic);
    ASSERT_EQ(table_.is_last(peers[peer], SubscriptionTable::prefix(as_bytes(topic))),
              with != reference.end() && with->second == std::set{peer});
    if (random.below(8) < (step / 2500 % 2 == 0 ? 6u : 2u)) {
      ASSERT_EQ(add(peers[peer], topic), with == reference.end());
      reference[topic].insert(peer);
    } else {
      table_.remove(peers[peer], SubscriptionTable::prefix(as_bytes(topic)));
      drop(peer, topic);
    }
    if (random.below(500) == 0) {
      bool stops = false;
      (void)table_.remove_some(peers[peer], [&](const FilterView& gone, bool last) {
        const std::string text(gone.text);
        stops = random.below(30) == 0;
        EXPECT_EQ(last, reference[text].size() == 1);
        if (!stops) {
          drop(peer, text);
        }
        return !stops;
      });
    }
    std::multiset<std::size_t> expected;
    for (std::size_t size = 0; size <= topic.size(); ++size) {
      if (const auto found = reference.find(topic.substr(0, size)); found != reference.end()) {
        expected.insert(found->second.begin(), found->second.end());
      }
    }
    std::multiset<std::size_t> found;
    table_.match(as_bytes(topic),
                 [&](SubscriptionTable::Peer& there) { found.insert(static_cast<std::size_t>(&there - peers)); });
    ASSERT_EQ(found, expected);
  }
  for (SubscriptionTable::Peer& peer : peers) {
    remove_all(peer);
    EXPECT_EQ(peer.bytes, 0u);
  }
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(SubscriptionTableTest, AgreesWithAMapOfSets) { agree_with_map(400, false); }

TEST_F(SubscriptionTableTest, APeerWithMostOfTheTopicsAgreesWithAMapOfSets) {
  agree_with_map(4 * SubscriptionTable::kWalkMin, true);
}

// Each call of remove_some() passes a bounded number of topics, also of those that others have.
TEST_F(SubscriptionTableTest, APeerThatHadMostOfTheTopicsLeavesInBoundedSteps) {
  SubscriptionTable::Peer large;
  SubscriptionTable::Peer other;
  for (std::size_t i = 0; i < 2 * SubscriptionTable::kWalkMin; ++i) {
    ASSERT_TRUE(add(large, numbered(10 * i)));
  }
  for (std::size_t i = 0; i < 20 * SubscriptionTable::kWalkMin; ++i) {  // half of them, and others
    if (i % 20 != 0) {
      EXPECT_EQ(add(other, numbered(i)), i % 10 != 0);
    }
  }
  EXPECT_FALSE(table_.remove_some(large, [](const FilterView&, bool) { return false; })) << "tells it again";
  std::set<std::string> told;
  std::size_t steps = 0;
  const auto tell = [&](const FilterView& topic, bool last) {
    EXPECT_EQ(last, table_.peers(as_bytes(topic.text)).size() == 1);
    return told.insert(std::string(topic.text)).second;
  };
  for (; !table_.remove_some(large, tell); ++steps) {
    ASSERT_LT(steps, 100u);
  }
  EXPECT_EQ(told.size(), 2 * SubscriptionTable::kWalkMin);
  EXPECT_EQ(table_.size(), 19 * SubscriptionTable::kWalkMin);
  EXPECT_TRUE(add(large, "again"));
  remove_all(large);
  remove_all(other);
  EXPECT_EQ(table_.size(), 0u);
}

// Peers come and go in any order. The topics of one that is gone are removed while the others add and remove theirs.
void SubscriptionTableWalkTest::agree_with_map(std::uint64_t seed) {
  Random random(seed);
  SubscriptionTable::Peer peers[kPeers];
  std::map<std::string, std::set<std::size_t>> reference;
  std::size_t walkers = 0;
  const auto topic_of = [&](std::size_t number) {
    return std::to_string(number) + std::string(number % 16 == 7 ? 200'000 : 0, 'x');  // some cost many steps
  };
  const auto drop = [&](std::size_t peer, const std::string& topic) {
    EXPECT_EQ(reference[topic].erase(peer), 1u);
    if (reference[topic].empty()) {
      reference.erase(topic);
    }
  };
  const auto sweep = [&](std::size_t peer, std::uint64_t stop) {
    return table_.remove_some(peers[peer], [&](const FilterView& gone, bool last) {
      const std::string text(gone.text);
      EXPECT_EQ(last, reference[text].size() == 1);
      if (stop != 0 && random.below(stop) == 0) {
        return false;
      }
      drop(peer, text);
      return true;
    });
  };
  for (int step = 0; step < 2'000; ++step) {
    const std::size_t peer = random.below(kPeers);
    const std::string topic = topic_of(random.below(8) == 0 ? random.below(10) : peer * 20 + random.below(20));
    walkers += peers[peer].without_place() != 0 ? 1 : 0;
    if (peers[peer].pipe == nullptr && peers[peer].topics() != 0) {
      (void)sweep(peer, 4);
    } else if (random.below(40) == 0) {
      peers[peer].pipe = nullptr;
    } else if (random.below(8) < (step / 500 % 2 == 0 ? 6u : 3u)) {
      const bool is_new = !reference.contains(topic);
      ASSERT_EQ(add(peers[peer], topic), is_new);
      reference[topic].insert(peer);
    } else if (reference.contains(topic) && reference[topic].contains(peer)) {
      table_.remove(peers[peer], SubscriptionTable::prefix(as_bytes(topic)));
      drop(peer, topic);
    }
    std::set<std::size_t> found;
    for (const SubscriptionTable::Peer* const there : table_.peers(as_bytes(topic))) {
      ASSERT_TRUE(found.insert(static_cast<std::size_t>(there - peers)).second);
    }
    ASSERT_EQ(found, reference.contains(topic) ? reference[topic] : std::set<std::size_t>());
    ASSERT_EQ(table_.size(), reference.size());
  }
  EXPECT_GT(walkers, 100u);
  for (std::size_t peer = 0; peer < kPeers; ++peer) {
    peers[peer].pipe = nullptr;
    for (int steps = 0; !sweep(peer, 0); ++steps) {
      ASSERT_LT(steps, 20);
    }
    EXPECT_EQ(peers[peer].bytes, 0u);
    EXPECT_EQ(peers[peer].places.size(), 0u);
  }
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(SubscriptionTableWalkTest, PeersThatGoOneAfterTheOtherAgreeWithAMapOfSets) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    agree_with_map(seed);
  }
}

// The first walk finds the topics of all of them.
TEST_F(SubscriptionTableWalkTest, ManyPeersThatGoNeedAFewWalks) {
  constexpr std::size_t kWalkers = 100;
  constexpr std::size_t kTopics = 100'000;
  SubscriptionTable::Peer peers[kWalkers];
  SubscriptionTable::Peer other;
  for (std::size_t peer = 0; peer < kWalkers; ++peer) {
    for (std::size_t i = 0; i < 32; ++i) {
      ASSERT_TRUE(add(peers[peer], numbered(kTopics * 8 + i)));
    }
    ASSERT_TRUE(add(peers[peer], numbered(kTopics / kWalkers * (kWalkers - peer)) + ".own"));  // against the walk
    for (std::size_t i = 0; i < 32; ++i) {
      table_.remove(peers[peer], {FilterKind::prefix, numbered(kTopics * 8 + i)});
    }
    ASSERT_EQ(peers[peer].without_place(), 1u);
  }
  for (std::size_t i = 0; i < kTopics; ++i) {
    ASSERT_TRUE(add(other, numbered(i)));
  }
  std::size_t steps = 0;
  for (SubscriptionTable::Peer& peer : peers) {
    peer.pipe = nullptr;
    steps += remove_all(peer);
  }
  EXPECT_LT(steps, kWalkers + 2 * kTopics / 512);
  EXPECT_EQ(table_.size(), kTopics);
  remove_all(other);
}

TEST_F(SubscriptionTableWalkTest, AStepPassesABoundedNumberOfBytes) {
  SubscriptionTable::Peer walker;
  SubscriptionTable::Peer other;
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(add(walker, numbered(100 + i)));
  }
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(add(other, numbered(i) + std::string(std::size_t{1} << 20, 'x')));
  }
  EXPECT_NE(walker.without_place(), 0u);
  EXPECT_GE(remove_all(walker), 8u);
  remove_all(other);
}

TEST_F(SubscriptionTableTest, APeerGivesUpAFewPlacesAtATime) {
  SubscriptionTable::Peer peer;
  for (std::size_t i = 0; i < 2 * SubscriptionTable::kWalkMin; ++i) {
    const std::size_t before = peer.places.size();
    ASSERT_TRUE(add(peer, numbered(i)));
    ASSERT_LE(before, peer.places.size() + 8);
  }
  EXPECT_EQ(peer.places.size(), 0u);
  remove_all(peer);
}

TEST_F(SubscriptionTableTest, TwoHundredThousandTopicsOfAPeerCostLessThanTwelveMebibytes) {
  SubscriptionTable::Peer peer;
  const std::size_t before = bytes_in_use();
  for (std::size_t i = 0; i < 200'000; ++i) {
    ASSERT_TRUE(add(peer, numbered(i)));
  }
  EXPECT_LT(bytes_in_use() - before, std::size_t{12} << 20);
  remove_all(peer);
  EXPECT_LT(bytes_in_use(), before + (std::size_t{1} << 18));  // freed blocks that the heap caches for the thread
}

TEST_F(SubscriptionTableTest, TwoHundredThousandTopicsOfTwentyBytesCostLessThanSixteenMebibytes) {
  const std::size_t topics = bytes_in_use() != 0 ? 200'000 : 2'000;  // a sanitizer's heap is not counted
  for (const std::uint64_t letters : {10, 16, 64, 256}) {
    SCOPED_TRACE(letters);
    Random random(letters);
    SubscriptionTable::Peer peer;
    const std::size_t before = bytes_in_use();
    for (std::size_t i = 0; i < topics; ++i) {
      std::string topic;
      while (topic.size() < 20) {
        topic += static_cast<char>(random.below(letters) * (256 / letters));
      }
      ASSERT_TRUE(add(peer, topic));
    }
    EXPECT_LT(bytes_in_use() - before, std::size_t{16} << 20);
    remove_all(peer);
  }
}

// The topics of a peer that makes them expensive: each byte has two children, which share nothing.
TEST_F(SubscriptionTableTest, ChosenTopicsCostAtMost256BytesAndTheirOwnTwice) {
  constexpr std::size_t kBits = 14;
  SubscriptionTable::Peer peer;
  const std::size_t before = bytes_in_use();
  for (std::size_t i = 0; i < std::size_t{1} << kBits; ++i) {
    std::string topic;
    for (std::size_t bit = 0; bit < kBits; ++bit) {
      topic += (i >> bit & 1) != 0 ? '\7' : '\0';
    }
    ASSERT_TRUE(add(peer, topic + "tail"));
  }
  EXPECT_LE(bytes_in_use() - before, (256 + 2 * (kBits + 4)) << kBits);
}

TEST_F(SubscriptionTableTest, APeerOfOneTopicCostsLessThanAHundredBytes) {
  constexpr std::size_t kPeers = 10'000;
  for (const bool same : {true, false}) {
    const auto peers = std::make_unique<SubscriptionTable::Peer[]>(kPeers);
    const std::size_t before = bytes_in_use();
    for (std::size_t i = 0; i < kPeers; ++i) {
      EXPECT_EQ(add(peers[i], numbered(same ? 0 : i)), !same || i == 0);
    }
    EXPECT_LT(bytes_in_use() - before, kPeers * 100);
    for (std::size_t i = 0; i < kPeers; ++i) {
      table_.remove(peers[i], {FilterKind::prefix, numbered(same ? 0 : i)});
    }
    EXPECT_TRUE(table_.peers(as_bytes(numbered(0))).empty());
  }
}

}  // namespace
}  // namespace weft::msg
