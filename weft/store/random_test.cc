// SPDX-License-Identifier: MIT
// A store beside a small, slow one in memory, under random operations, restarts and faults. A failure prints its seed.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "weft/store/test_store.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

struct ModelMessage {
  std::string topic;
  std::string body;
  bool erased = false;
  Duration time{};
  Duration expires = Duration::max();
};

// ModelStream: the model of a stream. All of it is in memory, and nothing of it is in blocks.
struct ModelStream {
  StreamSettings settings;
  std::map<std::uint64_t, ModelMessage> messages{};  // by sequence
  std::map<std::uint64_t, ModelMessage> gone{};      // no consumer waits for them; a loss of power may bring them back
  std::uint64_t next = 1;
  struct Id {
    std::uint64_t sequence;
    Duration time;
  };
  std::map<std::string, Id> ids{};
  Duration newest{};
  struct Waiting {
    ModelMessage message;
    Duration lives;
    bool kept = false;  // by a commit
  };
  std::multimap<Duration, Waiting> waiting{};     // by the time at which each is due
  std::map<std::string, Duration> waiting_ids{};  // the times of their publishes
  std::set<std::uint64_t> acked{};
  std::set<std::uint64_t> kept_acked{};   // those of `acked` that a commit kept
  std::set<std::uint64_t> maybe_acked{};  // acknowledged before a crash, and the outcome is unknown

  // The newest message of a topic; null: there is none, or it is over.
  [[nodiscard]] const std::pair<const std::uint64_t, ModelMessage>* last_of(const std::string& topic,
                                                                            Duration now) const {
    const auto found = std::find_if(messages.rbegin(), messages.rend(),
                                    [&topic](const auto& each) { return each.second.topic == topic; });
    return found == messages.rend() || found->second.expires <= now ? nullptr : &*found;
  }
  std::uint64_t append(const ModelMessage& message, const std::string& id) {
    messages.emplace(next, message);
    if (!id.empty()) {
      ids[id] = {next, message.time};
    }
    newest = message.time;
    return next++;
  }
  // A commit moves the messages of earlier commits that are due.
  void move_due(Duration now) {
    for (auto at = waiting.begin(); at != waiting.end() && at->first <= now;) {
      if (!at->second.kept) {
        ++at;
        continue;
      }
      auto [message, lives, kept] = std::move(at->second);
      at = waiting.erase(at);
      message.time = std::max(now, newest);
      message.expires = lives == 0ns ? Duration::max() : message.time + lives;
      append(message, {});
    }
  }
  // A commit leaves the newest values of each topic.
  void keep() {
    for (auto& [due, message] : waiting) {
      message.kept = true;
    }
    if (settings.keep != Keep::latest) {
      return;
    }
    std::map<std::string, std::uint32_t> count;
    for (auto at = messages.end(); at != messages.begin();) {
      --at;
      if (++count[at->second.topic] > settings.history) {
        at = messages.erase(at);
      }
    }
  }
  void crash() {
    std::set_difference(acked.begin(), acked.end(), kept_acked.begin(), kept_acked.end(),
                        std::inserter(maybe_acked, maybe_acked.end()));
    acked = kept_acked;
  }
  void purge_before(std::uint64_t sequence) {
    messages.erase(messages.begin(), messages.lower_bound(sequence));
    gone.erase(gone.begin(), gone.lower_bound(sequence));
  }
  // Whether the stream may have dropped a message without a report: no consumer waits for it, or it is too old.
  [[nodiscard]] bool may_be_gone(std::uint64_t sequence, Duration now) const {
    return settings.keep == Keep::work ? acked.contains(sequence) || maybe_acked.contains(sequence)
                                       : settings.age_max != 0ns && messages.at(sequence).time + settings.age_max < now;
  }
};
using Model = std::map<std::string, ModelStream>;

