// SPDX-License-Identifier: MIT
// Candidates for a dispatcher's table from 32-bit message ids to handlers; the dispatcher will take the best.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/base/random.h"

#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#define WEFT_RIVAL_BOOST_FLAT_MAP
#endif
#if __has_include(<tsl/robin_map.h>)
#include <tsl/robin_map.h>
#define WEFT_RIVAL_ROBIN_MAP
#endif

namespace weft {
namespace {

using Handler = void (*)(std::uint64_t& calls);

void count_call(std::uint64_t& calls) { ++calls; }

// Small ids are places of an array.
class Dense {
 public:
  void add(std::uint32_t id, Handler handler) {
    handlers_.resize(std::max<std::size_t>(handlers_.size(), id + 1));
    handlers_[id] = handler;
  }
  [[nodiscard]] Handler find(std::uint32_t id) const { return id < handlers_.size() ? handlers_[id] : nullptr; }

 private:
  std::vector<Handler> handlers_;
};

// Any ids: open addressing, half empty, multiplicative hash.
class Open {
 public:
  void add(std::uint32_t id, Handler handler) {
    all_.push_back({id, handler});
    const std::size_t size = std::bit_ceil(all_.size() * 2);
    shift_ = 64 - std::countr_zero(size);
    entries_.assign(size + all_.size(), {});  // a run that leaves the end goes on: nothing wraps
    for (const Entry& each : all_) {
      std::size_t place = home(each.id);
      while (entries_[place].handler != nullptr) {
        ++place;
      }
      entries_[place] = each;
    }
    entries_.push_back({});
  }
  [[nodiscard]] Handler find(std::uint32_t id) const {
    const Entry* entry = &entries_[home(id)];
    while (entry->id != id && entry->handler != nullptr) {
      ++entry;
    }
    return entry->handler;
  }

 private:
  struct Entry {
    std::uint32_t id = 0;
    Handler handler = nullptr;
  };
  [[nodiscard]] std::size_t home(std::uint32_t id) const { return id * std::uint64_t{0x9E37'79B9'7F4A'7C15} >> shift_; }

  int shift_ = 63;
  std::vector<Entry> all_;
  std::vector<Entry> entries_;
};

template <typename Map>
class Hashed {
 public:
  void add(std::uint32_t id, Handler handler) { map_[id] = handler; }
  [[nodiscard]] Handler find(std::uint32_t id) const {
    const auto found = map_.find(id);
    return found != map_.end() ? found->second : nullptr;
  }

 private:
  Map map_;
};

// As published: whether there is a handler for one id, always the same.
template <typename Table>
void look_up(benchmark::State& state, std::uint32_t count) {
  Table table;
  for (std::uint32_t id = 0; id < count; ++id) {
    table.add(id, count_call);
  }
  std::uint32_t id = count / 2;
  for (auto _ : state) {
    benchmark::DoNotOptimize(id);
    benchmark::DoNotOptimize(table.find(id));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// Ids in random order, one in 16 unknown, and the handler is called.
template <typename Table>
void dispatch(benchmark::State& state, std::uint32_t count) {
  Table table;
  for (std::uint32_t id = 0; id < count; ++id) {
    table.add(id, count_call);
  }
  Random random(1);
  std::vector<std::uint32_t> ids(std::size_t{1} << 14);
  std::generate(ids.begin(), ids.end(),
                [&] { return static_cast<std::uint32_t>(random.below(count)) + (random.below(16) == 0 ? count : 0); });
  std::size_t next = 0;
  std::uint64_t calls = 0;
  std::uint64_t unknown = 0;
  for (auto _ : state) {
    if (const Handler handler = table.find(ids[next++ & (ids.size() - 1)]); handler != nullptr) {
      handler(calls);
    } else {
      ++unknown;
    }
  }
  if (calls + unknown != next) {
    state.SkipWithError("a call is missing");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

template <typename Measure>
void compare(const std::string& name, Measure measure) {
  auto row = bench::row(name);
  row.run("dense", [=](benchmark::State& state) { measure.template operator()<Dense>(state); });
  row.run("open", [=](benchmark::State& state) { measure.template operator()<Open>(state); });
#ifdef WEFT_RIVAL_BOOST_FLAT_MAP
  using Flat = Hashed<boost::unordered_flat_map<std::uint32_t, Handler>>;
  row.run("boost_flat_map", [=](benchmark::State& state) { measure.template operator()<Flat>(state); });
#endif
#ifdef WEFT_RIVAL_ROBIN_MAP
  using Robin = Hashed<tsl::robin_map<std::uint32_t, Handler>>;
  row.run("robin_map", [=](benchmark::State& state) { measure.template operator()<Robin>(state); });
#endif
  using Std = Hashed<std::unordered_map<std::uint32_t, Handler>>;
  row.run("std_unordered_map", [=](benchmark::State& state) { measure.template operator()<Std>(state); });
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::uint32_t count : {10, 100, 1000}) {
    const std::string name = "Dispatcher_Lookup/" + std::to_string(count);
    compare(name, [=]<typename Table>(benchmark::State& state) { look_up<Table>(state, count); });
    compare(name + " (honest)", [=]<typename Table>(benchmark::State& state) { dispatch<Table>(state, count); });
  }
  return true;
}();

}  // namespace
}  // namespace weft
