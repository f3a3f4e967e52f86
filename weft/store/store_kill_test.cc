// SPDX-License-Identifier: MIT
// One store that is killed again and again at a random write, while publishers resend and a worker works.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/store/store.h"
#include "weft/store/test_store.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

enum class Kill {
  process,  // the next life finds every write
  power,    // the next life finds the flushed bytes, and some of the rest, chosen by the seed
};

StreamSettings kept_as(Keep keep, Survives survives, std::uint64_t bytes_max = 1 << 20) {
  StreamSettings settings;
  settings.keep = keep;
  settings.survives = survives;
  settings.bytes_max = bytes_max;
  settings.when_full = default_when_full(keep);
  return settings;
}

// Publisher: gives numbered messages to one stream, each with an id of its own. A message without an answer leaves
// again, before the next one.
struct Publisher {
  std::string stream;
  std::string name;
  std::uint64_t next = 1;                // the number of the message without an answer
  std::optional<std::uint64_t> given{};  // its sequence, in the turn under way

  [[nodiscard]] std::string text() const { return name + "-" + std::to_string(next) + std::string(400, '.'); }
  [[nodiscard]] std::string id() const { return name + "-" + std::to_string(next); }
};

// Counter: a key whose value a program raises by one, each time on the condition that it is the newest.
struct Counter {
  std::string key;
  std::uint64_t value = 0;     // acknowledged
  std::uint64_t revision = 0;  // of it
  std::optional<std::uint64_t> given{};
};

// KilledStore: the store, its users, and their books.
// Invariants that each life checks:
//   1. An acknowledged message is read, at its sequence, until retention takes it; retention only goes on.
//   2. The messages of a publisher are there once, in its order.
//   3. The value of a key is the acknowledged one, or the one under way.
//   4. A message with a delay is there from its time on, once, in the order of its publisher.
//   5. A job whose acknowledgement was committed is not delivered again, and none is stored again.
class KilledStore {
 public:
  KilledStore(Kill kill, std::uint64_t seed) : kill_(kill), random_(seed) {
    publishers_ = {{"log", "a"}, {"log", "b"}, {"log", "c"}, {"work", "j"}, {"later", "d"}};
    if (kill_ == Kill::process) {
      publishers_.push_back({"process", "p"});
    }
    for (const char* key : {"k.1", "k.2", "k.3"}) {
      counters_.push_back({key});
    }
  }

  void run(std::uint64_t kills) {
    for (kills_ = 1; kills_ <= kills && !testing::Test::HasFatalFailure(); ++kills_) {
      SCOPED_TRACE("kill " + std::to_string(kills_));
      disk_.die_at(1 + random_() % kOperationsMax);
      live(64);
      ASSERT_TRUE(disk_.died());
      store_.reset();
      kill_ == Kill::process ? disk_.restart() : disk_.lose_power(random_() % 4 == 0 ? 0 : random_());
    }
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    live(20);  // the last life ends by itself
    ASSERT_NE(store_, nullptr);
    for (bool worked = true; worked && !testing::Test::HasFatalFailure();) {
      now_ += 1s;  // unacknowledged messages are due again
      worked = work();
      ASSERT_TRUE(end_turn());
    }
    for (std::uint64_t job = 1; job < publishers_[3].next; ++job) {
      const std::string name = "j-" + std::to_string(job);
      EXPECT_TRUE(done_.contains(name) || maybe_done_.contains(name)) << name << " was never delivered";
    }
    check_delayed();
    EXPECT_EQ(store_->find("later")->delayed().count(), 0U);
    EXPECT_GT(publishers_[4].next, kills / 4);
    EXPECT_GT(publishers_[0].next, kills / 4);  // the lives were long enough to publish
    EXPECT_GT(counters_[0].value, kills / 8);
    EXPECT_GT(done_.size(), kills / 4);
    if (kills >= 500) {  // a sanitizer does a tenth
      EXPECT_GT(first_["log"], 1U) << "retention took nothing";
    }
  }

 private:
  static constexpr std::uint64_t kOperationsMax = 100;  // of a life

  [[nodiscard]] Now now() const { return at(now_); }

