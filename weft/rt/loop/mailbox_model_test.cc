// SPDX-License-Identifier: MIT
#include <vector>

#include "tests/support/model_sites.h"
#include "weft/rt/loop/mailbox.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

// The machine's operations, in the model.
struct ModelMail {
  using Where = model::Where;
  using Mutex = model::Mutex;
  // Like a poller: work before the wake() that ended the sleep is visible to the sleeper.
  struct Sleep {
    model::Event event;
    sync::Atomic<int> wakes{0};
    void wake() {
      wakes.fetch_add(1, std::memory_order_release);
      event.signal();
    }
    void wait() {
      event.wait();
      wakes.fetch_add(0, std::memory_order_acquire);
    }
  };
  static void full_fence(Where where = Where::current()) { model::fence(std::memory_order_seq_cst, where); }
};
using Mail = BasicMailbox<int, ModelMail>;

// A loop, and the outcome of the items.
struct Place {
  static constexpr int kItems = 3;

  void post(int item) {
    effects[item] = 1;
    posted[item] = mail.post(item) == Mail::Post::done;
  }
  void take(std::vector<int>& items, int (&count)[kItems]) {
    for (const int item : items) {
      model::require(effects[item] == 1, "an item comes before what was written before its post");
      ++count[item];
    }
    items.clear();
  }
  // As a loop without tasks: turns until it sees the stop.
  void run() {
    std::vector<int> items;
    while (!mail.see_stop()) {
      if (mail.open(items)) {
        take(items, ran);
        continue;
      }
      mail.announce(false);
      if (!mail.has_work()) {
        sleep.wait();
      }
      mail.end_sleep();
    }
    mail.open(items);
    take(items, ran);
    mail.close(items);
    take(items, dropped);
  }
  void check() const {
    for (int item = 0; item < kItems; ++item) {
      model::require(ran[item] + dropped[item] == (posted[item] ? 1 : 0), "an item is lost, or comes twice");
    }
  }

  ModelMail::Sleep sleep;
  Mail mail{sleep};
  sync::Plain<int> effects[kItems] = {0, 0, 0};
  bool posted[kItems] = {};
  int ran[kItems] = {};
  int dropped[kItems] = {};
};

void what_was_posted_before_the_stop_runs() {
  Place place;
  model::run_threads([&] { place.run(); },
                     [&] {
                       place.post(0);
                       place.mail.stop();
                     });
  place.check();
  model::require(place.ran[0] == 1, "an item that was posted before the stop did not run");
}

void a_post_beside_the_stop_runs_or_is_dropped_or_refused() {
  Place place;
  model::run_threads([&] { place.run(); }, [&] { place.post(0), place.post(1); }, [&] { place.mail.stop(); });
  place.check();
}

void two_posts_end_one_sleep() {
  Place place;
  model::run_threads(
      [&] {
        std::vector<int> items;
        while (place.ran[0] + place.ran[1] < 2) {
          if (place.mail.open(items)) {
            place.take(items, place.ran);
            continue;
          }
          place.mail.announce(false);
          if (!place.mail.has_work()) {
            place.sleep.wait();
          }
          place.mail.end_sleep();
        }
      },
      [&] { place.post(0); }, [&] { place.post(1); });
  place.check();
}

// Work of another part, that the loop checks for itself: coroutines from other threads, a hook.
template <typename Wake>
void work_of_another_part(Wake wake) {
  Place place;
  sync::Atomic<bool> work{false};
  model::run_threads(
      [&] {
        while (!work.load(std::memory_order_relaxed)) {
          place.mail.announce(false);
          if (!work.load(std::memory_order_relaxed)) {
            place.sleep.wait();
          }
          place.mail.end_sleep();
        }
      },
      [&] {
        work.store(true, std::memory_order_relaxed);
        wake(place.mail);
      });
}
void work_of_another_part_ends_a_sleep() {
  work_of_another_part([](Mail& mail) { mail.wake_sleeper(); });
}
void a_nudge_ends_a_deep_sleep() {
  work_of_another_part([](Mail& mail) { mail.nudge(); });
}

constexpr model::Scenario kScenarios[] = {
    {"what_was_posted_before_the_stop_runs", what_was_posted_before_the_stop_runs, {.preemptions = 3}},
    {"a_post_beside_the_stop_runs_or_is_dropped_or_refused",
     a_post_beside_the_stop_runs_or_is_dropped_or_refused,
     {.preemptions = 2}},
    {"two_posts_end_one_sleep", two_posts_end_one_sleep, {.preemptions = 2}},
    {"work_of_another_part_ends_a_sleep", work_of_another_part_ends_a_sleep, {}},
    {"a_nudge_ends_a_deep_sleep", a_nudge_ends_a_deep_sleep, {}},
};

TEST(MailboxModel, LosesNoItemAndNoStop) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

constexpr model::Harmless kHarmless[] = {
    {"stop store release -> relaxed", "the fence of the post() before releases, too; free on x86"},
};

TEST(MailboxModel, NeedsEveryFenceAndMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/loop/mailbox.h", kScenarios, kHarmless);
  EXPECT_EQ(audit.sites, 16u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
