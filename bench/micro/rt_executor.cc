// SPDX-License-Identifier: MIT
// The workers of a pool make instruction counts and this thread's CPU time meaningless. So rows of pools have a second,
// idle thread, and the body keeps the time itself.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/rt/exec/executor.h"
#include "weft/rt/exec/inline_executor.h"
#include "weft/rt/exec/strand.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/sys/clock.h"

#if __has_include(<boost/asio/thread_pool.hpp>)
#define WEFT_RIVAL_ASIO
#include <boost/asio/packaged_task.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#endif
#if __has_include(<thread_pool/thread_pool.hpp>)
#define WEFT_RIVAL_RVASER
#include <thread_pool/thread_pool.hpp>
#endif
#ifdef WEFT_RIVAL_tbb
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#endif

namespace {

using weft::rt::ThreadPool;

constexpr unsigned kWorkers = 4;
constexpr int kBurst = 1000;

// --- contenders: execute(f), and submit(f) -> something with get() ---

template <int kKind>  // 0 fixed, 1 dynamic, 2 single, 3 strand of a fixed pool
struct Weft {
  static constexpr const char* kName = "weft";
  explicit Weft(unsigned workers) {
    weft::rt::ThreadPoolOptions options;
    options.queue_capacity = std::size_t{2} * kBurst * workers;  // one queue of the pool holds a burst
    pool = kKind == 1   ? std::move(ThreadPool::make_dynamic(1, workers, options)).value()
           : kKind == 2 ? std::move(ThreadPool::make_single(options)).value()
                        : std::move(ThreadPool::make_fixed(workers, options)).value();
  }
  template <typename F>
  void execute(F&& f) {
    if (!pool->execute(std::forward<F>(f))) {
      std::abort();
    }
  }
  template <typename F>
  auto submit(F&& f) {
    return pool->submit(std::forward<F>(f));
  }
  std::unique_ptr<ThreadPool> pool;
};

#ifdef WEFT_RIVAL_ASIO
struct Asio {
  static constexpr const char* kName = "asio";
  explicit Asio(unsigned workers) : pool(workers) {}
  ~Asio() { pool.join(); }
  template <typename F>
  void execute(F&& f) {
    boost::asio::post(pool, std::forward<F>(f));
  }
  template <typename F>
  auto submit(F&& f) {
    using R = std::invoke_result_t<F&>;
    return boost::asio::post(pool, std::packaged_task<R()>(std::forward<F>(f)));
  }
  boost::asio::thread_pool pool;
};
#endif

// The design of BS::thread_pool, from its documentation: one mutex, one queue of std::function, one condition variable
// notified once per job; submit makes a shared promise.
struct BsModel {
  static constexpr const char* kName = "bs_model";
  explicit BsModel(unsigned workers) {
    for (unsigned i = 0; i < workers; ++i) {
      threads.emplace_back([this] { run(); });
    }
  }
  ~BsModel() {
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    available.notify_all();
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      --running;
      available.wait(lock, [this] { return over || !jobs.empty(); });
      if (jobs.empty()) {
        return;
      }
      {
        const std::function<void()> job = std::move(jobs.front());
        jobs.pop();
        ++running;
        lock.unlock();
        job();
      }
      lock.lock();
    }
  }
  template <typename F>
  void execute(F&& f) {
    {
      const std::lock_guard lock(mutex);
      jobs.emplace(std::forward<F>(f));
    }
    available.notify_one();
  }
  template <typename F>
  auto submit(F&& f) {
    auto promise = std::make_shared<std::promise<std::invoke_result_t<F&>>>();
    execute([promise, f = std::forward<F>(f)] { promise->set_value(f()); });
    return promise->get_future();
  }
  std::mutex mutex;
  std::condition_variable available;
  std::queue<std::function<void()>> jobs;
  std::vector<std::thread> threads;
  std::ptrdiff_t running = 0;
  bool over = false;
};

#ifdef WEFT_RIVAL_RVASER
// Debian's libthread-pool-dev, which is R. Vaser's, not BS::thread_pool. Its only way to add a job returns a future.
struct Rvaser {
  static constexpr const char* kName = "rvaser";
  explicit Rvaser(unsigned workers) : pool(workers) {}
  template <typename F>
  void execute(F&& f) {
    pool.Submit(std::forward<F>(f));
  }
  template <typename F>
  auto submit(F&& f) {
    return pool.Submit(std::forward<F>(f));
  }
  thread_pool::ThreadPool pool;
};
#endif

