// SPDX-License-Identifier: MIT
// How messages are sent between cores: lanes, the doorbell, sleep, and waiting for room, as core.cc puts them together.
#include "tests/support/model_sites.h"
#include "weft/rt/doorbell.h"
#include "weft/rt/lane.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

struct ModelLane {
  using Where = model::Where;
  static void light_fence(Where where = Where::current()) { model::light_fence(where); }
  static void heavy_fence(Where where = Where::current()) { model::heavy_fence(where); }
};

// A number that is watched for races where it lies.
class Value {
 public:
  explicit Value(int number) noexcept : number_(number) { model::note_write(this); }
  Value(Value&& other) noexcept : Value(other.take()) {}
  int take() noexcept {
    model::note_write(this);
    return std::exchange(number_, 0);
  }

 private:
  int number_;
};
using TestLane = Lane<Value, ModelLane>;

constexpr std::uint64_t kRoom = 1u << 8;

struct Core {
  Doorbell doorbell;
  model::Event event;

  void ring(std::uint64_t bits) {
    if (doorbell.ring(bits)) {
      event.signal();
    }
  }
  void sleep() {
    if (doorbell.try_sleep()) {
      event.wait();
    }
  }
};

// One core's sending side.
struct Sender {
  Core& target;
  TestLane& lane;
  std::uint64_t bit;
  std::size_t capacity = 4;
  bool unrung = false;

  bool has_room() {
    if (lane.outgoing() == nullptr) {
      model::require(lane.open(capacity), "no memory");
    }
    return lane.outgoing()->has_room();
  }
  void push(int number, bool may_ring) {
    model::require(lane.outgoing()->try_push(Value(number)), "a lane with room is full");
    unrung = true;
    if (target.doorbell.sleeper() || (may_ring && !target.doorbell.shows(bit))) {
      ring();
    }
  }
  void ring() {
    unrung = false;
    target.ring(bit);
  }
  void end_of_turn() {
    if (unrung) {
      ring();
    }
  }
};

// What is in the lane, at most `most`, in order from `seen` on.
void receive(TestLane& lane, int& seen, std::size_t most = 8) {
  auto* const ring = lane.incoming();
  if (ring == nullptr) {
    return;
  }
  const auto run = ring->peek(most);
  for (Value& value : run) {
    const int number = value.take();
    model::require(number == seen + 1, "out of order");
    seen = number;
  }
  ring->consume(run.size());
}

// The first message of a turn rings, the second waits for the turn's end, unless the receiver is seen asleep.
void a_turn_of_two_and_a_sleeper() {
  Core core;
  TestLane lane;
  int seen = 0;
  model::run_threads(
      [&] {
        Sender sender{core, lane, 1};
        (void)sender.has_room();
        sender.push(1, true);
        sender.push(2, false);
        sender.end_of_turn();
      },
      [&] {
        while (seen < 2) {
          if ((core.doorbell.take() & 1) != 0) {
            receive(lane, seen);
          } else {
            core.sleep();
          }
        }
      });
}

void two_turns_and_a_sleeper() {
  Core core;
  TestLane lane;
  int seen = 0;
  model::run_threads(
      [&] {
        Sender sender{core, lane, 1};
        (void)sender.has_room();
        sender.push(1, true);
        sender.end_of_turn();
        sender.push(2, true);
        sender.end_of_turn();
      },
      [&] {
        while (seen < 2) {
          if ((core.doorbell.take() & 1) != 0) {
            receive(lane, seen);
          } else {
            core.sleep();
          }
        }
      });
}

// More lanes than bits: who finds a bit looks at every lane of it, also at one that is just being opened.
void two_senders_of_one_bit_and_a_sleeper() {
  Core core;
  TestLane lanes[2];
  int seen[2] = {};
  const auto send = [&](int who) {
    Sender sender{core, lanes[who], 1};
    (void)sender.has_room();
    sender.push(1, true);
    sender.end_of_turn();
  };
  model::run_threads([&] { send(0); }, [&] { send(1); },
                     [&] {
                       while (seen[0] + seen[1] < 2) {
                         if ((core.doorbell.take() & 1) != 0) {
                           receive(lanes[0], seen[0]);
                           receive(lanes[1], seen[1]);
                         } else {
                           core.sleep();
                         }
                       }
                     });
}

// Two threads that sleep whenever there is nothing for them to do: one that has more than the lane holds, and one that
// receives.
void a_sender_waits_for_room() {
  Core from;
  Core to;
  TestLane lane;
  int seen = 0;
  model::run_threads(
      [&] {
        Sender sender{to, lane, 1, 1};
        for (int number = 1; number <= 2; ++number) {
          while (!sender.has_room()) {
            lane.want_room();
            if (!sender.has_room()) {
              sender.end_of_turn();
              while ((from.doorbell.take() & kRoom) == 0) {
                from.sleep();
              }
            }
          }
          sender.push(number, true);
        }
        sender.end_of_turn();
      },
      [&] {
        while (seen < 2) {
          if ((to.doorbell.take() & 1) != 0) {
            receive(lane, seen);
            if (lane.room_was_wanted()) {
              from.ring(kRoom);
            }
          } else {
            to.sleep();
          }
        }
      });
}

constexpr model::Scenario kScenarios[] = {
    {"a_turn_of_two_and_a_sleeper", a_turn_of_two_and_a_sleeper, {.preemptions = 2}},
    {"two_turns_and_a_sleeper", two_turns_and_a_sleeper, {.preemptions = 2}},
    {"two_senders_of_one_bit_and_a_sleeper", two_senders_of_one_bit_and_a_sleeper, {.preemptions = 1}},
    {"a_sender_waits_for_room", a_sender_waits_for_room, {.preemptions = 2}},
};

TEST(DoorbellModel, StrandsNoMessageAndNoSender) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(DoorbellModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/doorbell.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 7u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

TEST(LaneModel, NeedsEveryFenceAndMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/lane.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 9u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
