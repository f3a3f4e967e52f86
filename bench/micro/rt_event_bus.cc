// SPDX-License-Identifier: MIT
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/rt/bus/event_bus.h"
#include "weft/sys/clock.h"

#if __has_include(<boost/signals2.hpp>)
#define WEFT_RIVAL_SIGNALS2
#include <boost/signals2.hpp>
#endif
#ifdef WEFT_RIVAL_sigc___2_0
#include <sigc++/sigc++.h>
#endif

namespace {

using weft::rt::EventBus;
using weft::rt::Subscription;

struct Event {
  int value;
};
// The work of each handler: uses the event and writes no memory that threads share.
void use(const Event& event) { benchmark::DoNotOptimize(event.value); }

// The contenders: a publisher with `handlers` handlers.
struct Weft {
  static constexpr const char* kName = "weft";
  explicit Weft(int handlers) {
    for (int i = 0; i < handlers; ++i) {
      subscriptions.push_back(std::move(bus.subscribe<Event>(use)).value());
    }
  }
  void publish(const Event& event) { bus.publish(event); }
  void subscribe_and_back() { (void)std::move(bus.subscribe<Event>(use)).value(); }
  void subscribe(int handlers) {
    for (int i = 0; i < handlers; ++i) {
      subscriptions.push_back(std::move(bus.subscribe<Event>(use)).value());
    }
  }
  void clear() { subscriptions.clear(); }

  EventBus bus;
  std::vector<Subscription> subscriptions;
};

#ifdef WEFT_RIVAL_SIGNALS2
struct Signals2 {
  static constexpr const char* kName = "signals2";
  explicit Signals2(int handlers) { subscribe(handlers); }
  void publish(const Event& event) { signal(event); }
  void subscribe_and_back() { const boost::signals2::scoped_connection connection(signal.connect(use)); }
  void subscribe(int handlers) {
    for (int i = 0; i < handlers; ++i) {
      signal.connect(use);
    }
  }
  void clear() { signal.disconnect_all_slots(); }

  boost::signals2::signal<void(const Event&)> signal;
};
#endif

#ifdef WEFT_RIVAL_sigc___2_0
// For one thread only.
struct Sigc {
  static constexpr const char* kName = "sigc";
  explicit Sigc(int handlers) { subscribe(handlers); }
  void publish(const Event& event) { signal.emit(event); }
  void subscribe_and_back() {
    sigc::connection connection = signal.connect(sigc::ptr_fun(use));
    connection.disconnect();
  }
  void subscribe(int handlers) {
    for (int i = 0; i < handlers; ++i) {
      signal.connect(sigc::ptr_fun(use));
    }
  }
  void clear() { signal.clear(); }

  sigc::signal<void, const Event&> signal;
};
#endif

// The design behind the published figures: a mutex around a multimap by type, matching functions copied, then called.
struct PublishedModel {
  static constexpr const char* kName = "published_model";
  explicit PublishedModel(int handlers) { subscribe(handlers); }
  void publish(const Event& event) {
    std::vector<std::function<void(const void*)>> matching;
    {
      const std::lock_guard lock(mutex);
      const auto [begin, end] = functions.equal_range(std::type_index(typeid(Event)).hash_code());
      for (auto each = begin; each != end; ++each) {
        matching.push_back(each->second.second);
      }
    }
    for (const auto& function : matching) {
      function(&event);
    }
  }
  std::uint64_t add() {
    const std::function<void(const Event&)> typed = use;
    const std::lock_guard lock(mutex);
    functions.emplace(std::type_index(typeid(Event)).hash_code(),
                      std::pair(++last, [typed](const void* event) { typed(*static_cast<const Event*>(event)); }));
    return last;
  }
  void subscribe_and_back() {
    const std::uint64_t id = add();
    const std::lock_guard lock(mutex);
    for (auto each = functions.begin(); each != functions.end(); ++each) {
      if (each->second.first == id) {
        functions.erase(each);
        return;
      }
    }
  }
  void subscribe(int handlers) {
    for (int i = 0; i < handlers; ++i) {
      add();
    }
  }
  void clear() {
    const std::lock_guard lock(mutex);
    functions.clear();
  }

