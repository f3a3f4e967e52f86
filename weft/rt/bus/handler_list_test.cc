// SPDX-License-Identifier: MIT
#include "weft/rt/bus/handler_list.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::rt::detail {
namespace {

constexpr std::size_t kMost = EventHandlers::kShortMost;

std::size_t length(const EventChunk* chunk) {
  std::size_t count = 0;
  for (; chunk != nullptr; chunk = chunk->next) {
    ++count;
  }
  return count;
}

// A list and the plain vector that it stands for.
struct Pair {
  std::deque<EventHandler> all;
  std::vector<EventHandler*> model;
  EventHandlers* list = nullptr;
  std::size_t most_chunks = 0;  // that one change made or dropped

  Pair() = default;
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    while (!model.empty()) {
      remove(model.size() - 1);
    }
    EXPECT_EQ(list, nullptr);
  }

  void add(int priority) {
    EventHandler& handler = all.emplace_back();
    handler.priority = priority;
    handler.order = all.size();
    model.insert(
        std::find_if(model.begin(), model.end(), [&](const EventHandler* each) { return each->priority < priority; }),
        &handler);
    take(with_handler(list, &handler));
  }
  void remove(std::size_t index) {
    EventHandler* const handler = model[index];
    model.erase(model.begin() + static_cast<std::ptrdiff_t>(index));
    take(without_handler(list, handler));
  }
  void take(const HandlerEdit& edit) {
    ASSERT_TRUE(edit.made);
    most_chunks = std::max({most_chunks, length(edit.fresh), length(edit.dropped)});
    for (EventChunk* chunk = edit.dropped; chunk != nullptr;) {
      free_chunk(std::exchange(chunk, chunk->next));
    }
    free_list(std::exchange(list, edit.list));
  }
  void check() const {
    std::vector<EventHandler*> found;
    if (list != nullptr) {
      list->for_each([&](EventHandler& each) { found.push_back(&each); });
      EXPECT_EQ(list->count, model.size());
    }
    EXPECT_TRUE(found == model);
  }
};

TEST(HandlerList, IsInTheOrderOfPrioritiesAndThenOfComing) {
  Random random(39);
  for (const std::size_t most : {std::size_t{20}, kMost + 5, 5 * kMost}) {
    Pair pair;
    for (int round = 0; round < 4; ++round) {
      while (pair.model.size() < most) {
        pair.add(static_cast<int>(random.below(4)));
        if (random.below(4) == 0) {
          pair.remove(random.below(pair.model.size()));
        }
      }
      pair.check();
      while (pair.model.size() > most / 8) {
        pair.remove(random.below(pair.model.size()));
      }
      pair.check();
    }
  }
}

TEST(HandlerList, AChangeOfALongListCopiesFewOfItsParts) {
  Pair pair;
  constexpr std::size_t kMany = 8 * kMost;
  while (pair.model.size() < kMany) {
    pair.add(0);
  }
  pair.check();
  EXPECT_EQ(pair.list->chunk_count, kMany / kMost + 1) << "handlers that come in their order fill their chunks";
  while (pair.model.size() > kMost) {
    pair.remove(0);
  }
  pair.check();
  EXPECT_LE(pair.most_chunks, 2u);
}

TEST(HandlerList, PartsThatBecameSmallAreJoined) {
  Pair pair;
  constexpr std::size_t kMany = 16 * kMost;
  while (pair.model.size() < kMany) {
    pair.add(0);
  }
  for (std::size_t i = 0; i < pair.model.size(); ++i) {  // leaves one of eight
    for (int k = 0; k < 7 && i + 1 < pair.model.size(); ++k) {
      pair.remove(i + 1);
    }
  }
  pair.check();
  EXPECT_LE(pair.list->chunk_count, 4 * (pair.model.size() / kMost + 1));
}

}  // namespace
}  // namespace weft::rt::detail
