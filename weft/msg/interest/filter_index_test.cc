// SPDX-License-Identifier: MIT
#include "weft/msg/interest/filter_index.h"

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/base/random.h"
#include "weft/base/test_filters.h"
#include "weft/msg/interest/test_memory.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using Added = FilterIndex::Added;

class FilterIndexTest : public testing::Test {
 protected:
  [[nodiscard]] Added add(FilterIndex::Peer& peer, const Filter& filter) { return index_.add(peer, filter).value(); }
  void remove_all(FilterIndex::Peer& peer) {
    while (peer.filters() != 0) {
      const FilterView last = FilterIndex::last_of(peer);
      const std::string text(last.text);
      index_.remove(peer, {last.kind, text});
    }
  }
  // The peers that a message of this topic reaches; those that are undecided, too, if `undecided` is null.
  std::set<const FilterIndex::Peer*> match(std::string_view topic,
                                           std::set<const FilterIndex::Peer*>* undecided = nullptr) {
    std::set<const FilterIndex::Peer*> found;
    ++mark_;
    index_.match(topic, mark_, [&](FilterIndex::Peer& peer, bool matched) {
      EXPECT_NE(peer.mark, mark_);
      peer.mark = mark_;
      (matched || undecided == nullptr ? found : *undecided).insert(&peer);
    });
    return found;
  }

  FilterIndex index_;
  std::uint64_t mark_ = 0;
};

Filter random_filter(Random& random) {
  for (;;) {
    const Filter filter = naive::random_filter(random);
    if (filter.kind() != FilterKind::prefix) {
      return filter;
    }
  }
}

TEST_F(FilterIndexTest, AgreesWithAMapOfSets) {
  constexpr std::size_t kPeers = 9;
  constexpr int kSteps = kSanitized ? 4'000 : 20'000;
  Random random(3);
  std::vector<Filter> filters;
  while (filters.size() < 300) {
    filters.push_back(random_filter(random));
  }
  FilterIndex::Peer peers[kPeers];
  std::map<Filter, std::set<FilterIndex::Peer*>> reference;
  std::size_t hits = 0;
  for (int step = 0; step < kSteps; ++step) {
    FilterIndex::Peer& peer = peers[random.below(kPeers)];
    const Filter& filter = filters[random.below(filters.size())];
    const bool has = reference[filter].contains(&peer);
    ASSERT_EQ(index_.has(peer, filter), has);
    ASSERT_EQ(index_.holders(filter), reference[filter].size());
    if (random.below(8) < (step / (kSteps / 4) % 2 == 0 ? 6u : 2u)) {
      const Added expected = has ? Added::nothing : reference[filter].empty() ? Added::filter : Added::holder;
      ASSERT_EQ(add(peer, filter), expected);
      reference[filter].insert(&peer);
    } else {
      index_.remove(peer, filter);
      reference[filter].erase(&peer);
    }
    const std::string topic = naive::random_text(random, "ab.", 6);
    std::set<const FilterIndex::Peer*> expected;
    for (const auto& [wanted, holders] : reference) {
      if (naive::matches(wanted, topic)) {
        expected.insert(holders.begin(), holders.end());
      }
    }
    hits += expected.size();
    ASSERT_EQ(match(topic), expected) << topic;
    ASSERT_EQ(index_.matches(topic), !expected.empty()) << topic;
  }
  EXPECT_GT(hits, 1000u);
  for (FilterIndex::Peer& peer : peers) {
    remove_all(peer);
  }
  EXPECT_TRUE(index_.empty());
}

TEST_F(FilterIndexTest, TokensOfManyShapesAreFound) {
  Random random(5);
  FilterIndex::Peer peers[20];
  std::vector<std::pair<Filter, FilterIndex::Peer*>> held;
  for (int i = 0; i < 3000; ++i) {
    std::string text = "a";
    int stars = 0;
    for (std::uint64_t tokens = random.below(14); tokens != 0; --tokens) {
      const bool star = stars < 4 && random.below(3) == 0;
      stars += star ? 1 : 0;
      text += star ? ".*" : random.below(2) == 0 ? ".a" : ".b";
    }
    text += random.below(3) == 0 ? ".>" : "";
    const Filter filter = *Filter::parse(text);
    FilterIndex::Peer& peer = peers[random.below(20)];
    (void)add(peer, filter);
    held.emplace_back(filter, &peer);
  }
  for (int i = 0; i < (kSanitized ? 20 : 100); ++i) {
    std::string topic = "a";
    for (std::uint64_t tokens = random.below(18); tokens != 0; --tokens) {
      topic += random.below(2) == 0 ? ".a" : ".b";
    }
    std::set<const FilterIndex::Peer*> undecided;
    const std::set<const FilterIndex::Peer*> found = match(topic, &undecided);
    for (const auto& [filter, peer] : held) {
      ASSERT_TRUE(!naive::matches(filter, topic) || found.contains(peer) || undecided.contains(peer)) << topic;
    }
    for (const FilterIndex::Peer* peer : found) {
      ASSERT_TRUE(std::any_of(held.begin(), held.end(), [&](const auto& each) {
        return each.second == peer && naive::matches(each.first, topic);
      })) << topic;
    }
  }
  for (FilterIndex::Peer& peer : peers) {
    remove_all(peer);
  }
  EXPECT_TRUE(index_.empty());
}

