// SPDX-License-Identifier: MIT
#include "weft/msg/connection/next_reader.h"

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using Holder = NextReader::Holder;
using Watcher = NextReader::Watcher;
using Pause = NextReader::Pause;
using Kernel = NextReader::Kernel;

// An event and whether the caller then sends a request.
using Event = std::function<bool(NextReader&)>;
Event quiet(void (NextReader::*event)() noexcept) {
  return [event](NextReader& next) { return (next.*event)(), false; };
}
Event asking(bool (NextReader::*event)() noexcept) {
  return [event](NextReader& next) { return (next.*event)(); };
}

template <typename State>
struct Transition {
  State to;
  bool asks = false;
};
template <typename State>
struct Row {
  State from;
  std::vector<Event> way;                               // from a new object to `from`
  std::vector<std::optional<Transition<State>>> table;  // for each event; none: a bug
};

// Walks every transition of one part, in an object of its own. The other parts stay as they were.
template <typename State, typename Read>
void walk(const std::vector<Event>& events, const std::vector<Row<State>>& rows, Read read) {
  for (const Row<State>& row : rows) {
    ASSERT_EQ(row.table.size(), events.size());
    for (std::size_t column = 0; column < events.size(); ++column) {
      if (!row.table[column]) {
        continue;
      }
      NextReader next;
      for (const Event& step : row.way) {
        (void)step(next);
      }
      ASSERT_EQ(read(next), row.from);
      const bool asks = events[column](next);
      EXPECT_EQ(read(next), row.table[column]->to) << static_cast<int>(row.from) << ' ' << column;
      EXPECT_EQ(asks, row.table[column]->asks) << static_cast<int>(row.from) << ' ' << column;
    }
  }
}

const std::array kAllEvents = {
    quiet(&NextReader::link_takes),  quiet(&NextReader::leave_to_app),   quiet(&NextReader::take_back),
    asking(&NextReader::leave_rest), quiet(&NextReader::answer),         quiet(&NextReader::begin_read),
    quiet(&NextReader::stop),        asking(&NextReader::report_credit), quiet(&NextReader::report),
    quiet(&NextReader::read_some),   quiet(&NextReader::read_all),       quiet(&NextReader::end)};

TEST(NextReader, ANewConnectionIsTheLinks) {
  const NextReader next;
  EXPECT_EQ(next.holder(), Holder::link);
  EXPECT_EQ(next.watcher(), Watcher::poller);
  EXPECT_EQ(next.pause(), Pause::none);
  EXPECT_EQ(next.kernel(), Kernel::readable);
}

TEST(NextReader, TheHolderChangesAsTheTableSays) {
  const Event takes = quiet(&NextReader::link_takes);
  const Event gives = quiet(&NextReader::link_gives);
  using To = Transition<Holder>;
  walk<Holder>({takes, gives},
               {{Holder::link, {}, {To{Holder::link}, To{Holder::threads}}},
                {Holder::threads, {gives}, {To{Holder::link}, std::nullopt}}},
               [](const NextReader& next) { return next.holder(); });
}

TEST(NextReaderDeathTest, ABatonThatTheLinkDoesNotHoldIsNotGiven) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  NextReader next;
  next.link_gives();
  EXPECT_DEATH(next.link_gives(), "internal error");
}

TEST(NextReader, TheWatcherChangesAsTheTableSays) {
  const Event leaves = quiet(&NextReader::leave_to_app);
  const Event takes_back = quiet(&NextReader::take_back);
  const Event rest = asking(&NextReader::leave_rest);
  const Event answers = quiet(&NextReader::answer);
  using To = Transition<Watcher>;
  walk<Watcher>(
      {leaves, takes_back, rest, answers},
      {{Watcher::poller, {}, {To{Watcher::app}, To{Watcher::poller}, To{Watcher::asked, true}, To{Watcher::poller}}},
       {Watcher::app, {leaves}, {To{Watcher::app}, To{Watcher::poller}, To{Watcher::app}, To{Watcher::app}}},
       {Watcher::asked, {rest}, {To{Watcher::app}, To{Watcher::asked}, To{Watcher::asked}, To{Watcher::poller}}}},
      [](const NextReader& next) { return next.watcher(); });
}

TEST(NextReader, ThePauseChangesAsTheTableSays) {
  const Event begins = quiet(&NextReader::begin_read);
  const Event stops = quiet(&NextReader::stop);
  const Event credit = asking(&NextReader::report_credit);
  using To = Transition<Pause>;
  walk<Pause>({begins, stops, credit},
              {{Pause::none, {}, {To{Pause::none}, To{Pause::stalled}, To{Pause::none}}},
               {Pause::stalled, {stops}, {To{Pause::none}, To{Pause::stalled}, To{Pause::resumed, true}}},
               {Pause::resumed, {stops, credit}, {To{Pause::none}, To{Pause::stalled}, To{Pause::resumed}}}},
              [](const NextReader& next) { return next.pause(); });
}

TEST(NextReader, TheKernelsHintChangesAsTheTableSays) {
  const Event reports = quiet(&NextReader::report);
  const Event some = quiet(&NextReader::read_some);
  const Event all = quiet(&NextReader::read_all);
  const Event ends = quiet(&NextReader::end);
  using To = Transition<Kernel>;
  const std::vector<std::optional<To>> row{To{Kernel::readable}, To{Kernel::readable}, To{Kernel::drained},
                                           To{Kernel::drained}};
  walk<Kernel>({reports, some, all, ends}, {{Kernel::readable, {}, row}, {Kernel::drained, {all}, row}},
               [](const NextReader& next) { return next.kernel(); });
}

// Each event changes the state of one part. The parts are walked in their tables' order.
TEST(NextReader, ThePartsDoNotTouchEachOther) {
  const std::array first = {0U, 1U, 5U, 8U, 12U};  // the events of each part in kAllEvents
  const auto states = [](const NextReader& next) {
    return std::array{static_cast<int>(next.holder()), static_cast<int>(next.watcher()), static_cast<int>(next.pause()),
                      static_cast<int>(next.kernel())};
  };
  for (std::size_t part = 0; part < 4; ++part) {
    NextReader next;
    next.link_gives();
    next.leave_to_app();
    next.stop();
    next.read_all();
    auto before = states(next);
    for (std::size_t event = first[part]; event < first[part + 1]; ++event) {
      (void)kAllEvents[event](next);
      auto after = states(next);
      after[part] = before[part];
      EXPECT_EQ(after, before) << "event " << event;
    }
  }
}

}  // namespace
}  // namespace weft::msg
