// SPDX-License-Identifier: MIT
// Subscriptions without memory: each allocation fails once, alone and with all later ones.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/exhaustion/walk.h"
#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/subscription_table.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/socket/test_support.h"

namespace weft::msg {
namespace {

using weft::test::FailingMemory;
using weft::test::made;
using weft::test::walk;

// Topics that split paths, fork and outgrow a node.
const std::vector<std::string> kTopics = [] {
  std::vector<std::string> all{"",
                               "a",
                               "abc",
                               "abd",
                               "abcdef",
                               "b",
                               "x",
                               std::string(300, 'a'),
                               std::string(600, 'a'),
                               std::string(301, 'a') + "b"};
  for (char c = 'c'; c < 'm'; ++c) {
    all.push_back(std::string("ab") + c + "tail");
  }
  for (char c = 0; c < 12; ++c) {  // far apart
    all.push_back(std::string("w") + static_cast<char>(1 + c * 20) + (c % 2 == 0 ? "" : "tail"));
  }
  return all;
}();
using Held = std::array<bool, 32>;  // the topics of a peer; no memory needed

std::size_t count(const Held& held) { return static_cast<std::size_t>(std::count(held.begin(), held.end(), true)); }
FilterView prefix(std::string_view text) { return {FilterKind::prefix, text}; }
std::size_t place_of(Bytes topic) {
  return static_cast<std::size_t>(std::find(kTopics.begin(), kTopics.end(), as_text(topic)) - kTopics.begin());
}

template <typename Value>
void walk_a_table() {
  walk([](FailingMemory& memory) {
    PrefixTable<Value> table;
    Held held{};
    for (std::size_t i = 0; i < kTopics.size(); ++i) {
      bool is_new = false;
      Value* const value = table.insert(as_bytes(kTopics[i]), is_new);
      held[i] = value != nullptr;
      if (value != nullptr) {
        EXPECT_TRUE(is_new);
        *value = static_cast<Value>(i);
      }
      if (i % 5 == 4) {
        table.erase(as_bytes(kTopics[i - 2]));
        held[i - 2] = false;
      }
    }
    const auto check = [&] {
      for (std::size_t i = 0; i < kTopics.size(); ++i) {
        const Value* const value = table.find(as_bytes(kTopics[i]));
        EXPECT_EQ(value != nullptr, held[i]) << kTopics[i];
        EXPECT_TRUE(value == nullptr || *value == static_cast<Value>(i));
      }
      EXPECT_EQ(table.size(), count(held));
    };
    check();
    for (std::size_t i = 1; i < kTopics.size(); i += 3) {
      table.erase(as_bytes(kTopics[i]));
      held[i] = false;
    }
    check();
    memory.end();
    for (std::size_t i = 0; i < kTopics.size(); i += 2) {
      bool is_new = false;
      Value* const value = table.insert(as_bytes(kTopics[i]), is_new);
      ASSERT_NE(value, nullptr);
      EXPECT_EQ(is_new, !std::exchange(held[i], true));
      *value = static_cast<Value>(i);
    }
    check();
    for (const std::string& topic : kTopics) {
      table.erase(as_bytes(topic));
    }
    EXPECT_EQ(table.size(), 0u);
  });
}

TEST(SubscriptionExhaustion, APrefixTableHoldsWhatItTook) {
  walk_a_table<std::uint32_t>();
  walk_a_table<std::uint64_t>();
}

TEST(SubscriptionExhaustion, TheTableKnowsTheSamePeersOfATopicAsTopicsOfAPeer) {
  weft::msg::test::Owner owner;
  weft::msg::test::PipePair pipes(owner.core());
  walk([&](FailingMemory& memory) {
    SubscriptionTable table;
    SubscriptionTable::Peer peers[6];
    Held held[6] = {};
    for (std::size_t p = 0; p < 6; ++p) {
      peers[p].pipe = &pipes.near;
      for (std::size_t i = p; i < kTopics.size(); ++i) {
        held[p][i] = made(table.add(peers[p], prefix(kTopics[i])));
      }
    }
    for (std::size_t i = 0; i < kTopics.size(); i += 3) {
      for (const std::size_t p : {1, 4}) {
        table.remove(peers[p], prefix(kTopics[i]));
        held[p][i] = false;
      }
    }
    while (!table.remove_some(peers[2], [&](const FilterView& topic, bool) {
      return std::exchange(held[2][place_of(as_bytes(topic.text))], false);
    })) {
      memory.end();  // the rest needs memory
    }
    memory.end();
    for (std::size_t i = 0; i < kTopics.size(); ++i) {
      std::set<SubscriptionTable::Peer*> with;
      for (std::size_t p = 0; p < 6; ++p) {
        if (held[p][i]) {
          with.insert(&peers[p]);
        }
      }
      const auto there = table.peers(as_bytes(kTopics[i]));
      EXPECT_EQ(std::set<SubscriptionTable::Peer*>(there.begin(), there.end()), with) << kTopics[i];
      EXPECT_EQ(there.size(), with.size());
    }
    for (std::size_t p = 0; p < 6; ++p) {
      EXPECT_EQ(peers[p].topics(), count(held[p]));
    }
  });
}

// Each peer has topics of its own, for which it has no place, and shares others with the next peer.
TEST(SubscriptionExhaustion, PeersWithoutPlacesLeaveOneAfterTheOther) {
  weft::msg::test::Owner owner;
  weft::msg::test::PipePair pipes(owner.core());
  walk([&](FailingMemory& memory) {
    constexpr std::size_t kPeers = 3;
    SubscriptionTable table(2);
    SubscriptionTable::Peer peers[kPeers];
    Held held[kPeers] = {};
    for (std::size_t i = 0; i < kTopics.size(); ++i) {
      for (std::size_t p = 0; p < kPeers; ++p) {
        peers[p].pipe = &pipes.near;
        if (i % kPeers == p || i % (2 * kPeers) == p + 1) {
          held[p][i] = made(table.add(peers[p], prefix(kTopics[i])));
        }
      }
    }
    for (std::size_t p = 0; p < kPeers; ++p) {
      peers[p].pipe = nullptr;
      while (!table.remove_some(peers[p], [&](const FilterView& topic, bool last) {
        const std::size_t i = place_of(as_bytes(topic.text));
        std::size_t holders = 0;
        for (const Held& its : held) {
          holders += its[i] ? 1 : 0;
        }
        EXPECT_EQ(last, holders == 1) << topic.text;
        return std::exchange(held[p][i], false);
      })) {
        if (memory.failed()) {
          memory.end();  // the rest needs memory
        }
      }
      EXPECT_EQ(count(held[p]), 0u);
    }
    EXPECT_EQ(table.size(), 0u);
  });
}

// Filters that share literal heads and shapes, or have their own.
TEST(SubscriptionExhaustion, TheIndexKnowsTheSameHoldersOfAFilterAsFiltersOfAPeer) {
  std::vector<Filter> filters;
  for (const char* text : {"a", "a.b", "a.*", "*.b", "a.>", ">", "b.*.*", "b.*.c"}) {
    filters.push_back(*Filter::parse(text));
  }
  for (const char* text : {"a*", "a?c", "a*c", "*", "[ab]*", "long.head.of.its.own*x", "b\\*"}) {
    filters.push_back(*Filter::glob(text));
  }
  walk([&](FailingMemory& memory) {
    FilterIndex index;
    FilterIndex::Peer peers[6];
    Held held[6] = {};
    for (std::size_t p = 0; p < 6; ++p) {
      for (std::size_t i = p % 3; i < filters.size(); ++i) {
        held[p][i] = made(index.add(peers[p], filters[i]));
      }
    }
    for (std::size_t i = 0; i < filters.size(); i += 2) {
      for (const std::size_t p : {1, 4}) {
        index.remove(peers[p], filters[i]);
        held[p][i] = false;
      }
    }
    memory.end();
    for (std::size_t i = 0; i < filters.size(); ++i) {
      std::size_t holders = 0;
      for (std::size_t p = 0; p < 6; ++p) {
        EXPECT_EQ(index.has(peers[p], filters[i]), held[p][i]) << filters[i].text();
        holders += held[p][i] ? 1 : 0;
      }
      EXPECT_EQ(index.holders(filters[i]), holders) << filters[i].text();
    }
    for (std::size_t p = 0; p < 6; ++p) {
      EXPECT_EQ(peers[p].filters(), count(held[p]));
      for (const Filter& filter : filters) {
        index.remove(peers[p], filter);
      }
    }
    EXPECT_TRUE(index.empty());
  });
}

// The topics that an XPUB reported to its application, less those that it reported as ended, are those that the peers
// have.
TEST(SubscriptionExhaustion, APublisherRefusesASubscriptionOrTellsTheApplication) {
  weft::msg::test::Owner owner;
  const PatternRow& row = *find_pattern(SocketType::xpub);
  const Options options;
  walk([&](FailingMemory& memory) {
    memory.end();
    weft::msg::test::PipePair pairs[2] = {weft::msg::test::PipePair(owner.core()),
                                          weft::msg::test::PipePair(owner.core())};
    const auto pattern = row.make(row.traits, options);
    for (weft::msg::test::PipePair& pair : pairs) {
      pattern->attach(pair.near);
    }
    memory.resume();
    Held held[2] = {};
    for (weft::msg::test::PipePair& pair : pairs) {
      try {
        (void)pattern->ready(pair.near, {});
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(memory.failed());
      }
    }
    for (std::size_t i = 0; i < kTopics.size(); ++i) {
      for (const std::size_t p : {0, 1}) {
        held[p][i] = made(pattern->handle_subscription(pairs[p].near, true, prefix(kTopics[i])));
      }
      Outbound part{as_bytes(kTopics[i]), nullptr, false};
      (void)made(pattern->send(part));
    }
    EXPECT_EQ(pattern->subscribers(), (count(held[0]) == 0 ? 0u : 1u) + (count(held[1]) == 0 ? 0u : 1u));
    for (std::size_t i = 0; i < kTopics.size(); i += 4) {
      if (made(pattern->handle_subscription(pairs[1].near, false, prefix(kTopics[i])))) {
        held[1][i] = false;
      }
    }
    Held told{};
    const auto receive_all = [&] {
      Message message;
      Inbound part{&message, {}};
      while (pattern->receive(part)) {
        bool& topic = told[place_of(message.bytes().subspan(1))];
        EXPECT_EQ(topic, message.bytes()[0] == 0) << message.text().substr(1);
        topic = !topic;
      }
    };
    pattern->detach(pairs[0].near);
    (void)pattern->sweep();
    memory.end();
    while (pattern->sweep()) {
    }
    receive_all();
    EXPECT_EQ(told, held[1]);
    pattern->detach(pairs[1].near);
    while (pattern->sweep()) {
    }
    receive_all();
    EXPECT_EQ(told, Held{});
    for (weft::msg::test::PipePair& pair : pairs) {
      pattern->deactivate(pair.near);
    }
  });
}

// The socket refuses the peer when attach() throws, or ready() fails.
TEST(SubscriptionExhaustion, APeerThatWasHalfAttachedIsDetached) {
  weft::msg::test::Owner owner;
  for (const SocketType type :
       {SocketType::pub, SocketType::xpub, SocketType::sub, SocketType::xsub, SocketType::radio, SocketType::dish}) {
    const PatternRow& row = *find_pattern(type);
    const Options options;
    walk([&](FailingMemory& memory) {
      memory.end();
      weft::msg::test::PipePair pipes(owner.core());
      const auto pattern = row.make(row.traits, options);
      memory.resume();
      try {
        pattern->attach(pipes.near);
        (void)pattern->ready(pipes.near, {});
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(memory.failed());
      }
      pattern->detach(pipes.near);
      pattern->deactivate(pipes.near);
      memory.end();
      while (pattern->sweep()) {
      }
      pattern->attach(pipes.near);
      EXPECT_TRUE(pattern->ready(pipes.near, {}));
      pattern->detach(pipes.near);
      pattern->deactivate(pipes.near);
    });
  }
}

TEST(SubscriptionExhaustion, APeerLeavesWithoutMemory) {
  weft::msg::test::Owner owner;
  for (const SocketType type : {SocketType::pub, SocketType::xpub, SocketType::radio}) {
    const PatternRow& row = *find_pattern(type);
    const Options options;
    weft::msg::test::PipePair pipes(owner.core());
    const auto pattern = row.make(row.traits, options);
    pattern->attach(pipes.near);
    ASSERT_TRUE(pattern->ready(pipes.near, {}));
    for (const std::string& topic : kTopics) {
      ASSERT_TRUE(pattern->handle_subscription(pipes.near, true, prefix(topic)));
    }
    {
      const FailingMemory memory(0, FailingMemory::Length::all);
      pattern->detach(pipes.near);
      for (int i = 0; i < 10; ++i) {
        (void)pattern->sweep();
      }
    }
    while (pattern->sweep()) {
    }
    EXPECT_EQ(pattern->subscribers(), 0u);
    pattern->deactivate(pipes.near);
  }
}

TEST(SubscriptionExhaustion, ASubscriberHasEachTopicThatItWasPromised) {
  for (const SocketType type : {SocketType::sub, SocketType::dish}) {
    const PatternRow& row = *find_pattern(type);
    const Options options;
    walk([&](FailingMemory& memory) {
      memory.end();
      const auto pattern = row.make(row.traits, options);
      memory.resume();
      Held held{};
      for (std::size_t i = 0; i < kTopics.size(); ++i) {
        held[i] = kTopics[i].size() <= 255 && made(pattern->subscribe(prefix(kTopics[i])));
      }
      const Filter filters[] = {*Filter::glob("a*"), *Filter::parse("a.*"), *Filter::exact("a"), *Filter::glob("a*b")};
      bool filtered[4] = {};
      for (std::size_t i = 0; type == SocketType::sub && i < 4; ++i) {
        filtered[i] = made(pattern->subscribe(filters[i]));
      }
      memory.end();
      for (std::size_t i = 0; type == SocketType::sub && i < 4; ++i) {
        EXPECT_EQ(pattern->unsubscribe(filters[i]).has_value(), filtered[i]) << i;
      }
      for (std::size_t i = 0; i < kTopics.size(); ++i) {
        EXPECT_EQ(pattern->unsubscribe(prefix(kTopics[i])).has_value(), held[i]) << kTopics[i];
      }
    });
  }
}

}  // namespace
}  // namespace weft::msg
