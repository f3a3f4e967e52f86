// SPDX-License-Identifier: MIT
// The published Dispatcher_Lookup looks up one id, always the same, and calls nothing. The honest twin takes frames
// with ids in random order, one in 16 unknown, and runs their handlers. The rivals are tables of handlers. Weft's row
// is the whole dispatcher: it contains exceptions, would answer errors, and counts everything.
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/micro/hash_maps.h"
#include "bench/micro/micro.h"
#include "weft/base/random.h"
#include "weft/serve/dispatch/dispatcher.h"

namespace weft::serve {
namespace {

using Handler = void (*)(std::uint64_t& calls);

void count_call(std::uint64_t& calls) { ++calls; }

// Takes the answers to frames without a handler.
struct Nobody {
  void send(const FrameHeader& /*header*/, Bytes /*body*/) {}
};

class Ours {
 public:
  void add(std::uint32_t id, Handler /*handler*/) {
    if (!dispatcher_.on(id, [this](Nobody&, const HeaderCodec::Frame&) { count_call(calls_); })) {
      bench::fail("an id is there twice");
    }
  }
  [[nodiscard]] bool find(std::uint32_t id) const { return dispatcher_.handles(id); }
  void count_unknown(std::uint64_t& unknown) {
    (void)dispatcher_.on_unknown([&unknown](Nobody&, const HeaderCodec::Frame&) { ++unknown; });
  }
  void take(std::uint32_t id) {
    Nobody nobody;
    dispatcher_.dispatch(nobody, {{id, 0}, {}});
  }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

 private:
  std::uint64_t calls_ = 0;
  Dispatcher<Nobody> dispatcher_;
};

// Any table of handlers.
template <typename Table>
class TableOnly : public Table {
 public:
  void count_unknown(std::uint64_t& unknown) { unknown_ = &unknown; }
  void take(std::uint32_t id) {
    if (const Handler handler = Table::find(id); handler != nullptr) {
      handler(calls_);
    } else {
      ++*unknown_;
    }
  }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

 private:
  std::uint64_t calls_ = 0;
  std::uint64_t* unknown_ = nullptr;
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

// As published: finds the handler of one id, always the same.
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

// Finds ids in random order, one in 16 unknown, and calls the handler.
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
  std::uint64_t unknown = 0;
  table.count_unknown(unknown);
  const bench::CountedPart counted;
  for (auto _ : state) {
    table.take(ids[next++ & (ids.size() - 1)]);
  }
  if (table.calls() + unknown != next) {
    state.SkipWithError("a call is missing");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

template <typename Measure>
void compare(const std::string& name, Measure measure) {
  auto row = bench::row(name);
  row.run("weft", [=](benchmark::State& state) { measure.template operator()<Ours>(state); });
#ifdef WEFT_RIVAL_BOOST_FLAT_MAP
  using Flat = TableOnly<Hashed<boost::unordered_flat_map<std::uint32_t, Handler>>>;
  row.run("boost_flat_map", [=](benchmark::State& state) { measure.template operator()<Flat>(state); });
#endif
#ifdef WEFT_RIVAL_ROBIN_MAP
  using Robin = TableOnly<Hashed<tsl::robin_map<std::uint32_t, Handler>>>;
  row.run("robin_map", [=](benchmark::State& state) { measure.template operator()<Robin>(state); });
#endif
  using Std = TableOnly<Hashed<std::unordered_map<std::uint32_t, Handler>>>;
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
}  // namespace weft::serve
