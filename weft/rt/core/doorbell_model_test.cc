// SPDX-License-Identifier: MIT
// Models the sending of messages between cores: lanes and their senders, the doorbell, sleep, and waiting for room.
#include "tests/support/model_sites.h"
#include "weft/rt/core/doorbell.h"
#include "weft/rt/core/lane.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

struct ModelLane {
  using Where = model::Where;
  static void light_fence(Where where = Where::current()) { model::light_fence(where); }
  static void heavy_fence(Where where = Where::current()) { model::heavy_fence(where); }
};

// A number whose accesses the model checks for races.
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
  Doorbell bell;
  model::Event event;

  [[nodiscard]] const Doorbell& doorbell() const noexcept { return bell; }
  bool ring(std::uint64_t bits) {
    const bool asleep = bell.ring(bits);
    if (asleep) {
      event.signal();
    }
    return asleep;
  }
  void sleep() {
    if (bell.try_sleep()) {
      event.wait();
    }
  }
};
using Sender = LaneSender<Core, Value, ModelLane>;

bool try_post(Sender& sender, int number, std::uint64_t job) {
  Value* const cell = sender.claim();
  if (cell != nullptr) {
    std::construct_at(cell, number);
    (void)sender.commit(job);
  }
  return cell != nullptr;
}
void post(Sender& sender, int number, std::uint64_t job) {
  model::require(try_post(sender, number, job), "a lane with room is full");
}

// Receives at most `most` messages from the lane, which must come in order after `seen`.
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

// Runs a core that takes its messages when its bell was rung, and sleeps when it was not, until it has seen two.
template <typename Receive, typename Seen>
void wait_for_two(Core& core, Receive take, Seen seen) {
  while (seen() < 2) {
    if ((core.bell.take() & 1) != 0) {
      take();
    } else {
      core.sleep();
    }
  }
}

// The first message of a turn is shown and rings. The second waits for the turn's end, unless the sender sees the
// receiver asleep.
void a_turn_of_two_and_a_sleeper() {
  Core core;
  TestLane lane;
  int seen = 0;
  model::run_threads(
      [&] {
        Sender sender(core, lane, 1, 4);
        post(sender, 1, 1);
        post(sender, 2, 1);
        (void)sender.end_turn();
      },
      [&] { wait_for_two(core, [&] { receive(lane, seen); }, [&] { return seen; }); });
}

void two_turns_and_a_sleeper() {
  Core core;
  TestLane lane;
  int seen = 0;
  model::run_threads(
      [&] {
        Sender sender(core, lane, 1, 4);
        post(sender, 1, 1);
        (void)sender.end_turn();
        post(sender, 2, 2);
        (void)sender.end_turn();
      },
      [&] { wait_for_two(core, [&] { receive(lane, seen); }, [&] { return seen; }); });
}

// More lanes than bits: a receiver that takes a bit visits every lane of it, also one that is just being opened.
void two_senders_of_one_bit_and_a_sleeper() {
  Core core;
  TestLane lanes[2];
  int seen[2] = {};
  const auto send = [&](int who) {
    Sender sender(core, lanes[who], 1, 4);
    post(sender, 1, 1);
    (void)sender.end_turn();
  };
  model::run_threads([&] { send(0); }, [&] { send(1); },
                     [&] {
                       wait_for_two(
                           core,
                           [&] {
                             receive(lanes[0], seen[0]);
                             receive(lanes[1], seen[1]);
                           },
                           [&] { return seen[0] + seen[1]; });
                     });
}

// A receiver that does not wait for the bell sees no message, the first, or both, and each message that it sees is
// whole.
void a_job_of_two_and_a_look() {
  Core core;
  TestLane lane;
  int seen = 0;
  model::run_threads(
      [&] {
        Sender sender(core, lane, 1, 4);
        post(sender, 1, 1);
        post(sender, 2, 1);
        model::require(sender.hides(), "the second message of a job is shown for itself");
        sender.show();
        model::require(!sender.hides(), "something is hidden behind show()");
      },
      [&] {
        receive(lane, seen);
        receive(lane, seen);
      });
  receive(lane, seen);
  model::require(seen == 2, "a message is not shown");
}

// Two threads that sleep whenever they have no work: one that sends more than the lane holds, and one that receives.
void a_sender_waits_for_room() {
  Core from;
  Core to;
  TestLane lane;
  int seen = 0;
  model::run_threads(
      [&] {
        Sender sender(to, lane, 1, 1);
        for (int number = 1; number <= 2; ++number) {
          while (!try_post(sender, number, 1)) {
            if (!sender.wait_for_room()) {
              (void)sender.end_turn();
              while ((from.bell.take() & kRoom) == 0) {
                from.sleep();
              }
            }
          }
        }
        (void)sender.end_turn();
      },
      [&] {
        wait_for_two(
            to,
            [&] {
              receive(lane, seen);
              if (lane.room_was_wanted()) {
                (void)from.ring(kRoom);
              }
            },
            [&] { return seen; });
      });
}

constexpr model::Scenario kScenarios[] = {
    {"a_turn_of_two_and_a_sleeper", a_turn_of_two_and_a_sleeper, {.preemptions = 2}},
    {"a_job_of_two_and_a_look", a_job_of_two_and_a_look, {.preemptions = 2}},
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
  const model::Audit audit = model::weaken_every_order("rt/core/doorbell.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 7u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

TEST(LaneModel, NeedsEveryFenceAndMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/core/lane.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 9u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
