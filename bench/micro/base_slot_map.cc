// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/micro/hash_maps.h"
#include "bench/micro/micro.h"
#include "weft/base/random.h"
#include "weft/base/slot_map.h"

namespace weft {
namespace {

struct Session {
  std::uint64_t id;
};

// Each contender stores Value by a 64-bit key that the contender chooses. The hash maps count up, as the
// published session table does.
template <typename Value>
class Weft {
 public:
  std::uint64_t insert(Value value) { return map_.emplace(value)->value; }
  Value* find(std::uint64_t key) { return map_.find({key}); }
  void erase(std::uint64_t key) { map_.erase({key}); }
  template <typename Function>
  void for_each(Function function) {
    map_.for_each([&](SlotId, Value& value) { function(value); });
  }

 private:
  SlotMap<Value> map_;
};

template <typename Map>
class Hashed {
 public:
  using Value = typename Map::mapped_type;
  std::uint64_t insert(Value value) {
    map_.emplace(++last_, value);
    return last_;
  }
  const Value* find(std::uint64_t key) {
    const auto found = map_.find(key);
    return found != map_.end() ? &found->second : nullptr;
  }
  void erase(std::uint64_t key) { map_.erase(key); }
  template <typename Function>
  void for_each(Function function) {
    for (const auto& [key, value] : map_) {
      function(value);
    }
  }