#ifdef WEFT_RIVAL_tbb
struct Tbb {
  static constexpr const char* kName = "tbb";
  explicit Tbb(unsigned workers)
      : control(tbb::global_control::max_allowed_parallelism, workers + 1), arena(static_cast<int>(workers + 1)) {}
  ~Tbb() { arena.terminate(); }
  template <typename F>
  void execute(F&& f) {
    arena.enqueue(std::forward<F>(f));
  }
  template <typename F>
  auto submit(F&& f) {
    auto promise = std::make_shared<std::promise<std::invoke_result_t<F&>>>();
    auto future = promise->get_future();
    arena.enqueue([promise, f = std::forward<F>(f)] { promise->set_value(f()); });
    return future;
  }
  tbb::global_control control;
  tbb::task_arena arena;
};
#endif

struct StdAsync {
  static constexpr const char* kName = "std_async";
  explicit StdAsync(unsigned /*workers*/) {}
  template <typename F>
  auto submit(F&& f) {
    return std::async(std::launch::async, std::forward<F>(f));
  }
};

// --- bodies ---

double seconds_since(weft::Instant start) { return std::chrono::duration<double>(weft::sys::now() - start).count(); }

template <typename Pool, typename Work>  // work(pool) -> seconds for `items`
bench::Body timed(unsigned workers, int items, Work work) {
  return [=](benchmark::State& state) {
    if (state.thread_index() != 0) {
      for (auto _ : state) {
      }
      return;
    }
    Pool pool(workers);
    (void)work(pool);
    std::vector<double> seconds;  // reports the median: a burst that other processes interrupted does not decide
    for (auto _ : state) {
      seconds.push_back(work(pool));
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    state.counters["items_per_second"] = items / *middle;
  };
}

// One burst. kUntilDone: the time until the last job has run, otherwise until execute() has returned for the last time.
template <typename Pool, bool kUntilDone>
double execute_burst(Pool& pool) {
  std::atomic<int> left{kBurst};
  const auto start = weft::sys::now();
  for (int i = 0; i < kBurst; ++i) {
    pool.execute([&left] { left.fetch_sub(1, std::memory_order_release); });
  }
  double took = kUntilDone ? 0 : seconds_since(start);
  while (left.load(std::memory_order_acquire) != 0) {
    std::this_thread::yield();
  }
  return kUntilDone ? seconds_since(start) : took;
}
template <typename Pool, bool kUntilDone>
double submit_burst(Pool& pool) {
  int number = 7;
  const auto job = [&number] { return number; };
  std::vector<decltype(pool.submit(job))> futures;
  futures.reserve(kBurst);
  const auto start = weft::sys::now();
  for (int i = 0; i < kBurst; ++i) {
    futures.push_back(pool.submit(job));
  }
  const double took = kUntilDone ? 0 : seconds_since(start);
  for (auto& future : futures) {
    benchmark::DoNotOptimize(future.get());
  }
  return kUntilDone ? seconds_since(start) : took;
}

// The time from submit() to the result, one job at a time; the given percentile of the samples.
template <typename Pool>
bench::Body latency(double percentile) {
  const int count = std::max(kBurst / 4, static_cast<int>(2 / (1 - percentile)));  // a tail needs samples after it
  return timed<Pool>(kWorkers, count, [percentile, count](Pool& pool) {
    std::vector<double> samples;
    samples.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      const auto start = weft::sys::now();
      auto future = pool.submit([] { return 1; });
      benchmark::DoNotOptimize(future.get());
      samples.push_back(seconds_since(start));
    }
    std::sort(samples.begin(), samples.end());
    return samples[static_cast<std::size_t>(percentile * (count - 1))] * count;
  });
}

template <typename Ours, bool kUntilDone>
bench::RowBuilder execute_row(const char* name, unsigned workers = kWorkers) {
  auto row =
      bench::row(name).run_threads(Ours::kName, 2, timed<Ours>(workers, kBurst, execute_burst<Ours, kUntilDone>));
  row.run_threads("bs_model", 2, timed<BsModel>(workers, kBurst, execute_burst<BsModel, kUntilDone>));
#ifdef WEFT_RIVAL_ASIO
  row.run_threads("asio", 2, timed<Asio>(workers, kBurst, execute_burst<Asio, kUntilDone>));
#endif
#ifdef WEFT_RIVAL_tbb
  row.run_threads("tbb", 2, timed<Tbb>(workers, kBurst, execute_burst<Tbb, kUntilDone>));
#endif
#ifdef WEFT_RIVAL_RVASER
  row.run_threads("rvaser", 2, timed<Rvaser>(workers, kBurst, execute_burst<Rvaser, kUntilDone>));
#endif
  return row;
}

template <typename Make>
bench::RowBuilder with_submit_rivals(bench::RowBuilder row, Make make) {
  make.template operator()<BsModel>(row);
#ifdef WEFT_RIVAL_ASIO
  make.template operator()<Asio>(row);
#endif
#ifdef WEFT_RIVAL_tbb
  make.template operator()<Tbb>(row);
#endif
#ifdef WEFT_RIVAL_RVASER
  make.template operator()<Rvaser>(row);
#endif
  make.template operator()<StdAsync>(row);
  return row;
}

