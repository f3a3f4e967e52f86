// SPDX-License-Identifier: MIT
// Messages between cores, beside Boost.Asio with one io_context per thread, as the published framework posts. The
// contender's threads do the work, so rows have a second, idle thread and the body keeps the time itself. The receiver
// counts the messages.
#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/rt/core/runtime.h"
#include "weft/sys/clock.h"
#include "weft/sys/thread.h"
#include "weft/sys/topology.h"

#if __has_include(<boost/asio/io_context.hpp>)
#define WEFT_RIVAL_ASIO
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#endif

namespace {

using weft::rt::Runtime;

double seconds_since(weft::Instant start) { return std::chrono::duration<double>(weft::sys::now() - start).count(); }

// The benchmark's thread sleeps at this gate, so that it takes no processor from the cores.
class Gate {
 public:
  void open() {
    open_.store(1, std::memory_order_release);
    open_.notify_one();
  }
  void pass() {
    open_.wait(0, std::memory_order_acquire);
    open_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<int> open_{0};
};

// A coroutine without an awaiter.
struct Detached {
  struct promise_type {
    [[nodiscard]] Detached get_return_object() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
};

// --- contenders: `cores` threads; post(core, f) -> taken, both from a core and from outside. After a refusal a core
// calls post_then(core, f, next), which waits for room and then calls next() ---

enum class Mode : std::uint8_t { adaptive, polling, parked };

struct Weft {
  static constexpr const char* kName = "weft";
  explicit Weft(unsigned cores, Mode mode) {
    weft::rt::RuntimeOptions options;
    options.cores = cores;
    options.pinning = weft::rt::Pinning::always;
    options.wait_mode = mode == Mode::adaptive  ? weft::sync::WaitMode::adaptive
                        : mode == Mode::polling ? weft::sync::WaitMode::latency
                                                : weft::sync::WaitMode::eco;
    runtime = std::move(Runtime::start(options)).value();
  }
  template <typename F>
  bool post(unsigned core, F&& f) {
    return static_cast<bool>(runtime->post(core, std::forward<F>(f)));
  }
  template <typename F, typename Next>
  Detached post_then(unsigned core, F f, Next next) {
    auto posting = runtime->post_wait(core, f);
    (void)co_await posting;
    next();
  }
  std::unique_ptr<Runtime> runtime;
};

#ifdef WEFT_RIVAL_ASIO
// Pins as a runtime pins its cores: "core to core" must not be two threads that take turns on one processor.
void pin_to_core(unsigned index) {
  const auto places = weft::sys::physical_cores(weft::sys::allowed_cpu_ids());
  weft::sys::ThreadOptions options;
  options.cpus.set(places[index % places.size()].cpu);
  weft::sys::set_up_thread("asio", options);
}

struct Asio {
  static constexpr const char* kName = "asio";
  explicit Asio(unsigned cores, Mode mode) {
    for (unsigned i = 0; i < cores; ++i) {
      contexts.push_back(std::make_unique<boost::asio::io_context>(1));
      guards.push_back(boost::asio::make_work_guard(*contexts.back()));
    }
    for (unsigned i = 0; i < cores; ++i) {
      threads.emplace_back([this, i, mode] {
        pin_to_core(i);
        if (mode == Mode::polling) {
          while (!over.load(std::memory_order_relaxed)) {
            contexts[i]->poll();
            std::this_thread::yield();
          }
        } else {
          contexts[i]->run();
        }
      });
    }
  }
  ~Asio() {
    over.store(true, std::memory_order_relaxed);
    for (const auto& context : contexts) {
      context->stop();
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  template <typename F>
  bool post(unsigned core, F&& f) {
    boost::asio::post(*contexts[core], std::forward<F>(f));
    return true;
  }
  template <typename F, typename Next>
  void post_then(unsigned /*core*/, F /*f*/, Next /*next*/) {}  // never called: asio refuses no post
  std::vector<std::unique_ptr<boost::asio::io_context>> contexts;
  std::vector<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> guards;
  std::vector<std::thread> threads;
  std::atomic<bool> over{false};
};
#endif

// A body whose thread 0 runs work(contender) -> seconds, again and again; the median counts. `items` a run.
template <typename Contender, typename Work>
bench::Body timed(unsigned cores, Mode mode, double items, Work work) {
  return [=](benchmark::State& state) {
    if (state.thread_index() != 0) {
      for (auto _ : state) {
      }
      return;
    }
    Contender contender(cores, mode);
    (void)work(contender);
    std::vector<double> seconds;
    for (auto _ : state) {
      seconds.push_back(work(contender));
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    state.counters["items_per_second"] = items / *middle;
  };
}

template <typename Make>
bench::RowBuilder contend(const std::string& name, Make make) {
  auto row = bench::row(name);
  row.run_threads(Weft::kName, 2, make.template operator()<Weft>());
#ifdef WEFT_RIVAL_ASIO
  row.run_threads(Asio::kName, 2, make.template operator()<Asio>());
#endif
  return row;
}

// --- latency ---

// As published: a foreign thread posts to core 1, which posts to core 0, which wakes the foreign thread.
const auto kLatency = contend("CrossCore_Latency", []<typename C>() {
  return timed<C>(2, Mode::adaptive, 1, [](C& cores) {
    Gate gate;
    const auto start = weft::sys::now();
    cores.post(1, [&] { cores.post(0, [&] { gate.open(); }); });
    gate.pass();
    return seconds_since(start);
  });
});

// Round trips from core 0 to core 1 and back. A run makes many, one at a time, and reports the time of the given
// percentile.
template <typename C>
class RoundTrips {
 public:
  static constexpr std::size_t kTrips = 1000;
  explicit RoundTrips(C& cores) : cores_(cores) { trips_.reserve(kTrips); }
  double run(double percentile) {
    cores_.post(0, [this] { begin(); });
    gate_.pass();
    const auto at = trips_.begin() + static_cast<std::ptrdiff_t>(percentile * (kTrips - 1));
    std::nth_element(trips_.begin(), at, trips_.end());
    return *at;
  }

 private:
  void begin() {
    start_ = weft::sys::now();
    cores_.post(1, [this] { cores_.post(0, [this] { end(); }); });
  }
  void end() {
    trips_.push_back(seconds_since(start_));
    if (trips_.size() == kTrips) {
      gate_.open();
    } else {
      begin();
    }
  }

  C& cores_;
  Gate gate_;
  weft::Instant start_;
  std::vector<double> trips_;
};

bench::RowBuilder round_trip_row(const char* name, Mode mode, double percentile) {
  return contend(name, [=]<typename C>() {
    return timed<C>(2, mode, 1, [percentile](C& cores) { return RoundTrips<C>(cores).run(percentile); });
  });
}
const auto kPollingP50 = round_trip_row("CrossCore_Latency/polling/p50 (honest)", Mode::polling, 0.5);
const auto kPollingP99 = round_trip_row("CrossCore_Latency/polling/p99 (honest)", Mode::polling, 0.99);
const auto kParkedP50 = round_trip_row("CrossCore_Latency/parked/p50 (honest)", Mode::parked, 0.5);
const auto kParkedP99 = round_trip_row("CrossCore_Latency/parked/p99 (honest)", Mode::parked, 0.99);

// --- throughput ---

constexpr int kMessages = 100'000;
constexpr std::size_t kCoresMax = 4;

// As published: a foreign thread posts, and the row times the posting. The thread retries a refused post.
const auto kPost = contend("CrossCore_PostThroughput", []<typename C>() {
  return timed<C>(2, Mode::adaptive, kMessages, [](C& cores) {
    Gate gate;
    int received = 0;
    const auto start = weft::sys::now();
    for (int i = 0; i < kMessages; ++i) {
      while (!cores.post(1, [&] {
        if (++received == kMessages) {
          gate.open();
        }
      })) {
        std::this_thread::yield();
      }
    }
    const double took = seconds_since(start);
    gate.pass();
    return took;
  });
});

// Messages from core to core, timed until the last one was received, in order. Each sender posts a burst a turn, and
// waits for room after a refusal: a sender that retries would take the processor from a receiver on it.
template <typename C>
class Traffic {
 public:
  Traffic(C& cores, std::vector<unsigned> from, std::vector<unsigned> to, int messages)
      : cores_(cores), to_(std::move(to)), each_(messages / static_cast<int>(from.size() * to_.size())) {
    for (const unsigned core : from) {
      senders_.push_back({core});
    }
    for (std::size_t i = 0; i < to_.size(); ++i) {
      receivers_.emplace_back();
    }
  }
  double run() {
    left_.store(static_cast<int>(receivers_.size() + senders_.size()));  // at 0 no core uses this object any more
    const auto start = weft::sys::now();
    for (std::size_t i = 0; i < senders_.size(); ++i) {
      cores_.post(senders_[i].core, [this, i] { send(i); });
    }
    gate_.pass();
    const double took = seconds_since(start);
    if (wrong_.load() != 0) {
      std::abort();  // lost or out of order
    }
    return took;
  }

 private:
  struct alignas(128) Sender {
    unsigned core;
    std::array<int, kCoresMax> sent{};  // in the sender's lines, not in a line that a receiver writes
  };
  struct alignas(128) Receiver {
    std::array<int, kCoresMax> next{};
    int received = 0;
  };
  void send(std::size_t s) {
    constexpr int kBurst = 128;  // small enough that a turn empties the sender's own lane, so that send() finds room
    Sender& sender = senders_[s];
    bool more = false;
    for (std::size_t t = 0; t < to_.size(); ++t) {
      int& sent = sender.sent[t];
      for (int i = 0; i < kBurst && sent < each_; ++i) {
        const auto message = [this, s, t, number = sent] { receive(s, t, number); };
        ++sent;
        if (!cores_.post(to_[t], message)) {
          cores_.post_then(to_[t], message, [this, s] { go_on(s); });
          return;
        }
      }
      more = more || sent < each_;
    }
    if (more) {
      go_on(s);
    } else {
      finish();
    }
  }
  void go_on(std::size_t s) {
    const auto again = [this, s] { send(s); };
    if (!cores_.post(senders_[s].core, again)) {
      cores_.post_then(senders_[s].core, again, [] {});
    }
  }
  void finish() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      gate_.open();
    }
  }
  void receive(std::size_t s, std::size_t t, int number) {
    Receiver& receiver = receivers_[t];
    if (receiver.next[s]++ != number) {
      wrong_.store(1, std::memory_order_relaxed);
    }
    if (++receiver.received == each_ * static_cast<int>(senders_.size())) {
      finish();
    }
  }

  C& cores_;
  std::vector<unsigned> to_;
  int each_;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  std::atomic<int> left_{0};
  std::atomic<int> wrong_{0};
  Gate gate_;
};

bench::RowBuilder traffic_row(const char* name, unsigned cores, std::vector<unsigned> from, std::vector<unsigned> to) {
  return contend(name, [=]<typename C>() {
    return timed<C>(cores, Mode::adaptive, kMessages,
                    [=](C& contender) { return Traffic<C>(contender, from, to, kMessages).run(); });
  });
}
const auto kOneToOne = traffic_row("CrossCore_PostThroughput (honest)", 2, {0}, {1}).bar("asio", 8.0);
const auto kManyToOne = traffic_row("CrossCore_PostThroughput/3_to_1 (honest)", 4, {1, 2, 3}, {0});
const auto kOneToMany = traffic_row("CrossCore_PostThroughput/1_to_3 (honest)", 4, {0}, {1, 2, 3});
const auto kAllToAll = traffic_row("CrossCore_PostThroughput/all_to_all_4 (honest)", 4, {0, 1, 2, 3}, {0, 1, 2, 3});

// --- sessions: owned by a core, or shared behind locks ---
// Each of N producers brings the same messages: `cross` of 100 are for a session of another core than the producer's.
// A session's end state does not depend on the order of its messages, so that the models can be compared.

struct Session {
  std::uint64_t count = 0, sum = 0, mixed = 0, squares = 0, lowest = ~std::uint64_t{0}, highest = 0, last = 0;
  void handle(std::uint64_t value) {
    ++count;
    sum += value;
    mixed ^= value * 0x9E3779B97F4A7C15u;
    squares += value * value;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
    last |= value;
  }
  friend bool operator==(const Session&, const Session&) = default;
};

constexpr std::uint64_t kSessions = 1000;       // of each core
constexpr std::uint64_t kPerProducer = 50'000;  // messages
constexpr std::uint64_t kAtOnce = 128;          // messages that a producer brings in a turn

// A message of a producer: the core of the session, the session's number, and a value.
struct Message {
  std::uint64_t core, session, value;
};
Message message_of(std::uint64_t p, std::uint64_t i, std::uint64_t cores, std::uint64_t cross) {
  std::uint64_t bits = (p << 32 | i) * 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9u;
  bits ^= bits >> 32;
  const bool crosses = cores > 1 && bits % 100 < cross;
  return {crosses ? (p + 1 + (bits >> 8) % (cores - 1)) % cores : p, (bits >> 16) % kSessions, bits >> 40};
}

// The sessions of a core, or those behind one lock, and how many messages they expect.
struct alignas(128) Shard {
  std::unordered_map<std::uint64_t, Session> sessions;
  std::uint64_t handled = 0;
  std::uint64_t expected = 0;
  std::mutex mutex;  // of the shared model