TEST_F(FilterIndexTest, APeerThatBringsManyShapesLeavesPlacesForOthers) {
  FilterIndex::Peer greedy;
  FilterIndex::Peer other;
  for (std::size_t i = 0; i < 2 * FilterIndex::kShapesOfPeerMax; ++i) {
    std::string shape = "a";
    for (std::size_t bit = 0; bit < 8; ++bit) {
      shape += (i >> bit & 1) != 0 ? ".b" : ".c";
    }
    shape[2 * (i % 8) + 2] = '*';
    shape.resize(3 + 2 * (i % 8));
    for (std::size_t more = 0; more < i / 8; ++more) {
      shape += ".x";
    }
    (void)add(greedy, *Filter::parse(shape));
  }
  // The other's shape still is found by its hash: no step is taken, however many filters of it there are.
  for (int i = 0; i < 100'000; ++i) {
    (void)add(other, *Filter::parse("p.*." + std::to_string(i)));
  }
  std::set<const FilterIndex::Peer*> undecided;
  EXPECT_TRUE(match("p.x.none", &undecided).empty());
  EXPECT_TRUE(undecided.empty());
  EXPECT_EQ(match("p.x.77", &undecided).count(&other), 1u);
  remove_all(greedy);
  remove_all(other);
}

// Filters of a peer that cost more than its share harm only that peer: all messages come to it.
TEST_F(FilterIndexTest, APeerWithCostlyGlobsIsUndecidedAndNobodyElse) {
  FilterIndex::Peer hostile;
  FilterIndex::Peer honest;
  for (int i = 0; i < 1000; ++i) {
    std::string text = "*a" + std::to_string(i);
    while (text.size() + 5 <= kTopicBytesMax) {
      text += "*aa";
    }
    (void)add(hostile, *Filter::glob(text + "*b"));
  }
  for (int i = 0; i < 20; ++i) {
    (void)add(honest, *Filter::glob("*:" + std::to_string(i) + ":*"));
  }
  std::set<const FilterIndex::Peer*> undecided;
  EXPECT_TRUE(match("a1a2a3a4a5a6a7" + std::string(200, 'a'), &undecided).empty());
  EXPECT_EQ(undecided, std::set<const FilterIndex::Peer*>{&hostile});
  undecided.clear();
  EXPECT_EQ(match("x:7:" + std::string(200, 'a'), &undecided), std::set<const FilterIndex::Peer*>{&honest});
  remove_all(hostile);
  remove_all(honest);
}

TEST_F(FilterIndexTest, AMillionFiltersCostAtMost140BytesEach) {
  constexpr std::size_t kFilters = 200'000;
  for (const char* form : {"px.%06zu.last", "px.%06zu.*"}) {
    FilterIndex::Peer peer;
    const std::size_t before = bytes_in_use();
    for (std::size_t i = 0; i < kFilters; ++i) {
      char text[32];
      std::snprintf(text, sizeof text, form, i);
      ASSERT_EQ(add(peer, *Filter::parse(text)), Added::filter);
    }
    EXPECT_LT(bytes_in_use() - before, kFilters * 140);
    remove_all(peer);
    EXPECT_LT(bytes_in_use(), before + (std::size_t{1} << 18));
  }
}

TEST_F(FilterIndexTest, AGlobOfAHeadOfItsOwnCostsAtMost350Bytes) {
  constexpr std::size_t kFilters = 100'000;
  FilterIndex::Peer peer;
  const std::size_t before = bytes_in_use();
  for (std::size_t i = 0; i < kFilters; ++i) {
    (void)add(peer, *Filter::glob("news." + std::to_string(i * 7919) + ".*x"));
  }
  EXPECT_LT(bytes_in_use() - before, kFilters * 350);
  remove_all(peer);
}

TEST_F(FilterIndexTest, ManyPeersOfOneFilterCostAtMost300BytesEach) {
  constexpr std::size_t kPeers = 10'000;
  const auto peers = std::make_unique<FilterIndex::Peer[]>(kPeers);
  const std::size_t before = bytes_in_use();
  for (std::size_t i = 0; i < kPeers; ++i) {
    EXPECT_EQ(add(peers[i], *Filter::glob("a*b")), i == 0 ? Added::filter : Added::holder);
  }
  EXPECT_LT(bytes_in_use() - before, kPeers * 300);
  EXPECT_EQ(match("a-b").size(), kPeers);
  for (std::size_t i = 0; i < kPeers; ++i) {
    remove_all(peers[i]);
  }
  EXPECT_TRUE(index_.empty());
}

}  // namespace
}  // namespace weft::msg
