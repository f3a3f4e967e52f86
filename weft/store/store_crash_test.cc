// SPDX-License-Identifier: MIT
// A process that dies, or a machine that loses its power, at every single write of a small life of a store.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/store/store.h"
#include "weft/store/test_vfs.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

Now at(int ms) {
  return {WallTime(1'700'000'000s + std::chrono::milliseconds(ms)), Instant(1h + std::chrono::milliseconds(ms))};
}

// The messages that the store acknowledged: sequence to body, for each stream; and the newest value of each key.
struct Acknowledged {
  std::map<std::string, std::map<std::uint64_t, std::string>> messages;
  std::map<std::string, std::string> values;
  std::set<std::uint64_t> acked;  // by the consumer of stream "power"
  bool declared = false;
};

StreamSettings settings_of(Survives survives, Keep keep = Keep::log) {
  StreamSettings settings;
  settings.survives = survives;
  settings.keep = keep;
  return settings;
}

// Turns of a store until the first failure: messages into two logs, values, and acknowledgements of a consumer.
void live(TestDisk& disk, Acknowledged& done, int turns, std::size_t size = 700) {
  auto opened = Store::open({"store.db", disk.name()}, at(0));
  if (!opened) {
    return;
  }
  Store& store = **opened;
  const auto power = store.declare("power", settings_of(Survives::power), false, at(0));
  const auto process = store.declare("process", settings_of(Survives::process), false, at(0));
  const auto values = store.declare("values", settings_of(Survives::power, Keep::latest), false, at(0));
  if (!power || !process || !values) {
    return;
  }
  const auto consumer = store.consumer(**power, "c", {}, false);
  if (!consumer || store.commit(at(0)).disk != Errc::ok) {
    return;
  }
  done.declared = true;
  for (int turn = 1; turn <= turns; ++turn) {
    std::map<std::string, std::map<std::uint64_t, std::string>> messages;
    std::map<std::string, std::string> newest;
    std::set<std::uint64_t> acked;
    for (int i = 0; i < 3; ++i) {
      const std::string body = "body " + std::to_string(100 + turn) + "/" + std::to_string(i) + std::string(size, '.');
      for (StoredStream* stream : {*power, *process}) {
        const auto appended = store.append(*stream, {.topic = "a.b", .body = as_bytes(body)}, {}, at(turn));
        ASSERT_TRUE(appended) << appended.error().message();
        messages[stream->name()][appended->sequence] = body;
      }
      const std::string key = "key." + std::to_string((turn + i) % 4);
      ASSERT_TRUE(store.append(**values, {.topic = key, .body = as_bytes(body)}, {}, at(turn)));
      newest[key] = body;
    }
    for (int i = 0; i < 2; ++i) {
      const auto delivery = store.next_delivery(**power, **consumer, at(turn));
      if (delivery && *delivery) {
        store.ack(**consumer, (*delivery)->read.message.sequence, true);
        acked.insert((*delivery)->read.message.sequence);
      }
    }
    if (store.commit(at(turn)).disk != Errc::ok) {
      return;
    }
    for (auto& [stream, all] : messages) {
      done.messages[stream].merge(all);
    }
    for (auto& [key, body] : newest) {
      done.values[key] = body;
    }
    done.acked.merge(acked);
  }
}

std::map<std::uint64_t, std::string> read_all(StoredStream& stream) {
  std::map<std::uint64_t, std::string> all;
  auto reader = stream.open_reader("", From::first(), at(0).wall);
  EXPECT_TRUE(reader);
  for (;;) {
    const auto message = stream.read(*reader, at(0).wall);
    EXPECT_TRUE(message) << message.error().message();
    if (!message || !*message) {
      return all;
    }
    EXPECT_TRUE(all.emplace((*message)->message.sequence, as_text((*message)->message.body)).second);
  }
}

// `streams`: those whose acknowledged messages must all be there.
void check(TestDisk& disk, const Acknowledged& done, const std::vector<std::string>& streams) {
  auto opened = Store::open({"store.db", disk.name()}, at(5000));
  ASSERT_TRUE(opened) << opened.error().message();
  Store& store = **opened;
  if (!done.declared) {
    return;
  }
  for (const std::string& name : {std::string("power"), std::string("process")}) {
    StoredStream* stream = store.find(name);
    ASSERT_NE(stream, nullptr);
    const auto all = read_all(*stream);
    std::uint64_t expected = 1;
    for (const auto& [sequence, body] : all) {
      EXPECT_EQ(sequence, expected++);  // no gap, no double
      EXPECT_TRUE(body.starts_with("body ")) << body;
    }
    if (std::find(streams.begin(), streams.end(), name) == streams.end()) {
      continue;
    }
    const auto found = done.messages.find(name);
    for (const auto& [sequence, body] : found == done.messages.end() ? decltype(all){} : found->second) {
      ASSERT_TRUE(all.contains(sequence)) << name << " lost " << sequence;
      EXPECT_EQ(all.at(sequence), body);
    }
  }
  StoredStream* values = store.find("values");
  ASSERT_NE(values, nullptr);
  for (const auto& [key, body] : done.values) {
    const auto newest = values->newest_of(key, at(0).wall);
    ASSERT_TRUE(newest && *newest) << key;
    EXPECT_GE(as_text((*newest)->message.body), body.substr(0, 10)) << key;
  }
  // The consumer gets everything that it did not acknowledge, and goes on.
  StoredStream& power = *store.find("power");
  StoredConsumer* consumer = power.find_consumer("c");
  ASSERT_NE(consumer, nullptr);
  std::set<std::uint64_t> again;
  for (;;) {
    const auto delivery = store.next_delivery(power, *consumer, at(10'000'000));
    ASSERT_TRUE(delivery) << delivery.error().message();
    if (!*delivery) {
      break;
    }
    store.ack(*consumer, (*delivery)->read.message.sequence, false);
    EXPECT_TRUE(again.insert((*delivery)->read.message.sequence).second);
  }
  for (const std::uint64_t sequence : done.acked) {
    EXPECT_FALSE(again.contains(sequence)) << sequence << " was acknowledged";
  }
  for (std::uint64_t sequence = 1; sequence < power.next(); ++sequence) {
    EXPECT_TRUE(again.contains(sequence) || sequence <= 2 * (power.next() - 1) / 3 + 2) << sequence;
  }
  // The store works on.
  const auto appended = store.append(power, {.topic = "a.b", .body = as_bytes("body after")}, {}, at(6000));
  ASSERT_TRUE(appended);
  EXPECT_EQ(store.commit(at(6000)).disk, Errc::ok);
  EXPECT_EQ(read_all(power).at(appended->sequence), "body after");
}

constexpr int kTurns = 8;
constexpr std::uint64_t kStep = kSanitized ? 7 : 1;  // of the operations at which a life ends

std::uint64_t operations_of_a_life() {
  TestDisk disk;
  Acknowledged done;
  disk.die_at(0);
  live(disk, done, kTurns);
  EXPECT_EQ(done.messages["power"].size(), 3U * kTurns);
  return disk.operations();
}

TEST(StoreCrash, AProcessThatDiesAtAnyWriteLosesNothingAcknowledged) {
  const std::uint64_t operations = operations_of_a_life();
  ASSERT_GT(operations, 50U);
  for (std::uint64_t n = 1; n <= operations && !HasFatalFailure(); n += kStep) {
    SCOPED_TRACE("dies at operation " + std::to_string(n));
    TestDisk disk;
    Acknowledged done;
    disk.die_at(n);
    live(disk, done, kTurns);
    ASSERT_TRUE(disk.died());
    disk.restart();
    check(disk, done, {"power", "process"});
  }
}

TEST(StoreCrash, ALossOfPowerAtAnyWriteLosesNothingThatSurvivesPower) {
  const std::uint64_t operations = operations_of_a_life();
  for (std::uint64_t n = 1; n <= operations && !HasFatalFailure(); n += kStep) {
    for (const std::uint64_t seed : {std::uint64_t{0}, n}) {
      SCOPED_TRACE("loses power at operation " + std::to_string(n) + ", seed " + std::to_string(seed));
      TestDisk disk;
      Acknowledged done;
      disk.die_at(n);
      live(disk, done, kTurns);
      disk.lose_power(seed);
      check(disk, done, {"power"});
    }
  }
}

// Turns until the first failure: each publishes a message whose delay is of one to three turns. Returns the number of
// acknowledged ones; message `n` is due at the time `due(n)`.
constexpr int kDelayedTurns = 10;
int due(int n) { return n + 1 + n * 7 % 3; }
int live_with_delays(TestDisk& disk) {
  auto opened = Store::open({"store.db", disk.name()}, at(0));
  if (!opened) {
    return 0;
  }
  const auto stream = (*opened)->declare("power", settings_of(Survives::power), false, at(0));
  if (!stream) {
    return 0;
  }
  for (int turn = 1; turn <= kDelayedTurns; ++turn) {
    const std::string body = std::to_string(turn) + std::string(700, '.');
    const auto kept = (*opened)->append(
        **stream, {.topic = "a", .id = body.substr(0, 2), .body = as_bytes(body), .delay = 1ms * (due(turn) - turn)},
        {}, at(turn));
    EXPECT_TRUE(kept || disk.died()) << kept.error().message();
    if ((*opened)->commit(at(turn)).disk != Errc::ok) {
      return turn - 1;
    }
  }
  return kDelayedTurns;
}

// The acknowledged messages enter once, in their order; the one under way enters once or never.
void check_delays(TestDisk& disk, int acknowledged) {
  auto opened = Store::open({"store.db", disk.name()}, at(100));
  ASSERT_TRUE(opened) << opened.error().message();
  StoredStream* const stream = (*opened)->find("power");
  if (stream == nullptr) {
    ASSERT_EQ(acknowledged, 0);
    return;
  }
  ASSERT_EQ((*opened)->commit(at(100)).disk, Errc::ok);
  EXPECT_EQ(stream->delayed().count(), 0U);
  EXPECT_EQ(stream->damaged(), 0U);
  std::vector<int> there;
  for (const auto& [sequence, body] : read_all(*stream)) {
    there.push_back(std::stoi(body));
  }
  EXPECT_TRUE(std::is_sorted(there.begin(), there.end(),
                             [](int a, int b) { return std::pair(due(a), a) < std::pair(due(b), b); }));
  std::set<int> once(there.begin(), there.end());
  EXPECT_EQ(once.size(), there.size()) << "one came twice";
  const bool under_way = once.erase(acknowledged + 1) != 0;
  EXPECT_EQ(once.size(), static_cast<std::size_t>(acknowledged)) << under_way;
  EXPECT_TRUE(once.empty() || *once.rbegin() == acknowledged);
}

TEST(StoreCrash, ADeathAtAnyWriteLosesNoMessageWithADelayAndNoneComesTwice) {
  TestDisk whole;
  ASSERT_EQ(live_with_delays(whole), kDelayedTurns);
  const std::uint64_t operations = whole.operations();
  check_delays(whole, kDelayedTurns);
  for (std::uint64_t n = 1; n <= operations && !testing::Test::HasFailure(); n += kStep) {
    for (int how = 0; how < 3; ++how) {
      SCOPED_TRACE("dies at operation " + std::to_string(n) + ", " + std::to_string(how));
      TestDisk disk;
      disk.die_at(n);
      const int acknowledged = live_with_delays(disk);
      ASSERT_TRUE(disk.died());
      how == 0 ? disk.restart() : disk.lose_power(how == 1 ? 0 : n);
      check_delays(disk, acknowledged);
    }
  }
}

// So many bytes that the log is copied into the file several times in between.
TEST(StoreCrash, ALossOfPowerWhileTheLogIsCopiedIntoTheFileLosesNothing) {
  constexpr std::size_t kSize = 120'000;
  TestDisk whole;
  Acknowledged all;
  live(whole, all, kTurns, kSize);
  const std::uint64_t operations = whole.operations();
  ASSERT_GT(operations, 3000U);
  for (std::uint64_t n = 131; n <= operations && !HasFatalFailure(); n += 131 * kStep) {
    SCOPED_TRACE("loses power at operation " + std::to_string(n));
    TestDisk disk;
    Acknowledged done;
    disk.die_at(n);
    live(disk, done, kTurns, kSize);
    n % 2 == 0 ? disk.lose_power(n) : disk.restart();
    check(disk, done, n % 2 == 0 ? std::vector<std::string>{"power"} : std::vector<std::string>{"power", "process"});
  }
}

// Without this the test above could pass by a disk that forgets nothing.
TEST(StoreCrash, ALossOfPowerForgetsWhatOnlySurvivesAProcess) {
  TestDisk disk;
  auto opened = Store::open({"store.db", disk.name()}, at(0));
  ASSERT_TRUE(opened);
  auto stream = (*opened)->declare("s", settings_of(Survives::process), false, at(0));
  ASSERT_TRUE(stream);
  ASSERT_TRUE((*opened)->append(**stream, {.topic = "a"}, {}, at(1)));
  EXPECT_EQ((*opened)->commit(at(1)).disk, Errc::ok);
  const std::uint64_t syncs = disk.syncs();
  ASSERT_TRUE((*opened)->append(**stream, {.topic = "a"}, {}, at(1)));
  EXPECT_EQ((*opened)->commit(at(1)).disk, Errc::ok);
  EXPECT_EQ(disk.syncs(), syncs);
  disk.die_at(1);
  opened->reset();
  disk.lose_power(0);
  opened = Store::open({"store.db", disk.name()}, at(2));
  ASSERT_TRUE(opened) << opened.error().message();
  ASSERT_NE((*opened)->find("s"), nullptr);
  EXPECT_TRUE(read_all(*(*opened)->find("s")).empty());
}

TEST(StoreCrash, ASyncThatFailsLeavesTheOutcomeUnknownAndTheStoreWritesNoMore) {
  TestDisk disk;
  auto opened = Store::open({"store.db", disk.name()}, at(0));
  ASSERT_TRUE(opened);
  Store& store = **opened;
  auto stream = store.declare("s", settings_of(Survives::power), false, at(0));
  ASSERT_TRUE(stream);
  ASSERT_TRUE(store.append(**stream, {.topic = "a", .body = as_bytes("one")}, {}, at(1)));
  ASSERT_EQ(store.commit(at(1)).disk, Errc::ok);
  disk.fail_syncs(true);
  ASSERT_TRUE(store.append(**stream, {.topic = "a", .body = as_bytes("two")}, {}, at(1)));
  EXPECT_EQ(store.commit(at(1)).disk, Errc::outcome_unknown);
  EXPECT_TRUE(store.failed());
  disk.fail_syncs(false);
  ASSERT_TRUE(store.append(**stream, {.topic = "a", .body = as_bytes("three")}, {}, at(1)));
  EXPECT_EQ(store.commit(at(1)).disk, Errc::invalid_state);
  opened->reset();
  opened = Store::open({"store.db", disk.name()}, at(2));
  ASSERT_TRUE(opened);
  const auto all = read_all(*(*opened)->find("s"));
  EXPECT_EQ(all.at(1), "one");
  EXPECT_LE(all.size(), 2U);
}

// Whichever flush the disk refuses, those in SQLite's copying of the log too: the store reports it, the next one of the
// same file continues, and nothing that either acknowledged is lost when the power goes.
TEST(StoreCrash, AFlushThatTheDiskRefusedAtAnyPlaceLosesNothingThatSurvivesPower) {
  constexpr std::size_t kSize = 120'000;
  TestDisk whole;
  Acknowledged all;
  live(whole, all, 3, kSize);
  const std::uint64_t syncs = whole.syncs();
  ASSERT_GT(syncs, 10U);
  for (std::uint64_t n = 1; n <= syncs && !HasFatalFailure(); ++n) {
    SCOPED_TRACE("refuses flush " + std::to_string(n));
    TestDisk disk;
    Acknowledged done;
    disk.fail_sync(n);
    live(disk, done, 3, kSize);
    ASSERT_EQ(disk.failed_syncs(), 1U);
    Acknowledged after;
    live(disk, after, 3, kSize);
    ASSERT_TRUE(after.declared);
    for (auto& [stream, messages] : after.messages) {
      done.messages[stream].merge(messages);
    }
    disk.lose_power(0);
    auto opened = Store::open({"store.db", disk.name()}, at(5000));
    ASSERT_TRUE(opened) << opened.error().message();
    ASSERT_NE((*opened)->find("power"), nullptr);
    const auto there = read_all(*(*opened)->find("power"));
    for (const auto& [sequence, body] : done.messages["power"]) {
      ASSERT_TRUE(there.contains(sequence)) << "lost " << sequence;
      EXPECT_EQ(there.at(sequence), body);
    }
  }
}

TEST(StoreCrash, AFlushThatTheDiskRefusesWhileTheLogIsCopiedEndsTheStore) {
  TestDisk disk;
  auto opened = Store::open({"store.db", disk.name()}, at(0));
  ASSERT_TRUE(opened);
  auto stream = (*opened)->declare("s", settings_of(Survives::process), false, at(0));
  ASSERT_TRUE(stream);
  const std::string body(60'000, 'x');
  disk.fail_sync(1);  // commits of this stream flush nothing
  for (int i = 0; i < 500 && disk.failed_syncs() == 0; ++i) {
    ASSERT_TRUE((*opened)->append(**stream, {.topic = "a", .body = as_bytes(body)}, {}, at(i)));
    ASSERT_EQ((*opened)->commit(at(i)).disk, Errc::ok);
  }
  ASSERT_EQ(disk.failed_syncs(), 1U);
  EXPECT_TRUE((*opened)->failed());
  const std::uint64_t syncs = disk.syncs();
  opened->reset();
  EXPECT_EQ(disk.syncs(), syncs);  // closing copies nothing over the data on the disk
}

TEST(StoreCrash, AFullDiskRefusesAndTheStoreGoesOnWhenThereIsRoom) {
  TestDisk disk;
  auto opened = Store::open({"store.db", disk.name()}, at(0));
  ASSERT_TRUE(opened);
  Store& store = **opened;
  auto stream = store.declare("s", settings_of(Survives::power), false, at(0));
  ASSERT_TRUE(stream);
  disk.set_room(disk.bytes() + 300'000);
  std::map<std::uint64_t, std::string> acknowledged;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    if (i == 150) {
      disk.set_room(100'000'000);
    }
    const std::string body = std::to_string(i) + std::string(5000, 'x');
    const std::string id = "id" + std::to_string(i);
    const auto appended = store.append(**stream, {.topic = "a", .id = id, .body = as_bytes(body)}, {}, at(i));
    ASSERT_TRUE(appended) << appended.error().message();
    EXPECT_FALSE(appended->duplicate);
    const Error error = store.commit(at(i)).disk;
    if (error == Errc::ok) {
      acknowledged[appended->sequence] = body;
    } else {
      EXPECT_EQ(error, Errc::resource_exhausted) << error.message();
      EXPECT_LT(i, 150);
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
  EXPECT_GT(acknowledged.size(), 52U);  // some before the disk was full, and all of the last 50
  EXPECT_FALSE(store.failed());
  EXPECT_EQ(read_all(**stream), acknowledged);
  opened->reset();
  disk.lose_power(0);
  opened = Store::open({"store.db", disk.name()}, at(1000));
  ASSERT_TRUE(opened);
  EXPECT_EQ(read_all(*(*opened)->find("s")), acknowledged);
}

TEST(StoreCrash, OnAFullDiskConsumersAcknowledgeAndTheNextStoreOpens) {
  TestDisk disk;
  constexpr std::uint64_t kReserve = 8 * 1024 * 1024;
  const auto open_store = [&disk](int turn) {
    auto opened = Store::open({"store.db", disk.name(), 0, kReserve}, at(turn));
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? *std::move(opened) : nullptr;
  };
  auto store = open_store(0);
  ASSERT_NE(store, nullptr);
  StreamSettings settings;
  settings.keep = Keep::work;
  StoredStream* stream = *store->declare("s", settings, false, at(0));
  ASSERT_TRUE(store->consumer(*stream, "c", {}, false));
  disk.set_room(disk.bytes() + 12 * 1024 * 1024);
  const std::string body(100'000, 'x');
  std::uint64_t stored = 0;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(store->append(*stream, {.topic = "a", .body = as_bytes(body)}, {}, at(1)));
    const auto committed = store->commit(at(1));
    EXPECT_EQ(committed.positions, Errc::ok);
    stored += committed.disk == Errc::ok ? 1 : 0;
  }
  ASSERT_LT(stored, 300U);
  ASSERT_GT(stored, 50U);
  disk.set_room(disk.bytes());  // others took the remaining room
  for (int life = 0; life < 2; ++life) {
    life == 0 ? disk.restart() : disk.lose_power(0);
    store.reset();
    store = open_store(2 + life);
    ASSERT_NE(store, nullptr);
    stream = store->find("s");
    ASSERT_NE(stream, nullptr);
    const std::uint64_t half = stored / 2;
    for (std::uint64_t i = 0; i < half; ++i) {
      StoredConsumer& consumer = *stream->find_consumer("c");
      const auto job = store->next_delivery(*stream, consumer, at(100 * (life + 1)));
      ASSERT_TRUE(job && *job) << i;
      const std::uint64_t sequence = (*job)->read.message.sequence;
      EXPECT_EQ(sequence, half * static_cast<std::uint64_t>(life) + i + 1);
      EXPECT_TRUE(store->ack(consumer, sequence, true));
      ASSERT_EQ(store->commit(at(100)).positions, Errc::ok) << sequence;
    }
  }
  // The room of the finished jobs is in the file: new ones take it.
  ASSERT_TRUE(store->append(*stream, {.topic = "a", .body = as_bytes(body)}, {}, at(200)));
  EXPECT_EQ(store->commit(at(200)).disk, Errc::ok);
  disk.set_room(1 << 30);
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(store->append(*stream, {.topic = "a"}, {}, at(201)));
    ASSERT_EQ(store->commit(at(201)).disk, Errc::ok);
  }
  EXPECT_EQ(disk.files().at("store.db.reserve")->live.size(), kReserve);
}

}  // namespace
}  // namespace weft::store

#endif
