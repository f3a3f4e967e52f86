// SPDX-License-Identifier: MIT
#include "weft/base/slot_map.h"

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(SlotMap, FindsWhatWasPutInAndNothingElse) {
  SlotMap<std::string> map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find({}), nullptr);
  const auto id = map.emplace("one");
  ASSERT_TRUE(id);
  EXPECT_TRUE(*id);
  EXPECT_EQ(*map.find(*id), "one");
  EXPECT_EQ(*std::as_const(map).find(*id), "one");
  for (const std::uint64_t forged :
       {std::uint64_t{0}, id->value + 1, id->value - 1, id->value + (std::uint64_t{1} << 32), id->value | 0xFFFF'FFFFu,
        ~std::uint64_t{0}}) {
    EXPECT_EQ(map.find({forged}), nullptr);
    EXPECT_FALSE(map.erase({forged}));
  }
  EXPECT_TRUE(map.erase(*id));
  EXPECT_FALSE(map.erase(*id));
  EXPECT_TRUE(map.empty());
}

TEST(SlotMap, AWalkInPartsVisitsEachValueOnce) {
  SlotMap<int> map;
  EXPECT_EQ(map.for_each_in(0, 64, [](SlotId, int&) { FAIL(); }), 0u);
  std::vector<SlotId> ids;
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(*map.emplace(i));
  }
  for (int i = 0; i < 1000; i += 3) {
    map.erase(ids[static_cast<std::size_t>(i)]);
  }
  std::multiset<int> seen;
  int parts = 0;
  std::uint32_t next = 0;
  do {
    std::size_t here = 0;
    next = map.for_each_in(next, 128, [&](SlotId id, int& value) {
      EXPECT_EQ(map.find(id), &value);
      seen.insert(value);
      ++here;
    });
    EXPECT_LE(here, 128u);
    ++parts;
  } while (next != 0);
  EXPECT_EQ(parts, 8);
  EXPECT_EQ(seen.size(), map.size());
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), map.size());
  EXPECT_EQ(map.for_each_in(1 << 20, 128, [](SlotId, int&) { FAIL(); }), 0u);
}

// The published tables reuse ids: a message for one session reaches its successor.
TEST(SlotMap, AnOldIdNeverFindsTheSuccessor) {
  SlotMap<int> map;
  std::vector<SlotId> old;
  for (int i = 0; i < 1000; ++i) {
    const SlotId id = *map.emplace(i);
    EXPECT_EQ(id.slot(), 0u);  // the same place
    for (const SlotId stale : old) {
      ASSERT_EQ(map.find(stale), nullptr);
      ASSERT_FALSE(map.erase(stale));
    }
    map.erase(id);
    old.push_back(id);
  }
}

TEST(SlotMap, ASlotIsNotUsedAgainAfterItsLastGeneration) {
  SlotMap<int, 2> map(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto id = map.emplace(i);
    ASSERT_TRUE(id);
    EXPECT_TRUE(seen.insert(id->value).second);
    EXPECT_EQ(id->value >> 34, 0u);  // the highest bits are the user's
    EXPECT_EQ(id->slot(), static_cast<std::uint32_t>(i) / 3);
    EXPECT_TRUE(map.erase(*id));
    for (const std::uint64_t stale : seen) {
      ASSERT_EQ(map.find({stale}), nullptr);
    }
  }
}

TEST(SlotMap, RefusesMoreThanItsCapacity) {
  SlotMap<int> none(0);
  EXPECT_EQ(none.emplace(1).error(), Errc::resource_exhausted);
  SlotMap<int> map(100);
  std::vector<SlotId> ids;
  for (int i = 0; i < 100; ++i) {
    ids.push_back(*map.emplace(i));
  }
  EXPECT_EQ(map.emplace(100).error(), Errc::resource_exhausted);
  EXPECT_EQ(map.size(), map.capacity());
  map.erase(ids[50]);
  EXPECT_TRUE(map.emplace(100));
  EXPECT_FALSE(map.emplace(101));
}