  // Returns true if that was the last message.
  bool handle(const Message& message) {
    sessions[message.core * kSessions + message.session].handle(message.value);
    return ++handled == expected;
  }
};

struct OneCore {
  static std::size_t shards(unsigned cores) { return cores; }
  static std::size_t shard(const Message& message) { return message.core; }
};
struct Locked {
  static std::size_t shards(unsigned /*cores*/) { return 64; }
  static std::size_t shard(const Message& message) { return (message.core * 31 + message.session) % 64; }
};

// The models differ only in the thread that handles a message and in the lock it holds.
template <typename C, typename Sharing>
class Sessions {
 public:
  Sessions(C& contender, unsigned cores, std::uint64_t cross)
      : contender_(contender), cores_(cores), cross_(cross), sent_(cores), shards_(Sharing::shards(cores)) {
    for (std::uint64_t p = 0; p < cores; ++p) {
      for (std::uint64_t i = 0; i < kPerProducer; ++i) {
        const Message message = message_of(p, i, cores, cross);
        expected_[message.core * kSessions + message.session].handle(message.value);
        Shard& shard = shards_[Sharing::shard(message)];
        ++shard.expected;
        (void)shard.sessions[message.core * kSessions + message.session];  // warms the table
      }
    }
    left_ = cores;  // producers; at 0 no thread uses this object any more
    for (const Shard& shard : shards_) {
      left_ += shard.expected != 0 ? 1 : 0;
    }
  }
  double run() {
    const auto start = weft::sys::now();
    for (unsigned p = 0; p < cores_; ++p) {
      contender_.post(p, [this, p] { bring(p); });
    }
    gate_.pass();
    const double took = seconds_since(start);
    check();
    return took;
  }