  [[nodiscard]] bool open() {
    auto opened = Store::open({"store.db", disk_.name()}, now());
    if (!opened) {
      EXPECT_TRUE(disk_.died()) << opened.error().message();
      return false;
    }
    store_ = *std::move(opened);
    const auto made = [&]() -> Result<void> {
      WEFT_TRY(store_->declare("log", kept_as(Keep::log, Survives::power, 64 * 1024), false, now()));
      WEFT_TRY(store_->declare("process", kept_as(Keep::log, Survives::process, 64 * 1024), false, now()));
      WEFT_TRY(store_->declare("later", kept_as(Keep::log, Survives::power, 64 * 1024), false, now()));
      WEFT_TRY(store_->declare("kv", kept_as(Keep::latest, Survives::power), false, now()));
      StoredStream* work = WEFT_TRY(store_->declare("work", kept_as(Keep::work, Survives::power), false, now()));
      ConsumerSettings worker;
      worker.ack_wait = 5ms;  // a turn: most lives get the unfinished jobs of an earlier one
      WEFT_TRY(store_->consumer(*work, "w", worker, false));
      const auto committed = store_->commit(now());
      return committed.disk == Errc::ok ? Result<void>() : Result<void>(committed.disk);
    }();
    EXPECT_TRUE(made || disk_.died()) << made.error().message();
    return made.has_value();
  }

  // Turns until the store dies.
  void live(int turns) {
    if (!open()) {
      return;
    }
    check();
    for (int turn = 0; turn < turns && !testing::Test::HasFatalFailure(); ++turn) {
      now_ += 5ms;
      publish();
      count();
      (void)work();
      if (!end_turn()) {
        return;
      }
    }
  }

  void publish() {
    for (Publisher& each : publishers_) {
      each.given.reset();
      const std::string text = each.text();
      const std::string id = each.id();
      if (random_() % 4 == 0) {
        continue;  // unanswered ones leave later
      }
      const auto appended =
          store_->append(*store_->find(each.stream),
                         {.topic = "t.a", .id = id, .body = as_bytes(text), .delay = delay_of(each)}, {}, now());
      ASSERT_TRUE(appended || disk_.died()) << appended.error().message();
      if (appended) {
        each.given = appended->sequence;
      }
    }
  }

  void count() {
    for (Counter& each : counters_) {
      each.given.reset();
      if (random_() % 2 == 0) {
        continue;
      }
      const std::string text = std::to_string(each.value + 1);
      const std::string id = each.key + ":" + text;
      const auto appended = store_->append(*store_->find("kv"), {.topic = each.key, .id = id, .body = as_bytes(text)},
                                           {.last = each.revision}, now());
      ASSERT_TRUE(appended || disk_.died()) << each.key << ": " << appended.error().message();
      if (appended) {
        each.given = appended->sequence;
      }
    }
  }

  // Returns true if a job was there.
  bool work() {
    StoredStream& stream = *store_->find("work");
    StoredConsumer& worker = *stream.find_consumer("w");
    bool worked = false;
    for (int i = 0; i < 3; ++i) {
      const auto delivery = store_->next_delivery(stream, worker, now());
      EXPECT_TRUE(delivery || disk_.died()) << delivery.error().message();
      if (!delivery || !*delivery) {
        break;
      }
      worked = true;
      const std::string job(as_text((*delivery)->read.message.body));
      EXPECT_FALSE(done_.contains(job.substr(0, job.find('.')))) << job << " was done";
      if (random_() % 8 != 0) {  // else it comes again after ack_wait
        EXPECT_TRUE(store_->ack(worker, (*delivery)->read.message.sequence, true));
        doing_.insert(job.substr(0, job.find('.')));
      }
    }
    return worked;
  }

  // Returns false if the store died.
  bool end_turn() {
    const auto committed = store_->commit(now());
    const bool whole = committed.disk == Errc::ok;
    EXPECT_TRUE(whole || disk_.died()) << committed.disk.message();
    if (whole) {
      committed_ = now_;
      done_.merge(doing_);
      for (Publisher& each : publishers_) {
        if (each.given) {
          if (delay_of(each) != 0ns) {
            due_[each.next] = now_ + delay_of(each);
          } else {
            const auto [at, fresh] = books_[each.stream].try_emplace(*each.given, each.text());
            EXPECT_TRUE(fresh || at->second == each.text()) << each.text() << " has the sequence of " << at->second;
          }
          ++each.next;
        }
      }
      for (Counter& each : counters_) {
        if (each.given) {
          each.revision = *each.given;
          ++each.value;
        }
      }
    }
    maybe_done_.merge(doing_);
    doing_.clear();
    for (Publisher& each : publishers_) {
      each.given.reset();
    }
    for (Counter& each : counters_) {
      each.given.reset();
    }
    return whole;
  }