  std::mutex mutex;
  std::unordered_multimap<std::size_t, std::pair<std::uint64_t, std::function<void(const void*)>>> functions;
  std::uint64_t last = 0;
};

template <typename Bus>
bench::Body publish_to(int handlers) {
  return [handlers](benchmark::State& state) {
    Bus bus(handlers);
    int value = 0;
    for (auto _ : state) {
      bus.publish(Event{++value});
    }
  };
}
template <typename Bus>
bench::Body subscribe_pair() {
  return [](benchmark::State& state) {
    Bus bus(10);
    for (auto _ : state) {
      bus.subscribe_and_back();
    }
  };
}

double seconds_since(weft::Instant start) { return std::chrono::duration<double>(weft::sys::now() - start).count(); }

// Bodies with threads of their own keep the time themselves; the second thread of the row is idle.
template <typename Work>  // work() -> {items, seconds}
bench::Body timed(Work work) {
  return [work](benchmark::State& state) {
    double items = 0;
    double seconds = 0;
    for (auto _ : state) {
      if (state.thread_index() == 0) {
        const auto [done, took] = work();
        items += done;
        seconds += took;
      }
    }
    if (state.thread_index() == 0) {
      state.counters["items_per_second"] = items / seconds;
    }
  };
}

template <typename Bus>
bench::Body subscribe_alone() {
  return timed([] {
    constexpr int kHandlers = 32;
    Bus bus(0);
    const auto start = weft::sys::now();
    bus.subscribe(kHandlers);
    const double took = seconds_since(start);
    bus.clear();
    return std::pair<double, double>(kHandlers, took);
  });
}

template <typename Bus>
bench::Body publishers(int count) {
  return timed([count] {
    constexpr int kEvents = 1'000'000;
    Bus bus(1);
    std::atomic<int> ready{0};
    const auto publish = [&] {
      ready.fetch_add(1);
      while (ready.load() < count) {
      }
      for (int i = 0; i < kEvents; ++i) {
        bus.publish(Event{i});
      }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < count; ++i) {
      others.emplace_back(publish);
    }
    while (ready.load() < count - 1) {
      std::this_thread::yield();
    }
    const auto start = weft::sys::now();
    publish();
    for (std::thread& other : others) {
      other.join();
    }
    return std::pair<double, double>(static_cast<double>(kEvents) * count, seconds_since(start));
  });
}

template <typename Make>
bench::RowBuilder with_rivals(bench::RowBuilder row, Make make) {
  make.template operator()<Weft>(row);
#ifdef WEFT_RIVAL_SIGNALS2
  make.template operator()<Signals2>(row);
#endif
#ifdef WEFT_RIVAL_sigc___2_0
  make.template operator()<Sigc>(row);
#endif
  make.template operator()<PublishedModel>(row);
  return row;
}

bench::RowBuilder publish_row(const char* name, int handlers) {
  return with_rivals(bench::row(name), [handlers]<typename Bus>(bench::RowBuilder& row) {
    row.run(Bus::kName, publish_to<Bus>(handlers));
  });
}

const auto kPublish = publish_row("EventBus_publish", 1).bar("signals2", 5.0);
const auto kPublish0 = publish_row("EventBus_publish/0", 0);
const auto kPublish10 = publish_row("EventBus_publish/10", 10);
const auto kPublish100 = publish_row("EventBus_publish/100", 100);

// As published: a pair of subscribe and unsubscribe.
const auto kSubscribe = with_rivals(bench::row("EventBus_subscribe"), []<typename Bus>(bench::RowBuilder& row) {
  row.run(Bus::kName, subscribe_pair<Bus>());
});
const auto kSubscribeAlone =
    with_rivals(bench::row("EventBus_subscribe (honest)"),
                []<typename Bus>(bench::RowBuilder& row) { row.run_threads(Bus::kName, 2, subscribe_alone<Bus>()); });

// Time per event of two publishers together, beside one publisher alone.
const auto kTwo = bench::row("EventBus_publish/two_publishers")
                      .run_threads("weft", 2, publishers<Weft>(2))
                      .run_threads("weft_one_publisher", 2, publishers<Weft>(1))
#ifdef WEFT_RIVAL_SIGNALS2
                      .run_threads("signals2", 2, publishers<Signals2>(2))
#endif
                      .run_threads("published_model", 2, publishers<PublishedModel>(2))
                      .bar("weft_one_publisher", 1.0);

}  // namespace
