// SPDX-License-Identifier: MIT
// Calls of a Sharded object, beside the same by hand on Boost.Asio with one io_context per thread: a post to the
// thread with the state, and a post back with the value. The threads of the contenders do the work, so a row has a
// second, idle thread, and the body keeps the time itself.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/core/sharded.h"
#include "weft/rt/task/task_group.h"
#include "weft/sys/clock.h"
#include "weft/sys/thread.h"
#include "weft/sys/topology.h"

#if __has_include(<boost/asio/io_context.hpp>)
#define WEFT_RIVAL_ASIO_POST
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#endif

namespace {

constexpr unsigned kShards = 2;
constexpr std::uint64_t kCalls = 2000;  // of a run

struct Share {
  std::uint64_t sum = 0;
};

double passed_since(weft::Instant start) { return std::chrono::duration<double>(weft::sys::now() - start).count(); }

// --- Weft ---

weft::rt::Task<void> call_in_turn(weft::rt::Sharded<Share>* shares, std::uint64_t calls) {
  for (std::uint64_t i = 0; i < calls; ++i) {
    const auto sum = co_await shares->invoke_on(1, [i](Share& share) { return share.sum += i; });
    if (!sum) {
      std::abort();
    }
  }
}
weft::rt::Task<double> call_from_tasks(weft::rt::Sharded<Share>* shares, std::uint64_t tasks) {
  const auto start = weft::sys::now();
  std::vector<weft::rt::Task<void>> callers;
  for (std::uint64_t i = 0; i < tasks; ++i) {
    callers.push_back(call_in_turn(shares, kCalls / tasks));
  }
  (void)co_await weft::rt::when_all(std::move(callers));
  co_return passed_since(start);
}
weft::rt::Task<double> reduce_in_turn(weft::rt::Sharded<Share>* shares) {
  const auto start = weft::sys::now();
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    const auto sum = co_await shares->map_reduce([](Share& share) { return ++share.sum; }, std::uint64_t{0},
                                                 [](std::uint64_t a, std::uint64_t b) { return a + b; });
    if (!sum) {
      std::abort();
    }
  }
  co_return passed_since(start);
}

struct WeftShares {
  WeftShares() {
    weft::rt::RuntimeOptions options;
    options.cores = kShards;
    options.pinning = weft::rt::Pinning::always;
    runtime = std::move(weft::rt::Runtime::start(options)).value();
    shares = std::move(weft::rt::Sharded<Share>::start(*runtime)).value();
  }
  double calls(std::uint64_t at_a_time) { return seconds_of(call_from_tasks(shares.get(), at_a_time)); }
  double reductions() { return seconds_of(reduce_in_turn(shares.get())); }

 private:
  double seconds_of(weft::rt::Task<double> task) {
    return std::move(weft::rt::spawn(runtime->core(0), std::move(task))).value().get().value();
  }
  std::unique_ptr<weft::rt::Runtime> runtime;
  std::unique_ptr<weft::rt::Sharded<Share>> shares;
};

#ifdef WEFT_RIVAL_ASIO_POST
class AsioShares {
 public:
  AsioShares() {
    const auto places = weft::sys::physical_cores(weft::sys::allowed_cpu_ids());
    for (unsigned i = 0; i < kShards; ++i) {
      threads_.emplace_back([this, i, cpu = places[i % places.size()].cpu] {
        weft::sys::ThreadOptions options;
        options.cpus.set(cpu);
        weft::sys::set_up_thread("asio", options);
        contexts_[i].run();
      });
    }
  }
  ~AsioShares() {
    for (auto& context : contexts_) {
      context.stop();
    }
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  double calls(std::uint64_t at_a_time) {
    return run([this, at_a_time] {
      left_ = kCalls / at_a_time * at_a_time;
      waiting_ = at_a_time;
      for (std::uint64_t i = 0; i < at_a_time; ++i) {
        call(kCalls / at_a_time);
      }
    });
  }
  double reductions() {
    return run([this] {
      left_ = kCalls;
      reduce();
    });
  }

 private:
  template <typename Begin>
  double run(Begin begin) {
    over_.store(0, std::memory_order_relaxed);
    boost::asio::post(contexts_[0], [this, begin] {
      start_ = weft::sys::now();
      begin();
    });
    over_.wait(0, std::memory_order_acquire);
    return seconds_;
  }
  void finish() {
    seconds_ = passed_since(start_);
    over_.store(1, std::memory_order_release);
    over_.notify_one();
  }
  void call(std::uint64_t calls) {
    boost::asio::post(contexts_[1], [this, calls] {
      const std::uint64_t sum = shares_[1].sum += calls;
      boost::asio::post(contexts_[0], [this, calls, sum] {
        last_ = sum;
        if (calls != 1) {
          call(calls - 1);
        } else if (--waiting_ == 0) {
          finish();
        }
      });
    });
  }
  void reduce() {
    total_ = 0;
    waiting_ = kShards;
    for (unsigned i = 0; i < kShards; ++i) {
      boost::asio::post(contexts_[i], [this, i] {
        const std::uint64_t mapped = ++shares_[i].sum;
        boost::asio::post(contexts_[0], [this, mapped] {
          total_ += mapped;
          if (--waiting_ == 0) {
            return --left_ == 0 ? finish() : reduce();
          }
        });
      });
    }
  }

  boost::asio::io_context contexts_[kShards];
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guards_[kShards] = {
      boost::asio::make_work_guard(contexts_[0]), boost::asio::make_work_guard(contexts_[1])};
  struct alignas(64) Own : Share {};
  Own shares_[kShards];
  std::uint64_t left_ = 0;  // these of thread 0
  std::uint64_t waiting_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t last_ = 0;
  weft::Instant start_;
  double seconds_ = 0;
  std::atomic<int> over_{0};
  std::vector<std::thread> threads_;
};
#endif

// Thread 0 runs work(shares) -> seconds, again and again; the median counts.
template <typename Shares, typename Work>
bench::Body median_of(Work work) {
  return [work](benchmark::State& state) {
    if (state.thread_index() != 0) {
      for (auto _ : state) {
      }
      return;
    }
    Shares shares;
    (void)work(shares);
    std::vector<double> seconds;
    for (auto _ : state) {
      seconds.push_back(work(shares));
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    state.counters["items_per_second"] = static_cast<double>(kCalls) / *middle;
  };
}

template <typename Work>
bench::RowBuilder shares_row(const char* name, Work work) {
  auto row = bench::row(name);
  row.run_threads("weft", 2, median_of<WeftShares>(work));
#ifdef WEFT_RIVAL_ASIO_POST
  row.run_threads("asio", 2, median_of<AsioShares>(work));
#endif
  return row;
}

const auto kOneCall = shares_row("Sharded_InvokeOn/one_at_a_time", [](auto& shares) { return shares.calls(1); });
const auto kCallsAtATime = shares_row("Sharded_InvokeOn/50_at_a_time", [](auto& shares) { return shares.calls(50); });
const auto kReductions = shares_row("Sharded_MapReduce/2_cores", [](auto& shares) { return shares.reductions(); });

}  // namespace