  void check() {
    for (const char* name : {"log", "process"}) {
      if (kill_ == Kill::process || std::string_view(name) == "log") {
        check_log(name);
      }
    }
    check_delayed();
    StoredStream& kv = *store_->find("kv");
    for (const Counter& each : counters_) {
      const auto newest = kv.newest_of(each.key, now().wall);
      ASSERT_TRUE(newest) << newest.error().message();
      const std::string value = *newest ? std::string(as_text((*newest)->message.body)) : "0";
      EXPECT_TRUE(value == std::to_string(each.value) || value == std::to_string(each.value + 1))
          << each.key << " has " << value << " after " << each.value;
    }
  }

  void check_log(const std::string& name) {
    StoredStream& stream = *store_->find(name);
    std::map<std::uint64_t, std::string>& book = books_[name];
    ASSERT_GE(stream.first(), first_[name]) << "retention went back";
    first_[name] = stream.first();
    book.erase(book.begin(), book.lower_bound(stream.first()));
    std::map<std::uint64_t, std::string> there;
    StoredReader reader = *stream.open_reader("", From::first(), now().wall);
    for (auto message = stream.read(reader, now().wall); message && *message;
         message = stream.read(reader, now().wall)) {
      there.emplace((*message)->message.sequence, as_text((*message)->message.body));
    }
    ASSERT_EQ(there.size(), stream.next() - stream.first()) << name << " has a gap";
    for (const auto& [sequence, text] : book) {
      ASSERT_TRUE(there.contains(sequence)) << name << " lost " << text;
      ASSERT_EQ(there[sequence], text);
    }
    std::map<char, std::uint64_t> last;  // of each publisher
    for (const auto& [sequence, text] : there) {
      const std::uint64_t number = std::stoull(text.substr(2));
      ASSERT_TRUE(last[text[0]] == 0 || number == last[text[0]] + 1) << text << " comes after " << last[text[0]];
      last[text[0]] = number;
    }
    for (const Publisher& each : publishers_) {
      if (each.stream == name && last.contains(each.name[0])) {
        ASSERT_LE(last[each.name[0]], each.next);
        ASSERT_GE(last[each.name[0]] + 1, each.next);
      }
    }
    book = std::move(there);  // messages that a life has read, the next one reads, too
  }

  void check_delayed() {
    StoredStream& stream = *store_->find("later");
    StoredReader reader = *stream.open_reader("", From::first(), now().wall);
    std::uint64_t last = 0;
    for (auto message = stream.read(reader, now().wall); message && *message;
         message = stream.read(reader, now().wall)) {
      const std::string text(as_text((*message)->message.body));
      const std::uint64_t number = std::stoull(text.substr(2));
      ASSERT_TRUE(last == 0 || number == last + 1) << text << " comes after " << last;
      last = number;
    }
    ASSERT_GE(last, last_delayed_) << "a message went back";
    last_delayed_ = last;
    ASSERT_LE(last, publishers_[4].next);
    // The last turn moved those that were due before it. An answer that was lost was for a time before the last one.
    for (const auto& [number, due] : due_) {
      ASSERT_TRUE(number <= last || due > committed_) << number << " is late";
    }
  }
  [[nodiscard]] static Duration delay_of(const Publisher& publisher) {
    return publisher.stream == "later" ? Duration(20ms) : Duration(0);  // some turns: most lives find some waiting
  }

  const Kill kill_;
  std::mt19937_64 random_;
  TestDisk disk_;
  std::unique_ptr<Store> store_;
  Duration now_{1s};
  std::uint64_t kills_ = 0;
  std::vector<Publisher> publishers_;
  std::vector<Counter> counters_;
  std::map<std::string, std::map<std::uint64_t, std::string>> books_;  // by stream: acknowledged, or read
  std::map<std::string, std::uint64_t> first_;
  std::map<std::uint64_t, Duration> due_;  // of messages with a delay, by number
  std::uint64_t last_delayed_ = 0;         // that was read
  Duration committed_{};                   // the time of the last turn that was
  std::set<std::string> doing_;            // acknowledged in the turn under way
  std::set<std::string> done_;
  std::set<std::string> maybe_done_;  // acknowledged in a turn whose commit failed
};

constexpr std::uint64_t kKills = kSanitized ? 50 : 500;  // the suite StoreCrash has as many again, at each write

TEST(StoreKill, KillsOfTheProcessLoseDoubleAndReorderNothing) { KilledStore(Kill::process, 1).run(kKills); }
TEST(StoreKill, LossesOfPowerLoseDoubleAndReorderNothing) { KilledStore(Kill::power, 2).run(kKills); }
TEST(StoreKillMany, FiftyThousandKillsOfTheProcess) { KilledStore(Kill::process, 3).run(100 * kKills); }
TEST(StoreKillMany, FiftyThousandLossesOfPower) { KilledStore(Kill::power, 4).run(100 * kKills); }

}  // namespace
}  // namespace weft::store

#endif