class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : random_(seed) { reopen(); }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      now_ += std::chrono::milliseconds(pick(30) == 0 ? pick(1500) : pick(20));
      step();
    }
    disk_.set_room(~std::uint64_t{0});
    commit();
    drain();
  }

 private:
  static constexpr const char* kNames[] = {"log", "aging", "work", "latest", "memory", "ending"};

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  [[nodiscard]] Now now() const { return at(now_); }

  void reopen() {
    store_.reset();
    disk_.restart();
    auto opened = Store::open({"store.db", disk_.name(), 0, 256 * 1024}, now());
    ASSERT_TRUE(opened) << opened.error().message();
    store_ = *std::move(opened);
    durable_.erase("memory");
    for (auto& [name, stream] : durable_) {
      stream.crash();
    }
    for (const char* name : kNames) {
      declare(name);
    }
    turn_ = durable_;
    outstanding_.clear();
    for (auto& [name, stream] : turn_) {
      compare(name, stream);
    }
    durable_ = turn_;
  }

  void declare(const std::string& name) {
    StreamSettings settings;
    settings.keep = name == "work" ? Keep::work : name == "latest" ? Keep::latest : Keep::log;
    settings.survives = name == "memory" ? Survives::nothing : Survives::power;
    settings.when_full = default_when_full(settings.keep);
    settings.age_max = name == "aging" ? Duration(300ms) : Duration(0);
    settings.same_id_window = 500ms;
    settings.history = name == "latest" ? 2 : 1;
    const auto stream = store_->declare(name, settings, false, now());
    ASSERT_TRUE(stream) << stream.error().message();
    durable_[name].settings = settings;
    ConsumerSettings consumer;
    consumer.ack_wait = 50ms;
    ASSERT_TRUE(store_->consumer(**stream, "c", consumer, false));
  }

  void step() {
    const std::string name = kNames[pick(std::size(kNames))];
    StoredStream& stream = *store_->find(name);
    ModelStream& model = turn_[name];
    switch (pick(16)) {
      case 0:
      case 1: commit(); break;
      case 2: fail_commit(); break;
      case 3: disk_.set_room(pick(2) == 0 ? disk_.bytes() + pick(30'000) : ~std::uint64_t{0}); break;
      case 4: purge(stream, name); break;
      case 5:
        commit();
        store_.reset();
        reopen();
        break;
      case 6:
      case 7:
      case 8: deliver(stream, model, name); break;
      case 9: acknowledge(stream, model, name); break;
      case 10:
        if (pick(8) == 0) {
          remove(name);
        }
        break;
      default: append(stream, model); break;
    }
  }

  void append(StoredStream& stream, ModelStream& model) {
    ModelMessage message{"t." + std::to_string(pick(6)), std::to_string(++bodies_) + std::string(pick(3000), 'x')};
    message.erased = model.settings.keep == Keep::latest && pick(5) == 0;
    message.time = std::max(now_, model.newest);
    const std::string id = pick(3) == 0 ? "id." + std::to_string(pick(20)) : std::string();
    const auto* last = model.last_of(message.topic, now_);
    Expect expect;
    if (pick(6) == 0) {
      expect.last = pick(2) == 0 || last == nullptr ? pick(3) : last->first;
    }
    expect.absent = pick(10) == 0;
    NewMessage given{message.topic, id};
    given.body = as_bytes(message.body);
    given.erased = message.erased;
    if (model.settings.keep == Keep::work || model.settings.when_full == Discard::oldest) {
      given.time_to_live = pick(3) == 0 ? Duration(1s + std::chrono::milliseconds(pick(1000))) : Duration(0);
      message.expires = given.time_to_live == 0ns ? Duration::max() : message.time + given.time_to_live;
    }
    if (pick(4) == 0) {
      given.delay = std::chrono::milliseconds(1 + pick(100));
      expect = {};
    }
    const auto appended = store_->append(stream, given, expect, now());
    const auto known = id.empty() ? model.ids.end() : model.ids.find(id);
    const auto waits = id.empty() ? model.waiting_ids.end() : model.waiting_ids.find(id);
    if (appended && appended->duplicate && appended->sequence == 0) {
      ASSERT_NE(waits, model.waiting_ids.end());
      return;
    }
    if (appended && appended->duplicate) {
      ASSERT_NE(known, model.ids.end());
      EXPECT_EQ(appended->sequence, known->second.sequence);
      return;
    }
    const Duration since = now_ - model.settings.same_id_window;
    ASSERT_TRUE(known == model.ids.end() || known->second.time < since) << id << " is stored again";
    ASSERT_TRUE(waits == model.waiting_ids.end() || waits->second < since) << id << " is stored again";
    if (given.delay != 0ns) {
      ASSERT_TRUE(appended) << appended.error().message();
      EXPECT_EQ(appended->sequence, 0U);
      model.waiting.emplace(now_ + given.delay, ModelStream::Waiting{message, given.time_to_live});
      if (!id.empty()) {
        model.waiting_ids[id] = now_;
      }
      return;
    }
    // A message that retention may have removed is not checked.
    const bool unsure = last != nullptr && model.may_be_gone(last->first, now_);
    const bool refused = (expect.last && *expect.last != (last == nullptr ? 0 : last->first)) ||
                         (expect.absent && last != nullptr && !last->second.erased);
    if (!unsure) {
      ASSERT_EQ(appended.error() == Errc::conflict, refused);
    }
    if (appended) {
      EXPECT_EQ(model.append(message, id), appended->sequence);
    } else if (appended.error() != Errc::conflict) {
      ADD_FAILURE() << appended.error().message();
    }
  }

  void deliver(StoredStream& stream, ModelStream& model, const std::string& name) {
    const auto delivery = store_->next_delivery(stream, *stream.find_consumer("c"), now());
    ASSERT_TRUE(delivery) << delivery.error().message();
    if (!*delivery) {
      return;
    }
    const StoredMessage& message = (*delivery)->read.message;
    const ModelStream& durable = durable_[name];
    const auto found = durable.messages.find(message.sequence);
    ASSERT_NE(found, durable.messages.end()) << message.sequence << " is not there, or not committed";
    EXPECT_GT(found->second.expires, now_) << message.sequence << " is over";
    EXPECT_EQ(as_text(message.body), found->second.body);
    EXPECT_EQ(message.topic, found->second.topic);
    EXPECT_FALSE(model.acked.contains(message.sequence)) << message.sequence << " was acknowledged";
    auto& due = outstanding_[name];
    if (const auto before = due.find(message.sequence); before != due.end()) {
      EXPECT_LE(before->second, now_) << "too early";
    }
    due[message.sequence] = now_ + 50ms;
    model.maybe_acked.erase(message.sequence);
  }

  void acknowledge(StoredStream& stream, ModelStream& model, const std::string& name) {
    auto& due = outstanding_[name];
    StoredConsumer& consumer = *stream.find_consumer("c");
    for (auto at = due.begin(); at != due.end();) {
      const std::uint64_t sequence = at->first;
      const std::uint64_t what = pick(4);
      if (what == 0) {
        (void)consumer.state.nak(sequence, 0ns, now().steady);
        at->second = now_;
      } else if (what == 1) {
        // A message that is gone waits no more.
        if (store_->ack(consumer, sequence, true) || !durable_[name].messages.contains(sequence)) {
          model.acked.insert(sequence);
        }
        at = due.erase(at);
        continue;
      }
      ++at;
    }
  }

  void keep_turn(bool positions_too) {
    for (auto& [name, stream] : turn_) {
      stream.keep();
      if (positions_too || name == "memory") {
        stream.kept_acked = stream.acked;
      }
      compare(name, stream);
    }
    durable_ = turn_;
  }

  void move_due() {
    for (auto& [name, stream] : turn_) {
      stream.move_due(now_);
    }
  }

  void commit() {
    move_due();
    const Store::Committed done = store_->commit(now());
    if (done.memory == Errc::ok && done.disk == Errc::ok) {
      keep_turn(true);
      return;
    }
    ASSERT_EQ(done.disk, Errc::resource_exhausted) << done.disk.message();
    ASSERT_EQ(done.memory, Errc::ok);
    for (auto& [name, stream] : turn_) {
      if (name == "memory") {
        continue;
      }
      // The messages are refused. Acknowledgements wait, or were committed by the room of the reserve.
      const ModelStream turn = std::exchange(stream, durable_[name]);
      stream.acked = turn.acked;
      stream.maybe_acked = turn.maybe_acked;
    }
    keep_turn(done.positions == Errc::ok);
  }

  // The process dies in the commit, or the power goes: the turn is there in whole or not at all.
  void fail_commit() {
    disk_.set_room(~std::uint64_t{0});
    const std::uint64_t seed = random_();
    switch (pick(3)) {
      case 0: disk_.fail_sync(1 + pick(2)); break;
      default: disk_.die_at(1 + pick(60)); break;
    }
    move_due();
    const Store::Committed done = store_->commit(now());
    const bool loses_power = pick(2) == 0;
    store_.reset();
    loses_power ? disk_.lose_power(seed) : disk_.restart();
    auto opened = Store::open({"store.db", disk_.name(), 0, 256 * 1024}, now());
    ASSERT_TRUE(opened) << opened.error().message();
    std::optional<bool> there;
    for (const auto& [name, stream] : turn_) {
      if (name != "memory" && stream.next != durable_[name].next) {
        const std::uint64_t next = (*opened)->find(name)->next();
        ASSERT_TRUE(next == stream.next || next == durable_[name].next) << name;
        ASSERT_TRUE(!there || *there == (next == stream.next)) << "half of a turn";
        there = next == stream.next;
      }
      const std::size_t waited = durable_[name].waiting.size();
      if (name != "memory" && stream.waiting.size() != waited) {
        const std::uint64_t count = (*opened)->find(name)->delayed().count();
        ASSERT_TRUE(count == stream.waiting.size() || count == waited) << name;
        ASSERT_TRUE(!there || *there == (count != waited)) << "half of a turn";
        there = count != waited;
      }
    }
    ASSERT_TRUE(done.disk != Errc::ok || there.value_or(true)) << "an acknowledged turn is gone";
    const bool whole = done.disk == Errc::ok || there.value_or(false);
    for (auto& [name, stream] : turn_) {
      ModelStream& durable = durable_[name];
      if (whole) {
        durable = stream;
        durable.keep();
        durable.kept_acked = durable.acked;
      }
      durable.acked = stream.acked;
      durable.maybe_acked = stream.maybe_acked;
    }
    opened->reset();
    reopen();
  }

  void purge(StoredStream& stream, const std::string& name) {
    commit();
    ModelStream& model = turn_[name];
    const std::uint64_t before = model.next - std::min<std::uint64_t>(model.next, pick(20));
    const std::string topic = "t." + std::to_string(pick(6));
    const bool by_topic = model.settings.keep == Keep::latest && pick(2) == 0;
    const Result<void> done = by_topic ? store_->purge_topic(stream, topic) : store_->purge_before(stream, before);
    if (!done) {
      ASSERT_EQ(done.error(), Errc::resource_exhausted);
      return;
    }
    by_topic ? void(std::erase_if(model.messages, [&](const auto& each) { return each.second.topic == topic; }))
             : model.purge_before(before);
    keep_turn(false);
  }

  void remove(const std::string& name) {
    commit();
    disk_.set_room(~std::uint64_t{0});
    ASSERT_TRUE(store_->remove(name));
    turn_.erase(name);
    durable_.erase(name);
    outstanding_.erase(name);
    declare(name);
    turn_[name] = durable_[name];
  }

  // The store has the messages of the model, and no others. Messages that may be gone leave the model when they are.
  void compare(const std::string& name, ModelStream& model) {
    StoredStream& stream = *store_->find(name);
    ASSERT_EQ(stream.next(), model.next) << name;
    ASSERT_EQ(stream.delayed().count(), model.waiting.size()) << name;
    model.messages.merge(std::exchange(model.gone, {}));
    for (auto at = model.messages.begin(); at != model.messages.end();) {
      const auto found = stream.message_at(at->first, now().wall);
      ASSERT_TRUE(found) << found.error().message();
      if (at->second.expires <= now_) {
        ASSERT_FALSE(*found) << name << " has " << at->first << ", which is over";
        ++at;
        continue;
      }
      if (!*found) {
        ASSERT_TRUE(model.may_be_gone(at->first, now_)) << name << " lost " << at->first;
        model.gone.insert(*at);
        at = model.messages.erase(at);
        continue;
      }
      ASSERT_EQ(as_text((*found)->message.body), at->second.body) << name;
      ASSERT_EQ((*found)->message.erased, at->second.erased);
      ++at;
    }
    if (model.settings.keep == Keep::work) {
      return;
    }
    StoredReader reader = *stream.open_reader("", {}, now().wall);
    auto expected = model.messages.begin();
    const auto pass_over = [&] {
      while (expected != model.messages.end() && expected->second.expires <= now_) {
        ++expected;
      }
    };
    for (auto message = stream.read(reader, now().wall); message && *message;
         message = stream.read(reader, now().wall), ++expected) {
      pass_over();
      ASSERT_NE(expected, model.messages.end()) << name << " has " << (*message)->message.sequence;
      ASSERT_EQ((*message)->message.sequence, expected->first) << name;
    }
    pass_over();
    ASSERT_EQ(expected, model.messages.end()) << name;
    for (int i = 0; i < 6; ++i) {
      const std::string topic = "t." + std::to_string(i);
      const auto* last = model.last_of(topic, now_);
      const auto newest = stream.newest_of(topic, now().wall);
      ASSERT_TRUE(newest);
      ASSERT_EQ(*newest ? (*newest)->message.sequence : 0, last == nullptr ? 0 : last->first) << name << " " << topic;
    }
  }

  // Each consumer gets every message that it has not acknowledged.
  void drain() {
    now_ += 1s;
    for (auto& [name, model] : turn_) {
      StoredStream& stream = *store_->find(name);
      StoredConsumer& consumer = *stream.find_consumer("c");
      std::set<std::uint64_t> got;
      for (;;) {
        const auto delivery = store_->next_delivery(stream, consumer, now());
        ASSERT_TRUE(delivery) << delivery.error().message();
        if (!*delivery) {
          break;
        }
        got.insert((*delivery)->read.message.sequence);
        EXPECT_TRUE(store_->ack(consumer, (*delivery)->read.message.sequence, true));
      }
      for (const auto& [sequence, message] : model.messages) {
        if (!model.maybe_acked.contains(sequence)) {
          EXPECT_EQ(got.contains(sequence), !model.acked.contains(sequence) && message.expires > now_)
              << name << " " << sequence;
        }
      }
    }
  }

  std::mt19937_64 random_;
  TestDisk disk_;
  std::unique_ptr<Store> store_;
  Duration now_{1s};
  std::uint64_t bodies_ = 0;
  Model durable_;                                                         // as the last commit left it
  Model turn_;                                                            // with the ops of the turn
  std::map<std::string, std::map<std::uint64_t, Duration>> outstanding_;  // when each delivery may come again
};

void run_seeds(std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun(seed).run(120);
  }
}

TEST(StoreRandom, AStoreDoesWhatItsModelDoes) { run_seeds(1, 20); }
TEST(StoreRandom, ManySeeds) { run_seeds(1000, 4999); }

}  // namespace
}  // namespace weft::store

#endif
