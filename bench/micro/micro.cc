// SPDX-License-Identifier: MIT
#include "bench/micro/micro.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/micro/callgrind.h"
#include "bench/stage.h"

namespace bench {
namespace {

constexpr int kProbeChunks = 5;
constexpr std::uint32_t kProbeRounds = 200;

std::size_t index_of(std::string_view name) {
  auto& all = rows();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Row& each) { return each.name == name; });
  const auto index = static_cast<std::size_t>(found - all.begin());
  if (found == all.end()) {
    all.push_back({std::string(name), 1, {}, {}});
  }
  return index;
}

// Probes the distance between the two threads' cores, before and after.
Body probed(Body leader, Body follower) {
  auto stage = std::make_shared<Stage>();
  return [stage, leader = std::move(leader), follower = std::move(follower)](benchmark::State& state) {
    if (state.thread_index() == 1) {
      stage->ping_pong(Side::follower, kProbeChunks, kProbeRounds);
      follower(state);
      stage->ping_pong(Side::follower, kProbeChunks, kProbeRounds);
      return;
    }
    const double before = stage->ping_pong(Side::leader, kProbeChunks, kProbeRounds);
    leader(state);
    const double after = stage->ping_pong(Side::leader, kProbeChunks, kProbeRounds);
    state.counters["before_ns"] = before;
    state.counters["after_ns"] = after;
  };
}

}  // namespace

std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

RowBuilder row(std::string_view name) { return RowBuilder(index_of(name)); }

Row& RowBuilder::row() const { return rows()[index_]; }

RowBuilder RowBuilder::run(std::string_view contender, Body body) { return run_threads(contender, 1, std::move(body)); }

RowBuilder RowBuilder::run_two(std::string_view contender, Body leader, Body follower) {
  return run_threads(contender, 2, probed(std::move(leader), std::move(follower)));
}

RowBuilder RowBuilder::run_threads(std::string_view contender, int threads, Body body) {
  row().threads = threads;
  row().contenders.push_back({std::string(contender), std::move(body)});
  return *this;
}

RowBuilder RowBuilder::bar(std::string_view rival, double ratio, std::string_view placement) {
  row().bars.push_back({std::string(rival), ratio, std::string(placement)});
  return *this;
}

CountedPart::CountedPart() { CALLGRIND_ZERO_STATS; }
CountedPart::~CountedPart() {
  CALLGRIND_TOGGLE_COLLECT;
  over = true;
}

void CountedPart::count_on() {
  if (std::exchange(over, false)) {
    CALLGRIND_TOGGLE_COLLECT;
  }
}

}  // namespace bench