 private:
  struct alignas(128) Sent {
    std::uint64_t messages = 0;
  };
  void bring(unsigned p) {
    std::uint64_t& i = sent_[p].messages;
    for (std::uint64_t burst = 0; burst < kAtOnce && i < kPerProducer; ++burst) {
      const Message message = message_of(p, i, cores_, cross_);
      const auto to = static_cast<unsigned>(message.core);
      const auto job = [this, message] { handle(message); };
      ++i;
      if (!contender_.post(to, job)) {
        contender_.post_then(to, job, [this, p] { go_on(p); });
        return;
      }
    }
    go_on(p);
  }
  void go_on(unsigned p) {
    if (sent_[p].messages == kPerProducer) {
      finish();
      return;
    }
    const auto again = [this, p] { bring(p); };
    if (!contender_.post(p, again)) {
      contender_.post_then(p, again, [] {});
    }
  }
  void finish() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      gate_.open();
    }
  }
  void handle(const Message& message) {
    Shard& shard = shards_[Sharing::shard(message)];
    bool last = false;
    if constexpr (std::same_as<Sharing, Locked>) {
      const std::lock_guard lock(shard.mutex);
      last = shard.handle(message);
    } else {
      last = shard.handle(message);
    }
    if (last) {
      finish();
    }
  }
  void check() const {
    std::size_t found = 0;
    for (const Shard& shard : shards_) {
      for (const auto& [name, session] : shard.sessions) {
        const auto wanted = expected_.find(name);
        if (wanted == expected_.end() || !(wanted->second == session)) {
          std::abort();  // the models do not agree
        }
        ++found;
      }
    }
    if (found != expected_.size()) {
      std::abort();
    }
  }