TEST(SlotMap, ValuesDoNotMove) {
  SlotMap<std::uint64_t> map;
  const SlotId first = *map.emplace(7u);
  const std::uint64_t* where = map.find(first);
  std::vector<SlotId> ids;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    ids.push_back(*map.emplace(i));
  }
  EXPECT_EQ(map.find(first), where);
  EXPECT_EQ(*where, 7u);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    ASSERT_EQ(*map.find(ids[i]), i);
  }
}

TEST(SlotMap, IsWalkedOnceAndMayBeChangedMeanwhile) {
  SlotMap<int> map;
  std::vector<SlotId> ids;
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(*map.emplace(i));
  }
  for (int i = 0; i < 1000; i += 3) {
    map.erase(ids[static_cast<std::size_t>(i)]);
  }
  std::set<int> seen;
  map.for_each([&](SlotId id, int& value) {
    EXPECT_EQ(map.find(id), &value);
    EXPECT_TRUE(seen.insert(value).second);
    EXPECT_NE(value % 3, 0);
    if (value % 3 == 1) {  // erases itself and the next one, not yet visited
      map.erase(ids[static_cast<std::size_t>(value + 1)]);
      map.erase(id);
    }
  });
  EXPECT_EQ(seen.size(), 333u);
  EXPECT_TRUE(map.empty());
  map.for_each([](SlotId, int&) { FAIL(); });
}

TEST(SlotMap, EndsItsValues) {
  const auto counted = std::make_shared<int>(1);
  {
    SlotMap<std::shared_ptr<int>> map;
    std::vector<SlotId> ids;
    for (int i = 0; i < 200; ++i) {
      ids.push_back(*map.emplace(counted));
    }
    map.erase(ids[7]);
    EXPECT_EQ(counted.use_count(), 200);
    map.clear();
    EXPECT_EQ(counted.use_count(), 1);
    (void)map.emplace(counted);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(SlotMap, AConstructorThatThrowsChangesNothing) {
  struct Thrower {
    explicit Thrower(bool fail) {
      if (fail) {
        throw std::runtime_error("no");
      }
    }
  };
  SlotMap<Thrower> map(1);
  EXPECT_THROW((void)map.emplace(true), std::runtime_error);
  EXPECT_TRUE(map.empty());
  EXPECT_TRUE(map.emplace(false));
}

TEST(SlotMap, ValuesAreAligned) {
  struct alignas(128) Wide {
    int value = 0;
  };
  SlotMap<Wide> map;
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(map.find(*map.emplace())) % 128, 0u);
  }
}

// Erases and adds values of its map in its destructor.
struct Leaving {
  SlotMap<Leaving>* map;
  SlotId own;
  std::vector<int>* ended;
  int name;
  bool adds = false;

  Leaving(SlotMap<Leaving>& in, std::vector<int>& list, int number) : map(&in), ended(&list), name(number) {}
  ~Leaving() {
    ended->push_back(name);
    EXPECT_EQ(map->find(own), nullptr);
    EXPECT_FALSE(map->erase(own));
    if (adds) {
      EXPECT_NE(map->emplace(*map, *ended, 9).value(), own);
    }
  }
};

TEST(SlotMap, AValueThatErasesItselfInItsDestructorIsDestroyedOnce) {
  std::vector<int> ended;
  {
    SlotMap<Leaving> map;
    for (int name = 0; name < 3; ++name) {
      const SlotId id = map.emplace(map, ended, name).value();
      map.find(id)->own = id;
      map.find(id)->adds = name == 1;
    }
    SlotId second;
    map.for_each([&](SlotId id, Leaving& value) { second = value.name == 1 ? id : second; });
    EXPECT_TRUE(map.erase(second));
    EXPECT_EQ(map.size(), 3u);  // the value that was added took the place
    EXPECT_EQ(map.emplace(map, ended, 8).value().slot(), second.slot()) << "its slot is free again, once";
    EXPECT_EQ(ended, std::vector<int>{1});
  }
  std::sort(ended.begin(), ended.end());
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2, 8, 9}));
}

}  // namespace
}  // namespace weft