 private:
  Map map_;
  std::uint64_t last_ = 0;
};
template <typename Value>
using StdMap = Hashed<std::unordered_map<std::uint64_t, Value>>;
#ifdef WEFT_RIVAL_BOOST_FLAT_MAP
template <typename Value>
using BoostMap = Hashed<boost::unordered_flat_map<std::uint64_t, Value>>;
#endif
#ifdef WEFT_RIVAL_ROBIN_MAP
template <typename Value>
using RobinMap = Hashed<tsl::robin_map<std::uint64_t, Value>>;
#endif

constexpr std::size_t kStream = std::size_t{1} << 16;  // keys in a row; a power of two

std::vector<std::uint32_t> random_places(std::size_t count) {
  Random random(1);
  std::vector<std::uint32_t> places(std::max(kStream, std::bit_ceil(count)));
  std::generate(places.begin(), places.end(), [&] { return static_cast<std::uint32_t>(random.below(count)); });
  return places;
}

// As published: always the same key, whose value is an int.
template <typename Map>
void look_up_one(benchmark::State& state, std::size_t count) {
  Map map;
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back(map.insert(static_cast<int>(i)));
  }
  std::uint64_t key = keys[count / 2];
  const bench::CountedPart counted;
  for (auto _ : state) {
    benchmark::DoNotOptimize(key);
    benchmark::DoNotOptimize(map.find(key));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// Keys in random order; `misses` in 16 name a session that has ended. The value is a pointer, and the session
// is read.
template <typename Map>
void look_up_random(benchmark::State& state, std::size_t count, unsigned misses) {
  Map map;
  std::vector<Session> sessions(count);
  std::vector<std::uint64_t> keys;
  Random ended(4);
  for (Session& session : sessions) {
    for (std::uint64_t others = ended.below(16); others != 0; --others) {
      map.erase(map.insert(nullptr));  // in a long-running server most sessions have ended
    }
    keys.push_back(map.insert(&session));
  }
  std::vector<std::uint64_t> stream;
  Random random(2);
  for (const std::uint32_t place : random_places(count)) {
    if (random.below(16) < misses) {
      map.erase(keys[place]);
      stream.push_back(keys[place]);
      keys[place] = map.insert(&sessions[place]);
    } else {
      stream.push_back(keys[place]);
    }
  }
  std::size_t next = 0;
  std::size_t found = 0;
  const bench::CountedPart counted;
  for (auto _ : state) {
    const auto* session = map.find(stream[next++ & (stream.size() - 1)]);
    found += session != nullptr && *session != nullptr ? 1 : 0;
  }
  benchmark::DoNotOptimize(found);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// Sessions come and go: a random one ends and another starts.
template <typename Map>
void churn(benchmark::State& state, std::size_t count) {
  Map map;
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back(map.insert(nullptr));
  }
  const auto places = random_places(count);
  std::size_t next = 0;
  const bench::CountedPart counted;
  for (auto _ : state) {
    std::uint64_t& key = keys[places[next++ & (places.size() - 1)]];
    map.erase(key);
    key = map.insert(nullptr);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// One in `keep` of `count` sessions is left, anywhere.
template <typename Map>
void iterate(benchmark::State& state, std::size_t count, std::size_t keep) {
  Map map;
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back(map.insert(static_cast<int>(i)));
  }
  Random random(3);
  for (const std::uint64_t key : keys) {
    if (random.below(keep) != 0) {
      map.erase(key);
    }
  }
  std::size_t left = 0;
  map.for_each([&](int) { ++left; });
  for (auto _ : state) {
    std::int64_t sum = 0;
    map.for_each([&](int value) { sum += value; });
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * left));
}

// A row of Weft and its rivals; `measure` is called with the type of each. The published rows have one rival
// each.
template <typename Value, typename Measure>
bench::RowBuilder compare(std::string_view name, bool flat, bool standard, Measure measure) {
  auto row =
      bench::row(name).run("weft", [=](benchmark::State& state) { measure.template operator()<Weft<Value>>(state); });
  if (flat) {
#ifdef WEFT_RIVAL_BOOST_FLAT_MAP
    row.run("boost_flat_map", [=](benchmark::State& state) { measure.template operator()<BoostMap<Value>>(state); });
#endif
#ifdef WEFT_RIVAL_ROBIN_MAP
    row.run("robin_map", [=](benchmark::State& state) { measure.template operator()<RobinMap<Value>>(state); });
#endif
  }
  if (standard) {
    row.run("std_unordered_map", [=](benchmark::State& state) { measure.template operator()<StdMap<Value>>(state); });
  }
  return row;
}

void register_published() {
  for (const bool flat : {true, false}) {
    const std::string prefix = flat ? "FlatMap_Session" : "StdMap_Session";
    for (const std::size_t count : {100, 1000, 10'000, 100'000}) {
      compare<int>(prefix + "Lookup/" + std::to_string(count), flat, !flat,
                   [=]<typename Map>(benchmark::State& state) { look_up_one<Map>(state, count); });
    }
    for (const std::size_t count : {100, 1000, 10'000}) {
      compare<int>(prefix + "Iterate/" + std::to_string(count), flat, !flat,
                   [=]<typename Map>(benchmark::State& state) { iterate<Map>(state, count, 1); });
    }
  }
}

void register_honest() {
  for (const std::size_t count : {1000, 100'000, 1'000'000}) {
    const std::string suffix = "/" + std::to_string(count);
    compare<Session*>("FlatMap_SessionLookup" + suffix + " (honest)", true, true,
                      [=]<typename Map>(benchmark::State& state) { look_up_random<Map>(state, count, 0); })
        .bar("boost_flat_map", 2)
        .bar("robin_map", 2)
        .bar("std_unordered_map", 2);
    compare<Session*>("SlotMap_LookupStale" + suffix, true, true,
                      [=]<typename Map>(benchmark::State& state) { look_up_random<Map>(state, count, 4); });
    compare<Session*>("SlotMap_Churn" + suffix, true, true,
                      [=]<typename Map>(benchmark::State& state) { churn<Map>(state, count); });
  }
  compare<int>("SlotMap_IterateSparse/100000", true, true,
               [=]<typename Map>(benchmark::State& state) { iterate<Map>(state, 100'000, 16); });
}

[[maybe_unused]] const bool kRegistered = [] {
  register_published();
  register_honest();
  return true;
}();

}  // namespace
}  // namespace weft