template <typename Ours, bool kUntilDone>
bench::RowBuilder submit_row(const char* name, unsigned workers = kWorkers) {
  auto row = bench::row(name).run_threads(Ours::kName, 2, timed<Ours>(workers, kBurst, submit_burst<Ours, kUntilDone>));
  return with_submit_rivals(row, [workers]<typename Pool>(bench::RowBuilder& each) {
    each.run_threads(Pool::kName, 2, timed<Pool>(workers, kBurst, submit_burst<Pool, kUntilDone>));
  });
}

// As published, a row times the calls. Its honest twin times until the last job has run.
const auto kExecute = execute_row<Weft<0>, false>("Executor_execute/fixed_pool").bar("bs_model", 2.5).bar("asio", 2.5);
const auto kExecuteDone =
    execute_row<Weft<0>, true>("Executor_execute/fixed_pool (honest)").bar("bs_model", 2.0).bar("asio", 2.0);
const auto kSubmit = submit_row<Weft<0>, false>("Executor_submit/fixed_pool").bar("bs_model", 2.5).bar("asio", 2.5);
const auto kSubmitDone =
    submit_row<Weft<0>, true>("Executor_submit/fixed_pool (honest)").bar("bs_model", 2.0).bar("asio", 2.0);

const auto kDynamicExecute = execute_row<Weft<1>, false>("Executor_execute/dynamic_pool");
const auto kDynamicExecuteDone = execute_row<Weft<1>, true>("Executor_execute/dynamic_pool (honest)");
const auto kDynamicSubmit = submit_row<Weft<1>, false>("Executor_submit/dynamic_pool");
const auto kDynamicSubmitDone = submit_row<Weft<1>, true>("Executor_submit/dynamic_pool (honest)");

const auto kSingleExecute = execute_row<Weft<2>, false>("Executor_execute/single_thread", 1);
const auto kSingleExecuteDone = execute_row<Weft<2>, true>("Executor_execute/single_thread (honest)", 1);
const auto kSingleSubmit = submit_row<Weft<2>, false>("Executor_submit/single_thread", 1);
const auto kSingleSubmitDone = submit_row<Weft<2>, true>("Executor_submit/single_thread (honest)", 1);

bench::RowBuilder latency_row(const char* name, double percentile) {
  auto row = bench::row(name).run_threads("weft", 2, latency<Weft<0>>(percentile));
  return with_submit_rivals(row, [percentile]<typename Pool>(bench::RowBuilder& each) {
    each.run_threads(Pool::kName, 2, latency<Pool>(percentile));
  });
}
const auto kP50 = latency_row("Executor_latency/p50", 0.5);
const auto kP90 = latency_row("Executor_latency/p90", 0.9);
const auto kP95 = latency_row("Executor_latency/p95", 0.95);
const auto kP99 = latency_row("Executor_latency/p99", 0.99);
const auto kP999 = latency_row("Executor_latency/p999", 0.999);
const auto kP9999 = latency_row("Executor_latency/p9999", 0.9999);

// Published as jobs per second by workers; here as time per job, until the last one has run.
const auto kScale1 = execute_row<Weft<0>, true>("Executor_scalability/1", 1);
const auto kScale2 = execute_row<Weft<0>, true>("Executor_scalability/2", 2);
const auto kScale4 = execute_row<Weft<0>, true>("Executor_scalability/4", 4);
const auto kScale8 = execute_row<Weft<0>, true>("Executor_scalability/8", 8);
const auto kScale16 = execute_row<Weft<0>, true>("Executor_scalability/16", 16);
const auto kScale32 = execute_row<Weft<0>, true>("Executor_scalability/32", 32);

void weft_inline_execute(benchmark::State& state) {
  weft::rt::InlineExecutor executor;
  int count = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(executor.execute([&count] { benchmark::DoNotOptimize(++count); }));
  }
}
void std_function_call(benchmark::State& state) {
  int count = 0;
  for (auto _ : state) {
    std::function<void()> function = [&count] { benchmark::DoNotOptimize(++count); };
    benchmark::DoNotOptimize(function);
    function();
  }
}
void weft_inline_submit(benchmark::State& state) {
  weft::rt::InlineExecutor executor;
  int count = 0;
  for (auto _ : state) {
    auto future = executor.submit([&count] { return ++count; });
    benchmark::DoNotOptimize(future.get());
  }
}
void std_async_deferred(benchmark::State& state) {
  int count = 0;
  for (auto _ : state) {
    auto future = std::async(std::launch::deferred, [&count] { return ++count; });
    benchmark::DoNotOptimize(future.get());
  }
}
const auto kInlineExecute =
    bench::row("Executor_execute/inline").run("weft", weft_inline_execute).run("std_function", std_function_call);
const auto kInlineSubmit =
    bench::row("Executor_submit/inline").run("weft", weft_inline_submit).run("std_async_deferred", std_async_deferred);

}  // namespace