  C& contender_;
  unsigned cores_;
  std::uint64_t cross_;
  std::vector<Sent> sent_;
  std::vector<Shard> shards_;
  std::unordered_map<std::uint64_t, Session> expected_;
  std::atomic<std::size_t> left_{0};
  Gate gate_;
};

#ifdef WEFT_RIVAL_ASIO
// The shared-queue model: one io_context that all threads run.
struct AsioShared {
  explicit AsioShared(unsigned cores, Mode /*mode*/) : guard(boost::asio::make_work_guard(context)) {
    for (unsigned i = 0; i < cores; ++i) {
      threads.emplace_back([this, i] {
        pin_to_core(i);
        context.run();
      });
    }
  }
  ~AsioShared() {
    context.stop();
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  template <typename F>
  bool post(unsigned /*core*/, F&& f) {
    boost::asio::post(context, std::forward<F>(f));
    return true;
  }
  template <typename F, typename Next>
  void post_then(unsigned /*core*/, F /*f*/, Next /*next*/) {}
  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard;
  std::vector<std::thread> threads;
};
#endif

template <typename C, typename Sharing>
bench::Body sessions(unsigned cores, std::uint64_t cross) {
  return timed<C>(cores, Mode::adaptive, static_cast<double>(cores * kPerProducer),
                  [=](C& contender) { return Sessions<C, Sharing>(contender, cores, cross).run(); });
}
bench::RowBuilder sessions_row(unsigned cores, std::uint64_t cross) {
  auto row = bench::row("PerCore_Stateful/" + std::to_string(cores) + "/cross_" + std::to_string(cross) + " (honest)");
  row.run_threads("weft", 2, sessions<Weft, OneCore>(cores, cross));
#ifdef WEFT_RIVAL_ASIO
  row.run_threads("asio", 2, sessions<Asio, OneCore>(cores, cross));
  row.run_threads("asio_shared", 2, sessions<AsioShared, Locked>(cores, cross));
#endif
  return row;
}
const auto kSessionRows = [] {
  for (const unsigned cores : {1u, 2u, 3u, 4u, 8u, 16u}) {
    for (const std::uint64_t cross : {0, 5, 20, 50}) {
      if (cores == 2 || cores == 4 || cross == 0) {
        (void)sessions_row(cores, cross);
      }
    }
  }
  return 0;
}();

}  // namespace
